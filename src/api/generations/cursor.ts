import { invalidField } from '../../errors.ts';
import type { GenerationPlace } from '../../storage/generation-lists.ts';

/** A place as an opaque text. */
export function cursorOf(place: GenerationPlace | undefined): string | null {
  return place === undefined ? null : Buffer.from(`${place.created_at} ${place.id}`).toString('base64url');
}

/** The inverse of `cursorOf`; a 400 for any other text. */
export function placeOf(cursor: string | undefined): GenerationPlace | undefined {
  if (cursor === undefined) return undefined;
  const text = Buffer.from(cursor, 'base64url').toString();
  const at = text.indexOf(' ');
  const place = { created_at: text.slice(0, at), id: text.slice(at + 1) };
  if (
    at < 1 ||
    cursorOf(place) !== cursor ||
    Number.isNaN(Date.parse(place.created_at)) ||
    /[^\x21-\x7e]/.test(place.id)
  ) {
    throw invalidField('cursor', 'must be `next_cursor` of an earlier page');
  }
  return place;
}

/** A moment as records store it; a 400 for what is no date. */
function momentOf(field: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const isDate = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2}))?$/.test(text);
  const ms = isDate ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) {
    throw invalidField(field, 'must be a time such as 2026-01-31T10:42:00Z, or a UTC day such as 2026-01-31');
  }
  return new Date(ms).toISOString();
}

/** The range of a list as records store it, `to` not included; a 400 for what is no date, or ends before it begins. */
export function rangeOf(query: { from?: string; to?: string }): { from: string | undefined; to: string | undefined } {
  const range = { from: momentOf('from', query.from), to: momentOf('to', query.to) };
  if (range.from !== undefined && range.to !== undefined && range.to < range.from) {
    throw invalidField('to', 'must not be before from');
  }
  return range;
}
