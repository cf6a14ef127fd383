import type { TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { asArray, asCount, asObject, asText } from '../shared/json-shape.ts';
import { asItem } from './wire.ts';

/**
 * The disjoint token classes of a response; undefined if there are none. Cached and written tokens are inside
 * `input_tokens`, reasoning inside `output_tokens` (https://platform.openai.com/docs/api-reference/responses/object).
 */
export function readUsage(response: JsonObject): TokenClasses | undefined {
  const usage = asObject(response['usage']);
  const input = asCount(usage?.['input_tokens']);
  const output = asCount(usage?.['output_tokens']);
  if (usage === undefined || (input === undefined && output === undefined)) return undefined;
  const classes: TokenClasses = {};
  if (input !== undefined) readInput(classes, input, asObject(usage['input_tokens_details']) ?? {});
  const reasoning = asCount(asObject(usage['output_tokens_details'])?.['reasoning_tokens']);
  if (output !== undefined) {
    const thought = Math.min(reasoning ?? 0, output);
    if (reasoning !== undefined) classes.out_reasoning = thought;
    classes.out_text = output - thought;
  }
  const searches = countSearches(response);
  if (searches !== undefined) classes.counts = { web_search: searches };
  const extra = readImages(response);
  if (extra !== undefined) classes.extra = [extra];
  return classes;
}

function readInput(classes: TokenClasses, input: number, details: JsonObject): void {
  const read = asCount(details['cached_tokens']);
  const written = asCount(details['cache_write_tokens']);
  let rest = input;
  if (read !== undefined) {
    classes.in_cache_read = Math.min(read, rest);
    rest -= classes.in_cache_read;
  }
  if (written !== undefined) {
    classes.in_cache_write_5m = Math.min(written, rest);
    rest -= classes.in_cache_write_5m;
  }
  classes.in_uncached = rest;
}

/** Searches are billed; opening a page and searching in it are not (https://platform.openai.com/docs/pricing). */
function countSearches(response: JsonObject): number | undefined {
  const requests = asCount(asObject(asObject(response['tool_usage'])?.['web_search'])?.['num_requests']);
  if (requests !== undefined) return requests;
  // xAI counts all tools that it ran and bills each (https://docs.x.ai/docs/models).
  const run = asCount(asObject(response['usage'])?.['num_server_side_tools_used']);
  if (run) return run;
  const calls = asArray(response['output']).filter((value) => {
    const item = asItem(value);
    return item?.type === 'web_search_call' && (asObject(item['action'])?.['type'] ?? 'search') === 'search';
  });
  return calls.length === 0 ? undefined : calls.length;
}

/** Tokens of images that a tool generated, at the price of the model that generated them. */
function readImages(response: JsonObject): NonNullable<TokenClasses['extra']>[number] | undefined {
  const imageUsage = asObject(asObject(response['tool_usage'])?.['image_gen']);
  if (imageUsage === undefined || !asCount(imageUsage['total_tokens'])) return undefined;
  const input = asObject(imageUsage['input_tokens_details']) ?? {};
  const output = asObject(imageUsage['output_tokens_details']) ?? {};
  const tool = asArray(response['tools'])
    .map(asObject)
    .find((entry) => entry?.['type'] === 'image_generation');
  const allIn = asCount(imageUsage['input_tokens']) ?? 0;
  const allOut = asCount(imageUsage['output_tokens']) ?? 0;
  const inImage = Math.min(asCount(input['image_tokens']) ?? 0, allIn);
  // Without details, the output is images.
  const outText = Math.min(asCount(output['text_tokens']) ?? 0, allOut);
  return {
    model: asText(tool?.['model']) || 'gpt-image-1',
    classes: { in_uncached: allIn - inImage, in_image: inImage, out_text: outText, out_image: allOut - outText },
  };
}
