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
  ['all properties are required', object({ a: text, b: object({}) }), true],
  ['a property is optional', object({ a: text, b: text }, { required: ['a'] }), false],
  ['without a list of required properties', object({ a: text }, { required: undefined }), false],
  ['additional properties are allowed', object({ a: text }, { additionalProperties: undefined }), false],
  ['an object without properties allows any', { type: 'object' }, false],
  [
    'a list of objects with an optional property',
    { type: 'array', items: object({ a: text }, { required: [] }) },
    false,
  ],
  ['a union with additional properties', { anyOf: [text, { type: 'object', properties: {} }] }, false],
  [
    'a definition with additional properties',
    object({ a: { $ref: '#/$defs/a' } }, { $defs: { a: { type: 'object' } } }),
    false,
  ],
  ['an example that resembles a schema', object({ a: { enum: [{ properties: {} }] } }), true],
  ['a text', text, true],
])('whether a schema is strict: %s', (_title, schema, strict) => expect(isStrict(schema)).toBe(strict));

test('very deep nesting is not strict', () => {
  let schema: object = text;
  for (let i = 0; i < 10_000; i += 1) schema = { type: 'array', items: schema };
  expect(isStrict(schema)).toBe(false);
});
