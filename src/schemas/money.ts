/** Nano-USD as the JSON number of USD that answers carry: the nearest double, which prints as the exact amount. */
export function toUsd(nano: number): number {
  return nano / 1e9;
}

/** An incoming amount of USD as the nearest nano-USD. Callers bound it by `limits.usd_max` first. */
export function toNano(usd: number): number {
  return Math.round(usd * 1e9);
}
