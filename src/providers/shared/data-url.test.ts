import { describe, expect, test } from 'vitest';
import { readDataUrl } from './data-url.ts';

describe('a data URL', () => {
  test.each([
    ['data:image/png;base64,AAAA', 'image/png', 'AAAA'],
    ['DATA:Image/PNG;Charset=x; BASE64 ,AAAA', 'image/png', 'AAAA'],
    ['data:image/png;base64;x=y,AAAA', 'image/png', 'AAAA'],
    ['data:image/JPG;base64,AAAA', 'image/jpeg', 'AAAA'],
    ['data:;base64,AAAA', 'text/plain', 'AAAA'],
    ['data:,a%20b', 'text/plain', Buffer.from('a b').toString('base64')],
    ['data:base64,a', 'base64', Buffer.from('a').toString('base64')],
    ['data:text/csv;base64x,a', 'text/csv', Buffer.from('a').toString('base64')],
  ])('%s is read', (url, mediaType, base64) => {
    expect(readDataUrl(url)).toEqual({ media_type: mediaType, base64 });
  });

  test('with millions of parameters is read without a list of them', () => {
    expect(readDataUrl(`data:image/png${';'.repeat(60_000_000)},x`)?.media_type).toBe('image/png');
  });

  test('of any other form is not read', () => {
    expect(readDataUrl('https://example.com/a,b')).toBeUndefined();
    expect(readDataUrl('data:image/png;base64')).toBeUndefined();
  });
});
