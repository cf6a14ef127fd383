import fc from 'fast-check';

/** JSON Schema as TypeBox writes it. */
interface Schema {
  type?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  patternProperties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  minimum?: number;
  exclusiveMinimum?: number;
  maximum?: number;
  maxLength?: number;
  maxItems?: number;
  minItems?: number;
  minLength?: number;
  pattern?: string;
}

const TEXTS = [
  'x',
  'Hi\n',
  '{"a":1}',
  '\ud800',
  '\u0000',
  '[1',
  'data:image/png;base64,AA==',
  'data:text/plain,hi',
  '__proto__',
];

/** Fields that no schema has: odd shapes under names that code may read. */
const stray = fc.dictionary(
  fc.constantFrom(
    ...['ext', 'signature', '__proto__', 'toString', 'reasoning_details', 'tool_calls', 'content', 'native', 'block'],
    ...['images', 'audio', 'annotations', 'cache_control', 'file', 'image_url', 'extra', 'trace', 'length', 'then'],
  ),
  fc.oneof(
    fc.constantFrom(null, 0, '', [], {}, [null], { rest: null }, { wire: 'x', rest: [] }),
    fc.jsonValue({ maxDepth: 2 }),
  ),
  { maxKeys: 2 },
);

/** Any value that a schema accepts: often with nulls and missing members, with unknown fields if they are allowed. */
export function anyOf(schema: Schema, depth = 0): fc.Arbitrary<unknown> {
  if ('const' in schema) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map((one) => anyOf(one, depth)));
  switch (schema.type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
    case 'number': {
      const least = schema.minimum ?? (schema.exclusiveMinimum === undefined ? 0 : 1);
      return fc.constantFrom(least, schema.maximum ?? least + 1);
    }
    case 'string':
      return anyText(schema);
    case 'array': {
      const { items = {}, minItems = 0, maxItems = 3 } = schema;
      return fc.array(anyOf(items, depth + 1), {
        minLength: minItems,
        maxLength: Math.max(minItems, Math.min(maxItems, 3)),
      });
    }
    case 'object':
      return anyObject(schema, depth);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

function anyText({ pattern, minLength = 0, maxLength = 1_000 }: Schema): fc.Arbitrary<string> {
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern)).map((text) => text.slice(0, maxLength));
  return fc.constantFrom(...(minLength === 0 ? ['', ...TEXTS] : TEXTS)).map((text) => text.slice(0, maxLength));
}

function anyObject({ properties = {}, required = [], ...schema }: Schema, depth: number): fc.Arbitrary<unknown> {
  const members = Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, anyOf(one, depth + 1)]));
  const known = fc.record(members, { requiredKeys: required });
  const [pattern] = Object.values(schema.patternProperties ?? {});
  if (pattern !== undefined)
    return fc.dictionary(fc.constantFrom('a', '1', 'b c'), anyOf(pattern, depth + 1), { maxKeys: 2 });
  if (schema.additionalProperties !== true || depth > 6) return known;
  return fc
    .tuple(known, fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: stray }))
    .map(([one, more]) => {
      const both: Record<string, unknown> = {};
      for (const [name, value] of [...Object.entries(more), ...Object.entries(one)]) {
        Object.defineProperty(both, name, { value, enumerable: true, configurable: true, writable: true });
      }
      return both;
    });
}
