import type { JsonObject, JsonValue } from './json.ts';
import { patternSample } from './pattern-sample.ts';

/** Below this depth only required members are made, so that recursive schemas end. */
const optional_depth_max = 3;
const depth_max = 12;

/** The whole schema, and the number of values that can still be made: a small schema can demand very many. */
interface Sampling {
  root: JsonObject;
  left: number;
}
const values_max = 10_000;
const values_min = 100;

const by_format: Record<string, string> = {
  'date-time': '2026-01-01T12:00:00Z',
  date: '2026-01-01',
  time: '12:00:00Z',
  duration: 'P1D',
  email: 'sample@example.com',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uuid: '00000000-0000-4000-8000-000000000000',
  uri: 'https://example.com/',
};

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function asNumber(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

/** The schema of a local reference such as `#/$defs/place`. Other references are ignored. */
function resolve(reference: string, root: JsonObject): JsonObject {
  let target: JsonValue | undefined = root;
  if (!reference.startsWith('#')) return {};
  for (const step of reference.slice(1).split('/').slice(1)) {
    const name = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');
    target = isObject(target) ? target[name] : undefined;
  }
  return isObject(target) ? target : {};
}

/** A schema with its `allOf` and `$ref` merged into it. */
function flatten(schema: JsonObject, root: JsonObject, depth: number): JsonObject {
  let flat = schema;
  if (typeof flat['$ref'] === 'string' && depth < depth_max) {
    const { $ref: reference, ...rest } = flat;
    flat = { ...flatten(resolve(reference as string, root), root, depth + 1), ...rest };
  }
  if (!Array.isArray(flat['allOf'])) return flat;
  const { allOf: parts, ...own } = flat;
  for (const part of parts as JsonValue[]) {
    if (!isObject(part)) continue;
    const merged = flatten(part, root, depth + 1);
    const required = [...((own['required'] as string[]) ?? []), ...((merged['required'] as string[]) ?? [])];
    const properties = {
      ...((own['properties'] as JsonObject) ?? {}),
      ...((merged['properties'] as JsonObject) ?? {}),
    };
    Object.assign(own, merged, { required, properties });
  }
  return own;
}

function sampleNumber(schema: JsonObject, integer: boolean): number {
  const step = asNumber(schema['multipleOf']) ?? (integer ? 1 : 0.5);
  const above = asNumber(schema['exclusiveMinimum']);
  const below = asNumber(schema['exclusiveMaximum']);
  const least = above === undefined ? asNumber(schema['minimum']) : Math.floor(above / step) * step + step;
  const most = below === undefined ? asNumber(schema['maximum']) : Math.ceil(below / step) * step - step;
  const lowest = least === undefined ? undefined : Math.ceil(least / step) * step;
  const preferred = Math.max(lowest ?? Number.NEGATIVE_INFINITY, step);
  return most !== undefined && preferred > most ? (lowest ?? Math.floor(most / step) * step) : preferred;
}

function sampleString(schema: JsonObject, name: string): string {
  if (typeof schema['pattern'] === 'string') return patternSample(schema['pattern']);
  const format = typeof schema['format'] === 'string' ? by_format[schema['format']] : undefined;
  if (format !== undefined) return format;
  const least = asNumber(schema['minLength']) ?? 0;
  const most = asNumber(schema['maxLength']) ?? Number.POSITIVE_INFINITY;
  return `sample ${name}`.padEnd(Math.min(least, 10_000), '.').slice(0, most);
}

function sampleArray(schema: JsonObject, sampling: Sampling, name: string, depth: number): JsonValue[] {
  const fixed = Array.isArray(schema['prefixItems']) ? (schema['prefixItems'] as JsonValue[]) : [];
  const items = fixed.map((item) => sample(isObject(item) ? item : {}, sampling, name, depth + 1));
  const most = asNumber(schema['maxItems']) ?? 100;
  const least = asNumber(schema['minItems']) ?? (depth < optional_depth_max ? 1 : 0);
  while (items.length < Math.min(least, most, 100)) {
    const item = sample(isObject(schema['items']) ? schema['items'] : {}, sampling, name, depth + 1);
    const repeated = schema['uniqueItems'] === true && items.length > 0;
    items.push(repeated && typeof item === 'string' ? `${item} ${items.length + 1}` : item);
  }
  return items;
}

function sampleObject(schema: JsonObject, sampling: Sampling, depth: number): JsonObject {
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  const required = new Set(Array.isArray(schema['required']) ? (schema['required'] as string[]) : []);
  const object: JsonObject = {};
  for (const [name, property] of Object.entries(properties)) {
    if (depth >= optional_depth_max && !required.has(name)) continue;
    object[name] = sample(isObject(property) ? property : {}, sampling, name, depth + 1);
  }
  for (const name of required) if (!(name in object)) object[name] = `sample ${name}`;
  return object;
}

function sample(unresolved: JsonObject, sampling: Sampling, name: string, depth: number): JsonValue {
  sampling.left -= 1;
  if (depth > depth_max || sampling.left < 0) return null;
  const schema = flatten(unresolved, sampling.root, depth);
  if ('const' in schema) return schema['const'] ?? null;
  if (Array.isArray(schema['enum'])) return (schema['enum'] as JsonValue[])[0] ?? null;
  const options = schema['anyOf'] ?? schema['oneOf'];
  if (Array.isArray(options) && options.length > 0) {
    const { anyOf: _any, oneOf: _one, ...shared } = schema;
    // At depth, the option without a reference ends the recursion: often `{"type":"null"}`.
    const plain = options.find((option) => isObject(option) && !('$ref' in option));
    const option = depth >= optional_depth_max ? (plain ?? options[0]) : options[0];
    return sample({ ...shared, ...(isObject(option) ? option : {}) }, sampling, name, depth + 1);
  }
  const types = Array.isArray(schema['type']) ? (schema['type'] as JsonValue[]) : [schema['type']];
  const type = types.find((one) => one !== 'null') ?? types[0];
  if (type === 'object' || (type === undefined && 'properties' in schema)) return sampleObject(schema, sampling, depth);
  if (type === 'array') return sampleArray(schema, sampling, name, depth);
  if (type === 'integer' || type === 'number') return sampleNumber(schema, type === 'integer');
  if (type === 'boolean') return true;
  if (type === 'null') return null;
  return sampleString(schema, name);
}

/**
 * Makes a value that satisfies a JSON Schema, always the same one. `of`: the number of schemas in an answer, which share the bound of
 * values. It ignores `not`, conditions and remote references.
 */
export function schemaSample(schema: JsonObject, of = 1): JsonValue {
  return sample(schema, { root: schema, left: Math.max(values_min, Math.floor(values_max / of)) }, 'text', 0);
}
