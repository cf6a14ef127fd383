import type { JsonValue } from '../../src/schemas/json.ts';

/** Every path in an answer that shows internal data of the gateway. */
export function leaksOf(value: JsonValue | undefined, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((entry, i) => leaksOf(entry, `${path}[${i}]`));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, entry]) =>
    name === 'ext' || (name === 'type' && entry === 'native') ? [`${path}.${name}`] : leaksOf(entry, `${path}.${name}`),
  );
}
