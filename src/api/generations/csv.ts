import type { GenerationField, GenerationRow } from '../../schemas/generation-list.ts';

/** Spreadsheets run cells that begin so as formulas. */
const FORMULA = /^[=+\-@\t\r\n]/;

/** One cell. A text that a spreadsheet would run as a formula begins with an apostrophe. */
function cell(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return decimalText(value);
  if (typeof value === 'boolean') return String(value);
  const text = Array.isArray(value) ? value.join(' ') : String(value);
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n\t;]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Amounts below a millionth without an exponent. */
function decimalText(value: number): string {
  const text = String(value);
  return text.includes('e-') ? value.toFixed(12).replace(/0+$/, '') : text;
}

/** The first line of a table. */
export const csvHead = (fields: readonly GenerationField[]): string => `${fields.join(',')}\r\n`;

/** One line for each generation. */
export function csvLines(rows: readonly GenerationRow[], fields: readonly GenerationField[]): string {
  return rows.map((row) => `${fields.map((field) => cell(row[field])).join(',')}\r\n`).join('');
}
