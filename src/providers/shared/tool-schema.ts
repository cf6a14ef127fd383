import type { JsonObject } from '../../schemas/json.ts';
import { asObject } from './json-shape.ts';

/**
 * The schema of a tool's arguments with `properties`, which are added if missing: OpenAI refuses `{}` and
 * `{"type": "object"}`, which tools of MCP without arguments have ("object schema missing properties").
 */
export function withProperties(schema: JsonObject): JsonObject {
  if (asObject(schema['properties']) !== undefined || (schema['type'] ?? 'object') !== 'object') return schema;
  if (['$ref', 'anyOf', 'oneOf', 'allOf'].some((name) => name in schema)) return schema;
  return { ...schema, type: 'object', properties: {} };
}
