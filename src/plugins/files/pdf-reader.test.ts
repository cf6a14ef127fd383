import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { hostile, pdfOf, plainPdf } from '../../../test/pdf/hostile.ts';
import { inTier } from '../../../test/tier.ts';
import { createPdfReader, type PdfReader, PdfRefused, type PdfText } from './pdf-reader.ts';

/** A long limit for tests that are not about time: a busy machine fails none of them. */
const reader = createPdfReader({ ms_max: 60_000 });
const strict = createPdfReader({ ms_max: inTier(2_000, 4_000) });
afterAll(() => Promise.all([reader.stop(), strict.stop()]));

const fixture = (name: string) => readFileSync(new URL(`../../../test/pdf/fixtures/${name}`, import.meta.url));
const read = (
  bytes: Buffer,
  owner = 'a',
  signal = new AbortController().signal,
  by: PdfReader = reader,
): Promise<PdfText> => by.read(bytes, { owner, signal });
const refusal = (bytes: Buffer, by = reader): Promise<PdfRefused> =>
  read(bytes, 'a', undefined, by).then(
    ({ text }) => Promise.reject(new Error(`it was read: ${text.slice(0, 100)}`)),
    (error: unknown) => (error instanceof PdfRefused ? error : Promise.reject(error)),
  );

describe.each(['report-chromium.pdf', 'report-pdfkit.pdf'])('%s', (name) => {
  test('is read in order: ligatures, columns, tables, other scripts, and separate pages', async () => {
    const { text, pages } = await read(fixture(name));
    expect(pages).toBe(2);
    expect(text).toContain('Efficient offices file flowcharts: a first affair of fluffy ligatures.');
    expect(text.replaceAll('\n', ' ')).toMatch(/apples, until it has no more .* tell of them\. The right column tells/);
    expect(text).toContain('City Sales\nOslo 1,204.50\nZürich 980.00');
    expect(text).toContain('\n\nΕλληνικά και русский текст: naïve café, 12 € ≤ 15 €.');
  });
});

test('an earlier file does not change the result of the next one', async () => {
  const before = await read(fixture('report-pdfkit.pdf'));
  const { message } = await refusal(hostile['a million pages']!());
  expect(message).toBe('it has 1000000 pages, of which at most 1000 are read');
  expect(await read(fixture('report-pdfkit.pdf'))).toEqual(before);
});

test('programs in a file are not run, and its text is read', async () => {
  const action = '/OpenAction << /S /JavaScript /JS (app.alert\\(1\\); while \\(true\\) {}) >>';
  const bytes = plainPdf('Hello', `<< /Type /Catalog /Pages 2 0 R ${action} >>`);
  expect(await read(bytes)).toEqual({ text: 'Hello', pages: 1 });
});

test('a file that needs a password is refused with that reason', async () => {
  expect((await refusal(fixture('encrypted-pdfkit.pdf'))).message).toBe('it is encrypted, and needs a password');
});

test('a file of images alone has no text', async () => {
  expect(await read(fixture('picture-pdfkit.pdf'))).toEqual({ text: '', pages: 1 });
});

/** A truncated file: its remaining text is returned, or an error. */
test.each([0.2, 0.5, 0.9])('a file truncated at %f returns text of the whole file or an error', async (share) => {
  const whole = fixture('report-pdfkit.pdf');
  const result = await read(whole.subarray(0, whole.length * share)).catch((error: unknown) => error);
  if (result instanceof PdfRefused) expect(result.message).toMatch(/^it /);
  else expect((await read(whole)).text).toContain((result as PdfText).text.slice(0, 20));
});

/** Each takes a second of processor time and more; those without a test of their own in this file run in the second tier. */
const FEW = ['forms that draw the next one twice'];

/** On a busy machine the strict reader may refuse even this one for its time. */
const nextIsRead = () =>
  vi.waitFor(
    async () => expect(await read(plainPdf('next'), 'a', undefined, strict)).toEqual({ text: 'next', pages: 1 }),
    { timeout: 60_000 },
  );

describe('within limits', () => {
  test.each(inTier(FEW, Object.keys(hostile)))('%s', async (name) => {
    const result = await read(hostile[name]!(), 'a', undefined, strict).catch((error: unknown) => error);
    if (!(result instanceof PdfRefused)) expect((result as PdfText).text.length).toBeLessThan(100);
    else expect(result.message).toMatch(/^(?:it |reading it takes )/);
    // The next file is read.
    await nextIsRead();
  });

  test('300 MB of content in 300 KB is refused for its resources, and the next file is read', async () => {
    const { message } = await refusal(hostile['content of 300 MB in 300 KB']!(), strict);
    expect(message).toMatch(/unpacks to too much|too much memory|takes longer/);
    await nextIsRead();
  });

  test('a file above the size limit is refused unread', async () => {
    expect((await refusal(Buffer.alloc(33 * 1024 * 1024))).message).toMatch(/^it has 34603008 bytes, of which/);
  });
});

test('slow files of one owner do not delay others', async () => {
  const slow = hostile['forms that draw the next one twice']!();
  const ending = new AbortController();
  const theirs = [1, 2, 3].map(() => read(slow, 'slow', ending.signal).catch((error: unknown) => error));
  expect(await read(plainPdf('mine'), 'other')).toEqual({ text: 'mine', pages: 1 });
  ending.abort(new Error('gone'));
  for (const error of await Promise.all(theirs)) expect(error).toMatchObject({ message: 'gone' });
  expect(await read(plainPdf('after'), 'slow')).toEqual({ text: 'after', pages: 1 });
});

test('files of one owner above the waiting bound are refused at once, as a temporary failure', async () => {
  const bytes = plainPdf('x');
  const all = await Promise.allSettled(Array.from({ length: 20 }, () => read(bytes, 'many')));
  const refused = all.filter((one) => one.status === 'rejected');
  expect(refused).toHaveLength(3);
  expect(refused[0]!.reason).toMatchObject({ is_busy: true });
});

test('a file with a negative page count is refused, since pages are billed', async () => {
  const owing = pdfOf(['<< /Type /Catalog /Pages 2 0 R >>', '<< /Type /Pages /Kids [] /Count -5 >>']);
  expect((await refusal(owing)).message).toMatch(/not a whole PDF/);
});

test('an empty document is read as empty text or refused', async () => {
  const empty = pdfOf(['<< /Type /Catalog /Pages 2 0 R >>', '<< /Type /Pages /Kids [] /Count 0 >>']);
  const result = await read(empty).catch((error: unknown) => error);
  expect(result instanceof PdfRefused || (result as PdfText).text === '').toBe(true);
});
