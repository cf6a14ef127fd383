/** Amounts below a millionth without an exponent. */
const decimalText = (value: number): string =>
  String(value).includes('e-') ? value.toFixed(12).replace(/0+$/, '') : String(value);

/** A cell of a CSV file, as the API writes it. A text that a spreadsheet would run as a formula gets an apostrophe in front. */
function cell(value: string | number | null): string {
  if (value === null) return '';
  if (typeof value === 'number') return decimalText(value);
  const safe = /^[=+\-@\t\r\n]/.test(value) ? `'${value}` : value;
  return /[",\r\n\t;]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The text of a CSV file (RFC 4180). */
export function csvOf(header: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  return [header, ...rows].map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

/** Makes the browser save a text as a file. */
export function download(name: string, text: string, type = 'text/csv;charset=utf-8'): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
