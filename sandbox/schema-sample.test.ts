import Schema from 'typebox/schema';
import { expect, test } from 'vitest';
import type { JsonObject } from './json.ts';
import { schemaSample } from './schema-sample.ts';

const tree: JsonObject = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    children: { type: 'array', items: { $ref: '#/$defs/node' } },
    parent: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] },
  },
  required: ['name', 'children', 'parent'],
  additionalProperties: false,
};

test.each<[string, JsonObject]>([
  ['plain object', { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } } }],
  ['bounds', { type: 'object', properties: { a: { type: 'integer', minimum: 7, maximum: 9 } }, required: ['a'] }],
  ['exclusive bounds', { type: 'number', exclusiveMinimum: 4, exclusiveMaximum: 5 }],
  ['negative bounds', { type: 'integer', minimum: -9, maximum: -7 }],
  ['steps', { type: 'integer', multipleOf: 5, minimum: 11 }],
  ['enumeration', { enum: ['celsius', 'kelvin'] }],
  ['constant', { const: 4 }],
  ['nullable', { type: ['null', 'string'] }],
  ['lengths', { type: 'string', minLength: 30, maxLength: 31 }],
  ['pattern', { type: 'string', pattern: '^[A-Z]{3}-\\d{2,4}(x|y)?[^a-z]+\\.$' }],
  ['format', { type: 'string', format: 'email' }],
  ['array', { type: 'array', items: { type: 'boolean' }, minItems: 3 }],
  ['unique strings', { type: 'array', items: { type: 'string' }, minItems: 3, uniqueItems: true }],
  ['tuple', { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }], minItems: 2 }],
  ['one of', { oneOf: [{ type: 'object', properties: { a: { const: 1 } }, required: ['a'] }, { type: 'string' }] }],
  [
    'all of',
    { allOf: [{ type: 'object', properties: { a: { type: 'null' } }, required: ['a'] }, { required: ['b'] }] },
  ],
  ['a schema that contains itself', { $ref: '#/$defs/node', $defs: { node: tree } }],
  ['required without a property', { type: 'object', required: ['anything'] }],
])('makes a value that satisfies the schema: %s', (_name, schema) => {
  const value = schemaSample(schema);
  expect(Schema.Check(schema, value), JSON.stringify(value)).toBe(true);
});

test('the sample of a small schema that requires very many values is bounded', () => {
  const names = Array.from({ length: 30 }, (_, at) => `p${at}`);
  const node: JsonObject = {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { $ref: '#/$defs/node' }])),
    required: names,
  };
  expect(JSON.stringify(schemaSample({ $ref: '#/$defs/node', $defs: { node } })).length).toBeLessThan(1_000_000);
});
