import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { inTier } from '../../test/tier.ts';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { parseForm } from './form.ts';
import { atOnce } from './turn-work.ts';

const parse = (body: Buffer, type: string) => atOnce(parseForm(body, type));

async function formOf(entries: [string, string | File][]): Promise<{ body: Buffer; type: string }> {
  const form = new FormData();
  for (const [name, value] of entries) form.append(name, value);
  const made = new Response(form);
  return { body: Buffer.from(await made.arrayBuffer()), type: made.headers.get('content-type') ?? '' };
}

test('texts and files are parsed unchanged; a repeated name is a list', async () => {
  const file = new File([new Uint8Array([0, 13, 10, 45, 45, 255])], 'a "quoted" näme.wav', { type: 'audio/wav' });
  const { body, type } = await formOf([
    ['model', 'a/b'],
    ['file', file],
    ['word[]', 'one'],
    ['word[]', 'two\r\nlines'],
    ['empty', ''],
    ['constructor', 'x'],
  ]);
  expect(parse(body, type)).toEqual({
    model: 'a/b',
    file: { bytes: Buffer.from([0, 13, 10, 45, 45, 255]), filename: 'a "quoted" näme.wav', type: 'audio/wav' },
    'word[]': ['one', 'two\r\nlines'],
    empty: '',
    constructor: 'x',
  });
});

test('a form may have a preamble, a quoted boundary and no parts', () => {
  const part = 'Content-Disposition: form-data; name=model\r\n\r\nx\r\n';
  expect(parse(Buffer.from(`hello\r\n--b\r\n${part}--b--\r\n`), 'multipart/form-data; boundary="b"')).toEqual({
    model: 'x',
  });
  expect(parse(Buffer.from('--b--\r\n'), 'multipart/form-data; boundary=b')).toEqual({});
});

describe('400 for', () => {
  const disposition = 'content-disposition: form-data; name="a"';
  test.each([
    ['no boundary', '--b--', 'multipart/form-data'],
    ['a boundary that does not occur', 'x', 'multipart/form-data; boundary=b'],
    ['a form without an end', `--b\r\n${disposition}\r\n\r\nx`, 'multipart/form-data; boundary=b'],
    ['a part without a head', '--b\r\nx\r\n--b--', 'multipart/form-data; boundary=b'],
    ['a preamble that is too long', `${'x'.repeat(5_000)}\r\n--b--`, 'multipart/form-data; boundary=b'],
    ['a part without a name', '--b\r\nx: y\r\n\r\nx\r\n--b--', 'multipart/form-data; boundary=b'],
    ['a head that is too long', `--b\r\n${'x'.repeat(5_000)}\r\n\r\nx\r\n--b--`, 'multipart/form-data; boundary=b'],
    [
      'a field that is too long',
      `--b\r\n${disposition}\r\n\r\n${'x'.repeat(limits.form_field_bytes_max + 1)}\r\n--b--`,
      'multipart/form-data; boundary=b',
    ],
    [
      'too many parts',
      `${`--b\r\n${disposition}\r\n\r\nx\r\n`.repeat(limits.form_parts_max + 1)}--b--`,
      'multipart/form-data; boundary=b',
    ],
    [
      'a file that occurs twice',
      `${`--b\r\n${disposition}; filename="f"\r\n\r\nx\r\n`.repeat(2)}--b--`,
      'multipart/form-data; boundary=b',
    ],
    [
      'a name that is not a field',
      '--b\r\ncontent-disposition: form-data; name="__proto__"\r\n\r\nx\r\n--b--',
      'multipart/form-data; boundary=b',
    ],
  ])('%s', (_what, body, type) => {
    expect(() => parse(Buffer.from(body), type)).toThrow(/multipart form is not valid/);
  });
});

test('any bytes are a form or a 400', async () => {
  const { body, type } = await formOf([
    ['model', 'a/b'],
    ['file', new File(['sound'], 'a.wav')],
  ]);
  fc.assert(
    fc.property(fc.nat(body.length), fc.uint8Array({ maxLength: 30 }), fc.boolean(), (at, put, cut) => {
      const changed = Buffer.concat([body.subarray(0, at), put, cut ? Buffer.alloc(0) : body.subarray(at)]);
      try {
        parse(changed, type);
      } catch (error) {
        expect(error).toBeInstanceOf(GatewayError);
      }
    }),
    { seed: 9, numRuns: inTier(200, 2_000) },
  );
});
