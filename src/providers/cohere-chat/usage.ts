import type { TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { asCount, asObject } from '../shared/json-shape.ts';

/**
 * The disjoint token classes of a usage object; undefined if it has no counts.
 *
 * Billing follows `billed_units`. `tokens` includes the provider's preamble, which is free, and is used only if there are no billed
 * units. `cached_tokens` includes the preamble too, so it may exceed the billed input.
 */
export function readUsage(usage: JsonObject): TokenClasses | undefined {
  const billed = asObject(usage['billed_units']);
  const counted = asObject(usage['tokens']);
  const input = asCount(billed?.['input_tokens']) ?? asCount(counted?.['input_tokens']);
  const output = asCount(billed?.['output_tokens']) ?? asCount(counted?.['output_tokens']);
  if (input === undefined && output === undefined) return undefined;
  const classes: TokenClasses = {};
  const cached = asCount(usage['cached_tokens']);
  const cacheRead = cached === undefined ? undefined : Math.min(cached, input ?? 0);
  if (cacheRead !== undefined) classes.in_cache_read = cacheRead;
  if (input !== undefined) classes.in_uncached = input - (cacheRead ?? 0);
  // Thinking is part of the output and has no count of its own.
  if (output !== undefined) classes.out_text = output;
  const searches = asCount(billed?.['search_units']);
  if (searches) classes.counts = { web_search: searches };
  return classes;
}
