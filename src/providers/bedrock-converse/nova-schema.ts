import { limits } from '../../limits.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asObject } from '../shared/json-shape.ts';

/** Characters that the expanded references of one schema may have. */
const SCHEMA_EXPANDED_CHARS_MAX = 256 * 1024;

/**
 * The keywords at the top of a schema that Nova accepts. Its documentation names only the first three
 * (https://docs.aws.amazon.com/nova/latest/userguide/prompting-tool-troubleshooting.html); the other two were accepted in recorded
 * exchanges, while `$schema` and definitions are a 400: "extraneous key [definitions] is not permitted".
 */
const ACCEPTED: readonly string[] = ['type', 'properties', 'required', 'additionalProperties', 'title'];
const DEFINITION = /^#\/(?:\$defs|definitions)\/([^/]+)$/;

/**
 * The schema in the form that Nova accepts, and the keywords dropped from its top. References to its definitions are expanded; a
 * recursive one, or one that makes the schema too long, becomes a schema that accepts anything.
 */
export function novaSchema(schema: JsonObject): { schema: JsonObject; left_out: string[] } {
  const definitions = { ...asObject(schema['definitions']), ...asObject(schema['$defs']) };
  let charsLeft = SCHEMA_EXPANDED_CHARS_MAX;

  function expand(value: JsonValue, within: readonly string[]): JsonValue {
    if (Array.isArray(value)) return value.map((item) => expand(item, within));
    const object = asObject(value);
    if (object === undefined) return value;
    const name = typeof object['$ref'] === 'string' ? DEFINITION.exec(object['$ref'])?.[1] : undefined;
    const { $ref: _reference, ...siblings } = object;
    if (name === undefined) return mapped(object, within);
    const definition = Object.hasOwn(definitions, name) ? asObject(definitions[name]) : undefined;
    if (
      definition === undefined ||
      within.includes(name) ||
      within.length === limits.schema_levels_max ||
      charsLeft < 0
    ) {
      return mapped(siblings, within);
    }
    charsLeft -= JSON.stringify(definition).length;
    return { ...mapped(definition, [...within, name]), ...mapped(siblings, within) };
  }

  function mapped(object: JsonObject, within: readonly string[]): JsonObject {
    return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, expand(value ?? null, within)]));
  }

  const top = asObject(expand({ ...schema, $defs: null, definitions: null }, [])) ?? {};
  const kept = ACCEPTED.filter((name) => top[name] !== undefined).map((name) => [name, top[name]]);
  const leftOut = Object.keys(top).filter(
    (name) => !ACCEPTED.includes(name) && top[name] != null && name !== '$schema',
  );
  return { schema: { properties: {}, ...Object.fromEntries(kept), type: 'object' }, left_out: leftOut };
}
