import Type, { type TSchema } from 'typebox';
import { limits } from '../../limits.ts';

/** What values a setting can have. Every `description` completes the sentence "… must be". */

export const strict = { additionalProperties: false };
export const oneOf = <const T extends readonly string[]>(values: T) =>
  Type.Unsafe<T[number]>(Type.Enum([...values], { description: `one of ${values.join(', ')}` }));
export const listOf = <const T extends readonly string[]>(values: T) =>
  Type.Array(oneOf(values), { description: `a list of one or more of ${values.join(', ')}`, minItems: 1 });
export const text = (description = 'a text that is not empty') => Type.String({ minLength: 1, description });
export const pattern = (pattern: string, description: string) => Type.String({ pattern, description });
export const flag = Type.Boolean({ description: 'true or false' });
export const integer = (minimum: number, maximum: number, description?: string) =>
  Type.Integer({ minimum, maximum, description: description ?? `a whole number from ${minimum} to ${maximum}` });
export const number = (minimum: number, maximum: number, description?: string) =>
  Type.Number({ minimum, maximum, description: description ?? `a number from ${minimum} to ${maximum}` });
export const list = <S extends TSchema>(
  items: S,
  description: string,
  bounds: { minItems?: number; maxItems?: number; uniqueItems?: boolean } = {},
) => Type.Array(items, { ...bounds, description });

export const count = integer(1, 1_000_000_000, 'a whole number of 1 or more');
export const milliseconds = integer(1, 86_400_000, 'a whole number of milliseconds, at most a day');
export const fraction = number(0, 1, 'a fraction from 0 to 1');
export const usd = (maximum: number) => number(0, maximum, 'an amount of USD, 0 or more');
export const day = pattern('^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])$', 'a day such as 2026-01-31');
export const names = (description: string) => list(text(), description);
export const address = text('a URL that starts with http:// or https://');
export const httpAddress = pattern('^https?://', 'an http(s) address');
export const key = text('a key, or a reference to an environment variable');
export const secret = text('a secret, or a reference to an environment variable');
export const headers = Type.Record(Type.String(), text(), { description: 'an object of header names and values' });
/** A price of one search or page. */
export const unitPrice = usd(limits.unit_price_usd_max);
