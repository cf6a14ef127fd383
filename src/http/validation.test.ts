import Type, { type TSchema } from 'typebox';
import { describe, expect, test } from 'vitest';
import { explain, ValidationError, validatorCompiler } from './validation.ts';

const orNull = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));
const Part = Type.Union([
  Type.Object({ type: Type.Literal('text'), text: Type.String() }),
  Type.Object({
    type: Type.Union([Type.Literal('image'), Type.Literal('picture')]),
    url: Type.String({ minLength: 1 }),
  }),
]);
const Body = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 5 }),
    count: orNull(Type.Integer({ minimum: 1, maximum: 9 })),
    ratio: orNull(Type.Number({ exclusiveMinimum: 0, exclusiveMaximum: 1 })),
    kind: orNull(Type.Union([Type.Literal('a'), Type.Literal('b')])),
    parts: Type.Optional(Type.Union([Type.String(), Type.Array(Part, { minItems: 1, maxItems: 2 })])),
    one: orNull(Part),
    tool: Type.Optional(
      Type.Union([
        Type.Object({ type: Type.Optional(Type.Literal('mine')), mine: Type.Integer() }),
        Type.Object({ type: Type.String({ not: { const: 'mine' } }) }),
      ]),
    ),
    bias: Type.Optional(
      Type.Record(Type.String({ pattern: '^[0-9]+$' }), Type.Number(), { additionalProperties: false }),
    ),
    input: Type.Optional(
      Type.Union([
        Type.String(),
        Type.Array(Type.String({ minLength: 1 }), { minItems: 1 }),
        Type.Array(Type.Integer(), { minItems: 1 }),
        Type.Array(Type.Array(Type.Integer(), { minItems: 1 }), { minItems: 1 }),
      ]),
    ),
    language: orNull(Type.String({ pattern: '^[a-z]{2}$' })),
    labels: Type.Optional(Type.Record(Type.String(), Type.String(), { maxProperties: 1 })),
  },
  { additionalProperties: false },
);

test.each<[string, object, string]>([
  ['a missing field', {}, 'name is required'],
  ['a wrong type', { name: 5 }, 'name must be a string'],
  ['an empty string', { name: '' }, 'name must not be empty'],
  ['a string that is too long', { name: 'abcdef' }, 'name must have at most 5 characters'],
  ['a fraction for an integer', { name: 'x', count: 1.5 }, 'count must be an integer or null'],
  ['a number that is too small', { name: 'x', count: 0 }, 'count must be at least 1'],
  ['a number that is too large', { name: 'x', count: 10 }, 'count must be at most 9'],
  [
    'a number beyond the range of numbers',
    { name: 'x', ratio: Number.POSITIVE_INFINITY },
    'ratio must be a number or null',
  ],
  ['a name that does not fit the pattern', { name: 'x', bias: { a: 1 } }, 'bias.a is not a known field'],
  ['a value under a name of a pattern', { name: 'x', bias: { 12: 'a' } }, 'bias["12"] must be a number'],
  ['an exclusive lower bound', { name: 'x', ratio: 0 }, 'ratio must be greater than 0'],
  ['an exclusive upper bound', { name: 'x', ratio: 1 }, 'ratio must be less than 1'],
  ['a value outside an enumeration', { name: 'x', kind: 'c' }, 'kind must be one of "a", "b"'],
  [
    'an unknown kind of part',
    { name: 'x', parts: [{ type: 'smell' }] },
    'parts[0].type must be one of "text", "image", "picture"',
  ],
  ['a part of a known kind without its field', { name: 'x', parts: [{ type: 'text' }] }, 'parts[0].text is required'],
  ['a second name of a kind', { name: 'x', parts: [{ type: 'picture', url: '' }] }, 'parts[0].url must not be empty'],
  ['a union inside a union', { name: 'x', one: { type: 'picture' } }, 'one.url is required'],
  ['a kind that must have another shape', { name: 'x', tool: { type: 'mine' } }, 'tool.mine is required'],
  ['a kind that may be omitted', { name: 'x', tool: { mine: '1' } }, 'tool.mine must be an integer'],
  ['too few items', { name: 'x', parts: [] }, 'parts must have at least 1 item'],
  [
    'too many items',
    { name: 'x', parts: Array(3).fill({ type: 'text', text: '' }) },
    'parts must have at most 2 items',
  ],
  ['an empty list in a union of lists', { name: 'x', input: [] }, 'input must have at least 1 item'],
  ['an item of a list in a union of lists', { name: 'x', input: ['a', ''] }, 'input[1] must not be empty'],
  ['a second kind of item', { name: 'x', input: ['a', 1] }, 'input[1] must be a string'],
  ['a fraction in a list of integers', { name: 'x', input: [1.5] }, 'input[0] must be an integer'],
  ['a list in a list', { name: 'x', input: [[1], []] }, 'input[1] must have at least 1 item'],
  [
    'an item of no list in the union',
    { name: 'x', input: [true] },
    'input[0] must be a string or an integer or an array',
  ],
  ['a text that does not fit its pattern', { name: 'x', language: 'x1' }, 'language must match pattern "^[a-z]{2}$"'],
  ['too many entries', { name: 'x', labels: { a: '1', b: '2' } }, 'labels must have at most 1 entries'],
  ['a wrong entry', { name: 'x', labels: { 'a b': 1 } }, 'labels["a b"] must be a string'],
  ['an unknown field', { name: 'x', extra: 1 }, 'extra is not a known field'],
])('%s is reported with its path and rule', (_title, value, sentence) => {
  const validate = validatorCompiler({ schema: Body, httpPart: 'body', method: 'POST', url: '/' });
  const { error } = validate(value) as { error: ValidationError };
  expect(error).toBeInstanceOf(ValidationError);
  expect(error.message.replace(/ \(and \d+ more\)$/, '')).toBe(sentence);
});

test('a value that breaks one rule is reported once', () => {
  const validate = validatorCompiler({ schema: Body, httpPart: 'body', method: 'POST', url: '/' });
  const { error } = validate({ name: 'x', language: 'x1' }) as { error: ValidationError };
  expect(error.violations).toEqual([{ path: 'language', rule: 'must match pattern "^[a-z]{2}$"' }]);
});

test('a value that fits the schema passes as the same object', () => {
  const validate = validatorCompiler({ schema: Body, httpPart: 'body', method: 'POST', url: '/' });
  const value = { name: 'x', count: null, parts: [{ type: 'picture', url: 'u' }] };
  expect((validate(value) as { value: unknown }).value).toBe(value);
});

describe('conversion', () => {
  const schema = Type.Object({ limit: Type.Integer() });
  test('query strings are converted to the types of their schema', () => {
    const validate = validatorCompiler({ schema, httpPart: 'querystring', method: 'GET', url: '/' });
    expect(validate({ limit: '12' })).toEqual({ value: { limit: 12 } });
    expect((validate({ limit: 'many' }) as { error: Error }).error.message).toBe('limit must be an integer');
  });
  test('bodies are not converted', () => {
    const validate = validatorCompiler({ schema, httpPart: 'body', method: 'POST', url: '/' });
    expect((validate({ limit: '12' }) as { error: Error }).error.message).toBe('limit must be an integer');
  });
});

test('a constraint without an explanation has the message of the compiled check', () => {
  const schema = Type.Object({ count: Type.Integer({ multipleOf: 2 }) });
  expect(explain(schema as never, { count: 3 }, '')).toEqual([]);
  const validate = validatorCompiler({ schema, httpPart: 'body', method: 'POST', url: '/' });
  expect((validate({ count: 3 }) as { error: Error }).error.message).toMatch(/^count .*multiple/);
});

test.each([
  ['the smallest value', { name: 'x', count: 1 }],
  ['the largest value', { name: 'x', count: 9 }],
  ['the longest value', { name: 'abcde', parts: Array(2).fill({ type: 'text', text: '' }) }],
])('%s within its bounds breaks no rule, also if another field is wrong', (_title, value) => {
  expect(explain(Body, value, '')).toEqual([]);
  expect(explain(Body, { ...value, extra: 1 }, '')).toEqual([{ path: 'extra', rule: 'is not a known field' }]);
});

test('a field that is undefined counts as absent', () => {
  expect(explain(Body, { name: 'x', kind: undefined, extra: undefined }, '')).toEqual([]);
});

test('the message names an excluded value', () => {
  expect(explain({ type: 'string', not: { const: 'mine' } }, 'mine', 'type')).toEqual([
    { path: 'type', rule: 'must not be "mine"' },
  ]);
});

test('at most twenty violations are listed', () => {
  const validate = validatorCompiler({ schema: Body, httpPart: 'body', method: 'POST', url: '/' });
  const extras = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`extra${n}`, n]));
  const { error } = validate({ name: 'x', ...extras }) as { error: ValidationError };
  expect(error.violations).toHaveLength(20);
});

test.each([
  ['12', 12],
  ['-3', -3],
  ['007', 7],
])('an integer of a query string is read from its digits: %s', (text, value) => {
  const check = queryValidator();
  expect(check({ count: text, word: text })).toEqual({ value: { count: value, word: text } });
});

test.each(['', ' 5', '1.5', '1e3', '0x10', 'true', 'null', ['5', '6']])(
  'a text that is not an integer is refused: %j',
  (text) => {
    const { error } = queryValidator()({ count: text }) as { error: Error };
    expect(error.message).toBe('count must be an integer');
  },
);

test('a name that every object inherits is not a field', () => {
  const body = Type.Object({ name: Type.String() }, { additionalProperties: false });
  expect(explain(body as never, { name: 'x', toString: 1, hasOwnProperty: 2 }, '')).toEqual([
    { path: 'toString', rule: 'is not a known field' },
    { path: 'hasOwnProperty', rule: 'is not a known field' },
  ]);
});

function queryValidator() {
  const schema = Type.Object({ count: Type.Optional(Type.Integer()), word: Type.Optional(Type.String()) });
  return validatorCompiler({ schema, method: 'GET', url: '/', httpPart: 'querystring' });
}
