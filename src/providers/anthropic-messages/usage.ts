import type { TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import { UpstreamError } from '../dialect.ts';
import { asArray, asCount, asObject, remainder } from '../shared/json-shape.ts';

/** Steps of other models that the usage of one answer counts. */
const USAGE_ITERATIONS_MAX = 200;

const COUNTED = ['input_tokens', 'output_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'];

/** Objects with members that are counted. */
const COUNTED_INSIDE: Readonly<Record<string, readonly string[]>> = lookupTable({
  cache_creation: ['ephemeral_5m_input_tokens', 'ephemeral_1h_input_tokens'],
  output_tokens_details: ['thinking_tokens'],
  server_tool_use: ['web_search_requests', 'web_fetch_requests', 'code_execution_requests'],
});

/**
 * The disjoint token classes of a usage object. On this wire `input_tokens` excludes the cache, and thinking is inside
 * `output_tokens` (https://platform.claude.com/docs/en/api/messages, `Usage`). A missing count stays undefined.
 */
export function readUsage(usage: JsonObject, model: string): TokenClasses {
  const classes: TokenClasses = {};
  set(classes, 'in_uncached', asCount(usage['input_tokens']));
  set(classes, 'in_cache_read', asCount(usage['cache_read_input_tokens']));
  readCacheWrites(classes, usage);
  const output = asCount(usage['output_tokens']);
  const thinking = asCount(asObject(usage['output_tokens_details'])?.['thinking_tokens']);
  if (output !== undefined) {
    const reasoning = Math.min(thinking ?? 0, output);
    classes.out_text = output - reasoning;
    if (thinking !== undefined) classes.out_reasoning = reasoning;
  }
  const serverTools = asObject(usage['server_tool_use']);
  if (serverTools !== undefined) {
    const counts: NonNullable<TokenClasses['counts']> = {};
    set(counts, 'web_search', asCount(serverTools['web_search_requests']));
    set(counts, 'web_fetch', asCount(serverTools['web_fetch_requests']));
    set(counts, 'code', asCount(serverTools['code_execution_requests']));
    classes.counts = counts;
  }
  const extra = readExtra(usage, model);
  if (extra.length > 0) classes.extra = extra;
  return classes;
}

/** The fields of a usage object that are not counted: service tier, region, speed, iterations, unknown counts. */
export function usageRest(usage: JsonObject): JsonObject {
  const rest = remainder(usage, [...COUNTED, ...Object.keys(COUNTED_INSIDE)]);
  for (const [name, counted] of Object.entries(COUNTED_INSIDE)) {
    const inside = remainder(asObject(usage[name]) ?? {}, counted);
    if (Object.keys(inside).length > 0) rest[name] = inside;
  }
  return rest;
}

/**
 * The five-minute and one-hour writes. A stream reports the split only in `message_start` and may raise the sum later: the hour's part
 * stays and the surplus is of five minutes. A smaller sum keeps the ratio of the split.
 */
function readCacheWrites(classes: TokenClasses, usage: JsonObject): void {
  const split = asObject(usage['cache_creation']);
  const short = asCount(split?.['ephemeral_5m_input_tokens']);
  const long = asCount(split?.['ephemeral_1h_input_tokens']);
  const reported = asCount(usage['cache_creation_input_tokens']);
  if (short === undefined && long === undefined) {
    set(classes, 'in_cache_write_5m', reported);
    return;
  }
  const sum = (short ?? 0) + (long ?? 0);
  const total = reported ?? sum;
  const hour = total >= sum ? (long ?? 0) : Math.floor((total * (long ?? 0)) / sum);
  classes.in_cache_write_5m = total - hour;
  classes.in_cache_write_1h = hour;
}

/**
 * Work that the top-level counts exclude: the adviser's (another model) and the compaction's. A `fallback_message` is not
 * included: with a server-side fallback the top level has that message's own count, which would be billed twice.
 */
function readExtra(usage: JsonObject, model: string): NonNullable<TokenClasses['extra']> {
  const extra: NonNullable<TokenClasses['extra']> = [];
  const iterations = asArray(usage['iterations']);
  if (iterations.length > USAGE_ITERATIONS_MAX) {
    throw new UpstreamError('invalid_response', `The provider counts more than ${USAGE_ITERATIONS_MAX} iterations.`);
  }
  for (const value of iterations) {
    const iteration = asObject(value);
    if (iteration === undefined) continue;
    const type = iteration['type'];
    if (type !== 'advisor_message' && type !== 'compaction') continue;
    const named = iteration['model'];
    extra.push({ model: typeof named === 'string' ? named : model, classes: readUsage(iteration, model) });
  }
  return extra;
}

function set<K extends string>(into: { [key in K]?: number }, key: K, value: number | undefined): void {
  if (value !== undefined) into[key] = value;
}
