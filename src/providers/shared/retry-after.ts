import { limits } from '../../limits.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';

export type ResponseHeaders = Record<string, string | string[] | undefined>;

/**
 * How long the upstream asks to wait, in milliseconds, from 0 to `retry_after_ms_max`; undefined if it does not say.
 * A date is relative to the answer's own `date` header, so that no clock is needed. Header names are lower case, as from undici.
 */
export function retryAfterMs(headers: ResponseHeaders): number | undefined {
  const now = dateMs(first(headers['date']));
  const retryAfterMsHeader = first(headers['retry-after-ms']);
  // `retry-after-ms` is OpenAI's and Azure's finer form of `retry-after`.
  const wait =
    milliseconds(retryAfterMsHeader, 1) ??
    retryAfter(first(headers['retry-after']), now) ??
    rateLimitReset(headers, now);
  return wait === undefined ? undefined : Math.min(Math.max(0, Math.ceil(wait)), limits.retry_after_ms_max);
}

/** RFC 9110, section 10.2.3: seconds or a date. */
function retryAfter(value: string | undefined, now: number | undefined): number | undefined {
  return milliseconds(value, 1_000) ?? until(dateMs(value), now);
}

/**
 * `x-ratelimit-reset-requests` and `-tokens` (OpenAI, Groq: `6m0s`, `59.56s`), `x-ratelimit-reset` (seconds or a Unix
 * time), `anthropic-ratelimit-*-reset` (a date). The reset of an exhausted budget decides; if none is exhausted, the earliest
 * reset.
 */
function rateLimitReset(headers: ResponseHeaders, now: number | undefined): number | undefined {
  let exhausted: number | undefined;
  let soonest: number | undefined;
  for (const name in headers) {
    if (!name.includes('ratelimit') || !name.includes('reset')) continue;
    const wait = resetMs(first(headers[name]), now);
    if (wait === undefined) continue;
    soonest = Math.min(soonest ?? wait, wait);
    if (first(headers[name.replace('reset', 'remaining')]) === '0') exhausted = Math.max(exhausted ?? wait, wait);
  }
  return exhausted ?? soonest;
}

function resetMs(value: string | undefined, now: number | undefined): number | undefined {
  const seconds = milliseconds(value, 1);
  if (seconds === undefined) return duration(value) ?? until(dateMs(value), now);
  if (seconds > 1e11) return until(seconds, now);
  return seconds > 1e8 ? until(seconds * 1_000, now) : seconds * 1_000;
}

const UNIT_MS: Readonly<Record<string, number>> = lookupTable({
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
});

/** `1d2h3m4.5s`, `120ms`. */
function duration(value: string | undefined): number | undefined {
  if (value === undefined || value.length > 40 || !/^(?:\d+(?:\.\d+)?(?:ms|[smhd]))+$/.test(value)) return undefined;
  let sum = 0;
  for (const [, amount, unit] of value.matchAll(/([\d.]+)(ms|[smhd])/g)) sum += Number(amount) * UNIT_MS[unit!]!;
  return sum;
}

function milliseconds(value: string | undefined, unitMs: number): number | undefined {
  if (value === undefined || value.length > 20 || !/^\d+(?:\.\d+)?$/.test(value)) return undefined;
  return Number(value) * unitMs;
}

function dateMs(value: string | undefined): number | undefined {
  if (value === undefined || value.length > 40) return undefined;
  const time = Date.parse(value);
  return Number.isNaN(time) ? undefined : time;
}

function until(time: number | undefined, now: number | undefined): number | undefined {
  return time === undefined || now === undefined ? undefined : time - now;
}

function first(value: string | string[] | undefined): string | undefined {
  return (Array.isArray(value) ? value[0] : value)?.trim();
}
