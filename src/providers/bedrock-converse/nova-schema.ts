import { limits } from '../../limits.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asObject } from '../shared/json-shape.ts';

/**
 * What may stand at the top of a schema for Nova. Its documentation names the first three alone
 * (https://docs.aws.amazon.com/nova/latest/userguide/prompting-tool-troubleshooting.html); the other two were taken in
 * recorded exchanges, while `$schema` and definitions are a 400: "extraneous key [definitions] is not permitted".
 */
const TAKEN: readonly string[] = ['type', 'properties', 'required', 'additionalProperties', 'title'];
const DEFINITION = /^#\/(?:\$defs|definitions)\/([^/]+)$/;

/**
 * The schema as Nova takes it, and the names of what was left out at its top. References to its definitions become what they
 * stand for; one that stands for itself, or makes the schema too long, becomes a schema that takes anything.
 */
export function novaSchema(schema: JsonObject): { schema: JsonObject; left_out: string[] } {
  const definitions = { ...asObject(schema['definitions']), ...asObject(schema['$defs']) };
  let room = limits.schema_expanded_chars_max;

  function expand(value: JsonValue, within: readonly string[]): JsonValue {
    if (Array.isArray(value)) return value.map((item) => expand(item, within));
    const told = asObject(value);
    if (told === undefined) return value;
    const name = typeof told['$ref'] === 'string' ? DEFINITION.exec(told['$ref'])?.[1] : undefined;
    const { $ref: _reference, ...beside } = told;
    if (name === undefined) return mapped(told, within);
    const meant = Object.hasOwn(definitions, name) ? asObject(definitions[name]) : undefined;
    if (meant === undefined || within.includes(name) || within.length === limits.schema_levels_max || room < 0) {
      return mapped(beside, within);
    }
    room -= JSON.stringify(meant).length;
    return { ...mapped(meant, [...within, name]), ...mapped(beside, within) };
  }

  function mapped(object: JsonObject, within: readonly string[]): JsonObject {
    return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, expand(value ?? null, within)]));
  }

  const top = asObject(expand({ ...schema, $defs: null, definitions: null }, [])) ?? {};
  const kept = TAKEN.filter((name) => top[name] !== undefined).map((name) => [name, top[name]]);
  const leftOut = Object.keys(top).filter((name) => !TAKEN.includes(name) && top[name] != null && name !== '$schema');
  return { schema: { properties: {}, ...Object.fromEntries(kept), type: 'object' }, left_out: leftOut };
}
