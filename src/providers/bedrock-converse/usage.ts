import type { TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { asArray, asCount, asObject } from '../shared/json-shape.ts';

/**
 * The disjoint token classes of a usage object. On this wire `inputTokens` excludes the cache, and reasoning has no count of its own
 * (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_TokenUsage.html; in all recorded answers the total is the sum
 * of all four). A missing count stays undefined. The fields named `…TokenCount` repeat those without the suffix, so only the latter are
 * read.
 */
export function readUsage(usage: JsonObject): TokenClasses {
  const classes: TokenClasses = {};
  set(classes, 'in_uncached', asCount(usage['inputTokens']));
  set(classes, 'in_cache_read', asCount(usage['cacheReadInputTokens']));
  readCacheWrites(classes, usage);
  set(classes, 'out_text', asCount(usage['outputTokens']));
  return classes;
}

/** The details split the writes by duration; writes without details are of five minutes, the default. */
function readCacheWrites(classes: TokenClasses, usage: JsonObject): void {
  const written = asCount(usage['cacheWriteInputTokens']);
  let hour: number | undefined;
  let sum = 0;
  for (const value of asArray(usage['cacheDetails'])) {
    const detail = asObject(value);
    const tokens = asCount(detail?.['inputTokens']) ?? 0;
    sum += tokens;
    if (detail?.['ttl'] === '1h') hour = (hour ?? 0) + tokens;
  }
  if (written === undefined && sum === 0) return;
  const total = written ?? sum;
  const long = Math.min(hour ?? 0, total);
  classes.in_cache_write_5m = total - long;
  if (hour !== undefined) classes.in_cache_write_1h = long;
}

function set<K extends string>(into: { [key in K]?: number }, key: K, value: number | undefined): void {
  if (value !== undefined) into[key] = value;
}
