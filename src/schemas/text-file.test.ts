import { expect, test } from 'vitest';
import { decodeText } from './text-file.ts';

const TABLE = 'a;b\r\nZürich;5 €';

test.each([
  ['UTF-8', Buffer.from(TABLE)],
  ['UTF-8 with a byte order mark', Buffer.from(`\ufeff${TABLE}`)],
  ['UTF-16 with a byte order mark', Buffer.from(`\ufeff${TABLE}`, 'utf16le')],
  ['big-endian UTF-16 with a byte order mark', Buffer.from(`\ufeff${TABLE}`, 'utf16le').swap16()],
  ['UTF-16 without a byte order mark', Buffer.from(TABLE, 'utf16le')],
  ['big-endian UTF-16 without a byte order mark', Buffer.from(TABLE, 'utf16le').swap16()],
  ['windows-1252', Buffer.from('a;b\r\nZ\xfcrich;5 \x80', 'latin1')],
])('a text in %s is decoded without loss', (_, bytes) => {
  expect(decodeText(bytes)).toBe(TABLE);
});

test('a UTF-8 text that is cut inside a character loses this character alone', () => {
  expect(decodeText(Buffer.from('Zürich ist schön').subarray(0, -2))).toBe('Zürich ist sch\ufffd');
});

test('a replacement character in the text is kept', () => {
  expect(decodeText(Buffer.from('caf\ufffd'))).toBe('caf\ufffd');
});

test('an empty file is an empty text', () => {
  expect(decodeText(Buffer.alloc(0))).toBe('');
});
