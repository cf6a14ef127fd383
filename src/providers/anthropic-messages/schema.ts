import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asArray, asObject } from '../shared/json-shape.ts';

/** Keywords that the constrained decoder refuses (https://platform.claude.com/docs/en/build-with-claude/structured-outputs). */
const REFUSED: ReadonlySet<string> = new Set([
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'pattern',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
  'patternProperties',
  'propertyNames',
  'not',
  'if',
  'then',
  'else',
]);
const FORMATS: ReadonlySet<JsonValue | undefined> = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
]);
/** Keywords whose value is a map from names to schemas. */
const MAPS: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions']);

/**
 * A schema that the constrained decoder accepts: closed objects, `oneOf` as `anyOf`, and refused constraints appended to the
 * description, where the model still reads them. An acceptable schema is returned equal.
 */
export function constrainSchema(schema: JsonObject): JsonObject {
  const closed: JsonObject = {};
  const refused: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    const map = MAPS.has(key) ? asObject(value) : undefined;
    if (isRefused(key, value)) refused[key] = value;
    else if (map !== undefined) closed[key] = mapValues(map);
    else if (key === 'oneOf') closed['anyOf'] = asArray(value).map(constrain);
    else if (key === 'anyOf' || key === 'allOf' || key === 'items') closed[key] = constrain(value ?? null);
    else closed[key] = value;
  }
  if (isObjectSchema(schema)) closed['additionalProperties'] = false;
  if (Object.keys(refused).length > 0) {
    const constraints = Object.entries(refused).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
    const description = typeof schema['description'] === 'string' ? `${schema['description']} ` : '';
    closed['description'] = `${description}(${constraints.join(', ')})`;
  }
  return closed;
}

function isRefused(key: string, value: JsonValue | undefined): boolean {
  if (key === 'format') return !FORMATS.has(value);
  // The lengths 0 and 1 are the only supported minima.
  if (key === 'minItems') return value !== 0 && value !== 1;
  return REFUSED.has(key);
}

function isObjectSchema({ type, properties }: JsonObject): boolean {
  return type === 'object' || properties !== undefined || (Array.isArray(type) && type.includes('object'));
}

function constrain(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(constrain);
  const schema = asObject(value);
  return schema === undefined ? value : constrainSchema(schema);
}

function mapValues(map: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(map).map(([name, value]) => [name, constrain(value ?? null)]));
}
