import type { SoundFormat } from '../../audio/sound.ts';
import { GatewayError } from '../../errors.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { type Report, UpstreamError } from '../dialect.ts';
import { decodeError, errorInside } from '../openai-chat/errors.ts';
import { asArray, asObject } from '../shared/json-shape.ts';
import type { ResponseHeaders } from '../shared/retry-after.ts';
import type { BilledFailure, TimedText, TranscriptionAnswer } from './dialect.ts';

/** Throws `GatewayError` 400 if the wire does not accept audio of this format; another endpoint may. */
export function requireFormat(format: SoundFormat, accepted: readonly SoundFormat[]): void {
  if (!accepted.includes(format)) {
    throw new GatewayError(400, `This endpoint does not accept ${format} audio; it accepts ${accepted.join(', ')}`);
  }
}

/** The body as an object. Throws `UpstreamError` for anything else, and for an error in the body. */
export function objectOf(value: JsonValue): JsonObject {
  const body = asObject(value);
  if (body === undefined) throw new UpstreamError('invalid_response', "The provider's answer is not an object");
  const error = body['error'] ? errorInside(value) : undefined;
  if (error !== undefined) throw error;
  return body;
}

/** The text, which is empty if nothing was said. */
export function textOf({ text }: JsonObject): string {
  if (typeof text !== 'string') throw new UpstreamError('invalid_response', "The provider's answer has no text");
  return text;
}

/** The answer with its text. Without a text it is a failure, billed if it reports usage. */
export function answerWith(
  text: JsonValue | undefined,
  details: Omit<TranscriptionAnswer, 'text'>,
): { answer: TranscriptionAnswer } | BilledFailure {
  if (typeof text === 'string') return { answer: { text, ...details } };
  const failure = new UpstreamError('invalid_response', "The provider's answer has no text");
  if (details.seconds === undefined && details.tokens === undefined) throw failure;
  return { text: '', ...details, failure };
}

/** A valid number of seconds or tokens; undefined for anything else. */
export function amount(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;
}

/** Pieces of text with their times. `units` is how many units of the wire make one second. */
export function timed(list: JsonValue | undefined, textName: string, units = 1): TimedText[] | undefined {
  if (!Array.isArray(list)) return undefined;
  return asArray(list).flatMap((item) => {
    const { [textName]: text, start, end } = asObject(item) ?? {};
    if (typeof text !== 'string' || typeof start !== 'number' || typeof end !== 'number') return [];
    return [{ text, start: start / units, end: end / units }];
  });
}

/** The `decodeError` of a wire whose error bodies differ from OpenAI's in names only. `errorOf` reads the error from a body. */
export function decodeErrorBy(errorOf: (body: JsonObject) => { message?: unknown; code?: unknown } | undefined) {
  return (status: number, headers: ResponseHeaders, text: string): UpstreamError => {
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch {
      return decodeError(status, headers, text);
    }
    const error = errorOf(asObject(body) ?? {});
    return decodeError(status, headers, error === undefined ? text : JSON.stringify({ error }));
  };
}

/** Reports for the fields that are set, which the wire does not have. */
export function dropped(fields: Record<string, unknown>): Report[] {
  return Object.entries(fields).flatMap(([field, value]): Report[] => {
    const isSet = Array.isArray(value) ? value.length > 0 : value !== undefined;
    return isSet ? [{ kind: 'dropped', field, reason: 'the endpoint does not support it' }] : [];
  });
}
