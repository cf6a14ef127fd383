import { isStorable } from '../schemas/text.ts';
import type { Settle } from './settle.ts';

type Fields = Readonly<Record<string, unknown>>;

function textOf(value: unknown): string {
  if (typeof value !== 'string') return '';
  return isStorable(value) ? value : value.toWellFormed().replaceAll('\u0000', '\ufffd');
}

/** The value if a column can hold it, and otherwise the nearest value that one can hold. */
function storedValue(value: unknown): unknown {
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value : 0;
  return textOf(value);
}

/** The same fields with storable values; the same object if all are. */
function fieldsOf<Record extends object>(fields: Record): Record {
  const kept: { [name: string]: unknown } = {};
  let isSame = true;
  for (const [name, value] of Object.entries(fields as Fields)) {
    kept[name] = storedValue(value);
    if (kept[name] !== value) isSame = false;
  }
  return isSame ? fields : (kept as Record);
}

function isBucket([metric, bucket]: readonly [number, number]): boolean {
  return Number.isSafeInteger(metric) && Number.isSafeInteger(bucket);
}

/**
 * The settle with values that every store accepts: texts without NUL characters and halves of characters, whole numbers, and no
 * objects. Its amounts stay as they are. The same object if nothing had to change.
 */
export function storable(settle: Settle): Settle {
  const { activity, listed, usage } = settle;
  const buckets = usage.buckets.every(isBucket) ? usage.buckets : usage.buckets.filter(isBucket);
  const kept = {
    activity: fieldsOf(activity),
    listed: fieldsOf(listed),
    dimensions: fieldsOf(usage.dimensions),
    measures: fieldsOf(usage.measures),
    record: textOf(settle.record),
  };
  const isSame =
    kept.activity === activity &&
    kept.listed === listed &&
    kept.dimensions === usage.dimensions &&
    kept.measures === usage.measures &&
    kept.record === settle.record &&
    buckets === usage.buckets;
  if (isSame) return settle;
  return {
    ...settle,
    activity: kept.activity,
    listed: kept.listed,
    record: kept.record,
    usage: { dimensions: kept.dimensions, measures: kept.measures, buckets },
  };
}
