import { money, zone } from './state.ts';

/** An amount of USD: short, or to the nano-dollar if the person chose that. */
export function usd(amount: number, exact = money.value === 'exact'): string {
  if (exact) return `$${grouped(amount.toFixed(9))}`;
  if (amount === 0) return '$0.00';
  const size = Math.abs(amount);
  if (size < 0.000001) return amount > 0 ? '< $0.000001' : '> −$0.000001';
  if (size < 0.01) return `$${amount.toFixed(6)}`;
  return `$${grouped(amount.toFixed(size < 1 ? 4 : 2))}`;
}

function grouped(text: string): string {
  const [whole = '', fraction] = text.split('.');
  const spaced = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ',');
  return fraction === undefined ? spaced : `${spaced}.${fraction}`;
}

/** A whole number with separators. */
export const count = (value: number): string => grouped(String(Math.round(value)));

/** A number of things, such as "1 call" and "2 calls". */
export const counted = (value: number, name: string): string => `${count(value)} ${name}${value === 1 ? '' : 's'}`;

/** A number of tokens, such as 200k. */
export function tokens(value: number | null): string {
  if (value === null) return '–';
  if (value >= 1_000_000) return `${+(value / 1_000_000).toFixed(2)}M`;
  return value >= 1_000 ? `${+(value / 1_000).toFixed(1)}k` : String(value);
}

/** The price of a million units, from a decimal price of one: exact, since the text is shifted. At least two decimals. */
export function perMillion(price: string | undefined): string {
  if (price === undefined) return '–';
  const [whole = '0', fraction = ''] = price.split('.');
  const digits = `${whole}${fraction.padEnd(6, '0')}`;
  const at = whole.length + 6;
  const cents = digits.slice(at).replace(/0+$/, '').padEnd(2, '0');
  return `$${digits.slice(0, at).replace(/^0+(?=\d)/, '')}.${cents}`;
}

/** Tokens per second. */
export const perSecond = (value: number | null | undefined): string =>
  value === null || value === undefined ? '–' : value >= 1_000 ? count(value) : value.toFixed(1);

/** A moment in UTC or in local time; without the name of the zone if a heading has it. */
export function time(iso: string, hasZone = true): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  const two = (value: number) => String(value).padStart(2, '0');
  if (zone.value === 'UTC') return `${iso.slice(0, 10)} ${iso.slice(11, 19)}${hasZone ? ' UTC' : ''}`;
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** The beginning of a group of usage: a UTC day, or the time of an hour or a minute. */
export const momentText = (of: string): string => (of.includes('T') ? time(of).replace(/:\d\d(?= UTC$|$)/, '') : of);

/** How long ago a moment is. */
export function ago(iso: string): string {
  const seconds = Math.max(0, (Date.now() - Date.parse(iso)) / 1000);
  if (seconds < 60) return 'just now';
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

/** A share such as 99.95 %. */
export const percent = (value: number | null): string => (value === null ? '–' : `${+value.toFixed(2)} %`);

/** The UTC day, YYYY-MM-DD, some days before today. */
export const dayBefore = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);

/** A duration. */
export const milliseconds = (value: number | null | undefined): string =>
  value === null || value === undefined
    ? '–'
    : value < 1_000
      ? `${Math.round(value)} ms`
      : `${(value / 1_000).toFixed(value < 10_000 ? 2 : 1)} s`;
