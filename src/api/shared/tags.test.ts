import { expect, test } from 'vitest';
import { tagsOf } from './tags.ts';

test.each<[string, Record<string, string>, unknown, string[] | undefined]>([
  ['none', {}, { metadata: { other: 'a' } }, undefined],
  ['comma-separated metadata', {}, { metadata: { tags: ' b, a ,,b' } }, ['a', 'b']],
  ['a list in metadata', {}, { metadata: { tags: ['b', 'a', 5] } }, ['a', 'b']],
  ['the header', { 'x-gateway-tags': 'team-a,night' }, null, ['night', 'team-a']],
  ['the header and metadata together', { 'x-gateway-tags': 'b' }, { metadata: { tags: 'a' } }, ['a', 'b']],
  ['at most eight tags', { 'x-gateway-tags': '1,2,3,4,5,6,7,8,9' }, {}, ['1', '2', '3', '4', '5', '6', '7', '8']],
  ['without a tag that is too long', {}, { metadata: { tags: `${'x'.repeat(65)},a` } }, ['a']],
  ['without a tag that cannot be stored', {}, { metadata: { tags: 'a\u0000,\ud800,b' } }, ['b']],
  ['a value that is not a text', {}, { metadata: { tags: 7 } }, undefined],
  ['no metadata', {}, { metadata: null }, undefined],
])('tags of a call: %s', (_title, headers, body, expected) => {
  expect(tagsOf(headers, body)).toEqual(expected);
});
