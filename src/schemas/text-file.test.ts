import { expect, test } from 'vitest';
import { decodeText } from './text-file.ts';

const TABLE = 'a;b\r\nZürich;5 €';

test.each([
  ['UTF-8', Buffer.from(TABLE)],
  ['UTF-8 with a mark', Buffer.from(`\ufeff${TABLE}`)],
  ['UTF-16 with a mark', Buffer.from(`\ufeff${TABLE}`, 'utf16le')],
  ['UTF-16 the other way round', Buffer.from(`\ufeff${TABLE}`, 'utf16le').swap16()],
  ['UTF-16 without a mark', Buffer.from(TABLE, 'utf16le')],
  ['UTF-16 the other way round without a mark', Buffer.from(TABLE, 'utf16le').swap16()],
  ['windows-1252', Buffer.from('a;b\r\nZ\xfcrich;5 \x80', 'latin1')],
])('a text in %s keeps its letters', (_, bytes) => {
  expect(decodeText(bytes)).toBe(TABLE);
});

test('a UTF-8 text that is cut in a character loses that one alone', () => {
  expect(decodeText(Buffer.from('Zürich ist schön').subarray(0, -2))).toBe('Zürich ist sch\ufffd');
});

test('a replacement character that was written as one stays it', () => {
  expect(decodeText(Buffer.from('caf\ufffd'))).toBe('caf\ufffd');
});

test('an empty file is an empty text', () => {
  expect(decodeText(Buffer.alloc(0))).toBe('');
});
