import { limits } from '../limits.ts';

const DECIMAL = /^(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i;

/** `value × 10^power` as digits and the number of decimals; undefined if the value is not a decimal. */
function scaled(value: number | string, power: number): { digits: bigint; decimals: number } | undefined {
  const match = DECIMAL.exec(String(value).trim());
  if (!match) return undefined;
  const [, whole = '', fraction = '', exponent = '0'] = match;
  if (exponent.length > 4 || whole.length + fraction.length > 60) return undefined;
  const decimals = fraction.length - Number(exponent) - power;
  const digits = BigInt(whole + fraction);
  return decimals < 0 ? { digits: digits * 10n ** BigInt(-decimals), decimals: 0 } : { digits, decimals };
}

/** Why a price is refused. */
export type PriceFault = 'not_a_price' | 'too_fine' | 'too_high';

/**
 * A price in USD (a number, read as the decimal it prints as, or a decimal string) as integer pico-USD per unit. Exact:
 * amounts finer than one pico-USD are refused, not rounded.
 */
export function picoUsd(usd: number | string, per: 'unit' | 'million'): number | PriceFault {
  const value = scaled(usd, per === 'unit' ? 12 : 6);
  if (value === undefined) return 'not_a_price';
  const divisor = 10n ** BigInt(value.decimals);
  if (value.digits % divisor !== 0n) return 'too_fine';
  const pico = value.digits / divisor;
  return pico > BigInt(limits.unit_price_usd_max) * 1_000_000_000_000n ? 'too_high' : Number(pico);
}

/** Like `picoUsd`, but rounded to the nearest pico-USD, for external facts with binary rounding errors (0.049999999999999996). */
export function nearestPicoUsd(usd: number | string, per: 'unit' | 'million'): number | undefined {
  const value = scaled(usd, per === 'unit' ? 12 : 6);
  if (value === undefined) return undefined;
  const divisor = 10n ** BigInt(value.decimals);
  const pico = (value.digits * 2n + divisor) / (divisor * 2n);
  return pico > BigInt(limits.unit_price_usd_max) * 1_000_000_000_000n ? undefined : Number(pico);
}

/** Integer pico-USD as a plain decimal of USD, never in exponent notation: 250000 is `"0.00000025"`. */
export function usdText(pico: number): string {
  const digits = String(BigInt(pico)).padStart(13, '0');
  const fraction = digits.slice(-12).replace(/0+$/, '');
  return fraction === '' ? digits.slice(0, -12) : `${digits.slice(0, -12)}.${fraction}`;
}

/** The price of a token in pico-USD as USD per million tokens: 250000 is `"0.25"`. */
export function usdPerMillion(pico: number): string {
  return usdText(pico * 1_000_000);
}
