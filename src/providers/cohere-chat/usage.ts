import type { TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asObject } from '../shared/json-shape.ts';

/**
 * The disjoint token classes of a usage object; undefined if it has no counts.
 *
 * Billing follows `billed_units`. `tokens` includes the provider's preamble, which is free, and is used only if there are no billed
 * units. `cached_tokens` includes the preamble too, so it may exceed the billed input.
 */
export function readUsage(usage: JsonObject): TokenClasses | undefined {
  const billed = asObject(usage['billed_units']);
  const counted = asObject(usage['tokens']);
  const input = count(billed?.['input_tokens']) ?? count(counted?.['input_tokens']);
  const output = count(billed?.['output_tokens']) ?? count(counted?.['output_tokens']);
  if (input === undefined && output === undefined) return undefined;
  const classes: TokenClasses = {};
  const cached = count(usage['cached_tokens']);
  const cacheRead = cached === undefined ? undefined : Math.min(cached, input ?? 0);
  if (cacheRead !== undefined) classes.in_cache_read = cacheRead;
  if (input !== undefined) classes.in_uncached = input - (cacheRead ?? 0);
  // Thinking is part of the output and has no count of its own.
  if (output !== undefined) classes.out_text = output;
  const searches = count(billed?.['search_units']);
  if (searches) classes.counts = { web_search: searches };
  return classes;
}

/** Rounds down: the provider sends whole numbers as floats. */
function count(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.floor(value) : undefined;
}
