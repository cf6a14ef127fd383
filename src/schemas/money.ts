import { limits } from '../limits.ts';

/** Nano-USD as a JSON number of USD: the nearest double, which prints as the exact amount below 2^23 USD. */
export function toUsd(nano: number): number {
  return nano / 1e9;
}

/** USD as the nearest nano-USD. The caller checks `limits.usd_max` first. */
export function toNano(usd: number): number {
  // toFixed rounds the double's exact value; a multiplication would round twice.
  return Number(usd.toFixed(9).replace('.', ''));
}

/** A positive amount of USD in decimal notation (`25`, `0.50`), in nano-USD; undefined for any other text, and for amounts that are too large. */
export function parseUsd(text: string): number | undefined {
  if (!/^\d{1,7}(\.\d{1,9})?$/.test(text)) return undefined;
  return Number(text) <= limits.usd_max ? toNano(Number(text)) : undefined;
}
