import type { SoundFormat } from '../../audio/sound.ts';
import { GatewayError } from '../../errors.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { type Report, UpstreamError } from '../dialect.ts';
import { decodeError, errorInside } from '../openai-chat/errors.ts';
import { asArray, asObject } from '../shared/json-shape.ts';
import type { ResponseHeaders } from '../shared/retry-after.ts';
import type { BilledFailure, TimedText, TranscriptionAnswer } from './dialect.ts';

/** Throws where the wire is not known to take sounds of this format: another endpoint's may. */
export function requireFormat(format: SoundFormat, taken: readonly SoundFormat[]): void {
  if (!taken.includes(format)) {
    throw new GatewayError(400, `This endpoint does not take ${format} audio; it takes ${taken.join(', ')}`);
  }
}

/** The body as an object. Throws the error that stands in it. */
export function objectOf(value: JsonValue): JsonObject {
  const body = asObject(value);
  if (body === undefined) throw new UpstreamError('invalid_response', "The provider's answer is not an object");
  const fault = body['error'] ? errorInside(value) : undefined;
  if (fault !== undefined) throw fault;
  return body;
}

/** The text, which is there also when nothing was said. */
export function textOf({ text }: JsonObject): string {
  if (typeof text !== 'string') throw new UpstreamError('invalid_response', "The provider's answer has no text");
  return text;
}

/** The answer with its text. Without one it is a failure, which is billed where it tells what was used. */
export function answerWith(
  text: JsonValue | undefined,
  told: Omit<TranscriptionAnswer, 'text'>,
): { answer: TranscriptionAnswer } | BilledFailure {
  if (typeof text === 'string') return { answer: { text, ...told } };
  const failure = new UpstreamError('invalid_response', "The provider's answer has no text");
  if (told.seconds === undefined && told.tokens === undefined) throw failure;
  return { text: '', ...told, failure };
}

/** A number of seconds or tokens that makes sense; undefined for anything else. */
export function amount(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;
}

/** Stretches of text with their times, in seconds or in units of which so many are one. */
export function timed(list: JsonValue | undefined, textName: string, units = 1): TimedText[] | undefined {
  if (!Array.isArray(list)) return undefined;
  return asArray(list).flatMap((item) => {
    const { [textName]: text, start, end } = asObject(item) ?? {};
    if (typeof text !== 'string' || typeof start !== 'number' || typeof end !== 'number') return [];
    return [{ text, start: start / units, end: end / units }];
  });
}

/** The `decodeError` of a wire whose error body says in other words what OpenAI's does. */
export function decodeErrorBy(told: (body: JsonObject) => { message?: unknown; code?: unknown } | undefined) {
  return (status: number, headers: ResponseHeaders, text: string): UpstreamError => {
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch {
      return decodeError(status, headers, text);
    }
    const error = told(asObject(body) ?? {});
    return decodeError(status, headers, error === undefined ? text : JSON.stringify({ error }));
  };
}

/** What the wire has no place for. */
export function dropped(fields: Record<string, unknown>): Report[] {
  return Object.entries(fields).flatMap(([field, value]): Report[] => {
    const isGiven = Array.isArray(value) ? value.length > 0 : value !== undefined;
    return isGiven ? [{ kind: 'dropped', field, reason: 'the endpoint does not support it' }] : [];
  });
}
