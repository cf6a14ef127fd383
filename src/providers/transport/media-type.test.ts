import { expect, test } from 'vitest';
import { fitsKind, mediaTypeOf } from './media-type.ts';

const latin = (text: string) => Buffer.from(text.padEnd(80, '\x01'), 'latin1');

test.each([
  ['image/png', '\x89PNG\r\n\x1a\n'],
  ['image/jpeg', '\xff\xd8\xff\xe0'],
  ['image/gif', 'GIF89a'],
  ['image/webp', 'RIFF\x10\0\0\0WEBPVP8 '],
  ['image/bmp', 'BM\x36\x01\x02\x03\0\0\0\0'],
  ['image/tiff', 'II*\0'],
  ['image/avif', '\0\0\0\x1cftypavif'],
  ['image/heic', '\0\0\0\x1cftypheic'],
  ['audio/wav', 'RIFF\x10\0\0\0WAVEfmt '],
  ['audio/aiff', 'FORM\x10\0\0\0AIFF'],
  ['audio/mpeg', 'ID3\x04'],
  ['audio/mpeg', '\xff\xfb\x90\x64'],
  ['audio/aac', '\xff\xf1\x50\x80'],
  ['audio/flac', 'fLaC'],
  ['audio/ogg', 'OggS'],
  ['audio/mp4', '\0\0\0\x1cftypM4A '],
  ['video/mp4', '\0\0\0\x1cftypisom'],
  ['video/quicktime', '\0\0\0\x14ftypqt  '],
  ['video/webm', '\x1a\x45\xdf\xa3\x9fB\x86\x81\x01B\x82\x84webm'],
  ['video/x-matroska', '\x1a\x45\xdf\xa3\x9fB\x86\x81\x01B\x82\x88matroska'],
  ['video/mpeg', '\0\0\x01\xba'],
  ['application/pdf', '%PDF-1.7\n'],
  ['application/pdf', '\n\n%PDF-1.4\n'],
  ['application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'PK\x03\x04 word/document.xml'],
])('the type of bytes is detected from their beginning, whatever is declared: %s', (mimeType, head) => {
  expect(mediaTypeOf(latin(head), 'text/html')).toBe(mimeType);
});

test('text has its declared text type, or text/plain if another type is declared', () => {
  expect(mediaTypeOf(Buffer.from('a,b\n1,2\n'), 'text/csv; charset=utf-8')).toBe('text/csv');
  expect(mediaTypeOf(Buffer.from('{"a": "é"}'), 'application/json')).toBe('application/json');
  expect(mediaTypeOf(Buffer.from('plain'), 'image/png')).toBe('text/plain');
  expect(mediaTypeOf(Buffer.from('plain'), undefined)).toBe('text/plain');
});

test('unknown binary bytes have no type', () => {
  expect(mediaTypeOf(latin('\xff\xfe\x01\x02'), 'image/png')).toBeUndefined();
  expect(mediaTypeOf(Buffer.from('with a \0 in it'), 'text/plain')).toBeUndefined();
  expect(mediaTypeOf(latin('PK\x03\x04\0 an archive'), 'application/pdf')).toBeUndefined();
});

test('media types are accepted in the parts of their kind', () => {
  expect(fitsKind('image/png', 'image')).toBe(true);
  expect(fitsKind('text/html', 'image')).toBe(false);
  expect(fitsKind('application/pdf', 'image')).toBe(false);
  expect(fitsKind('video/mp4', 'audio')).toBe(true);
  expect(fitsKind('text/plain', 'video')).toBe(false);
  expect(fitsKind('application/pdf', 'file')).toBe(true);
});
