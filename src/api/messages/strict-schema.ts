import { limits } from '../../limits.ts';

/**
 * Whether a schema fulfills OpenAI's strict mode: objects allow no additional properties, and require all properties
 * (https://platform.openai.com/docs/guides/structured-outputs). Anthropic's form allows optional properties.
 */
export function isStrict(schema: unknown, levelsMax: number = limits.schema_levels_max): boolean {
  if (levelsMax <= 0) return false;
  if (Array.isArray(schema)) return schema.every((child) => isStrict(child, levelsMax - 1));
  if (typeof schema !== 'object' || schema === null) return true;
  const { properties, required, additionalProperties, enum: _enum, const: _const, ...others } = schema as Schema;
  if (properties !== undefined || others['type'] === 'object') {
    if (additionalProperties !== false) return false;
    const names = Object.keys(properties ?? {});
    if (!names.every((name) => required?.includes(name))) return false;
  }
  return [...Object.values(properties ?? {}), ...Object.values(others)].every((child) =>
    isStrict(child, levelsMax - 1),
  );
}

type Schema = Record<string, unknown> & { properties?: object; required?: unknown[]; additionalProperties?: unknown };
