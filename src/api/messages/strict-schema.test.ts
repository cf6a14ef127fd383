import { expect, test } from 'vitest';
import { isStrict } from './strict-schema.ts';

const object = (properties: object, more: object = {}) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...more,
});
const text = { type: 'string' };

test.each<[string, unknown, boolean]>([
  ['all is required', object({ a: text, b: object({}) }), true],
  ['something may be left out', object({ a: text, b: text }, { required: ['a'] }), false],
  ['nothing is said of what is required', object({ a: text }, { required: undefined }), false],
  ['there may be more', object({ a: text }, { additionalProperties: undefined }), false],
  ['an object without properties may have any', { type: 'object' }, false],
  ['a list of what may have less', { type: 'array', items: object({ a: text }, { required: [] }) }, false],
  ['a choice of what may have more', { anyOf: [text, { type: 'object', properties: {} }] }, false],
  [
    'a definition that may have more',
    object({ a: { $ref: '#/$defs/a' } }, { $defs: { a: { type: 'object' } } }),
    false,
  ],
  ['an example that only looks like a schema', object({ a: { enum: [{ properties: {} }] } }), true],
  ['a text', text, true],
])('%s', (_title, schema, strict) => expect(isStrict(schema)).toBe(strict));

test('endless nesting is not strict', () => {
  let schema: object = text;
  for (let i = 0; i < 10_000; i += 1) schema = { type: 'array', items: schema };
  expect(isStrict(schema)).toBe(false);
});
