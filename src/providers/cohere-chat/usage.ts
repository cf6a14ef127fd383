import type { TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asObject } from '../shared/json-shape.ts';

/**
 * The disjoint token classes of a usage object; undefined when it tells nothing.
 *
 * Money follows `billed_units`; `tokens` holds the provider's own preamble as well, which is free, and counts only where
 * no units are told. `cached_tokens` counts the preamble too, so it may be more than what is billed.
 */
export function readUsage(usage: JsonObject): TokenClasses | undefined {
  const billed = asObject(usage['billed_units']);
  const counted = asObject(usage['tokens']);
  const input = count(billed?.['input_tokens']) ?? count(counted?.['input_tokens']);
  const output = count(billed?.['output_tokens']) ?? count(counted?.['output_tokens']);
  if (input === undefined && output === undefined) return undefined;
  const classes: TokenClasses = {};
  const cached = count(usage['cached_tokens']);
  const read = cached === undefined ? undefined : Math.min(cached, input ?? 0);
  if (read !== undefined) classes.in_cache_read = read;
  if (input !== undefined) classes.in_uncached = input - (read ?? 0);
  // Thinking is among the output and not told apart.
  if (output !== undefined) classes.out_text = output;
  const searches = count(billed?.['search_units']);
  if (searches) classes.counts = { web_search: searches };
  return classes;
}

/** The provider sends whole numbers as floating ones. */
function count(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.floor(value) : undefined;
}
