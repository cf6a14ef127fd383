import { limits } from '../../limits.ts';
import type { CacheControl } from '../../schemas/inner.ts';
import { asObject } from '../shared/json-shape.ts';
import type { Encoding } from './encoding.ts';
import { isNova } from './family.ts';
import type { WireBlock, WireCachePoint, WireRequest } from './wire.ts';

/**
 * The cache point after a block with a hint; none for models without a prompt cache
 * (https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html). Only Claude caches declarations of tools, and only Claude
 * caches for an hour.
 */
export function cachePoint(
  hint: CacheControl | null | undefined,
  place: 'tools' | 'system' | 'messages',
  { family, addReport }: Encoding,
): WireCachePoint[] {
  if (hint?.type !== 'ephemeral') return [];
  if (family !== 'claude' && !(isNova(family) && place !== 'tools')) {
    addReport('dropped', 'cache_control', `this model caches no ${place}`);
    return [];
  }
  if (hint.ttl !== '1h') return [{ cachePoint: { type: 'default' } }];
  if (isNova(family)) {
    addReport('changed', 'cache_control', 'this model caches for five minutes');
    return [{ cachePoint: { type: 'default' } }];
  }
  return [{ cachePoint: { type: 'default', ttl: '1h' } }];
}

/** Whether a block is a cache point. */
export function isCachePoint(block: WireBlock): boolean {
  return block['cachePoint'] !== undefined;
}

/**
 * Moves cache points to places that the service accepts: not directly after a document or a video. Claude accepts one after a line
 * break in between (recorded); for other models the point goes before them. Points at the beginning of a message or after another
 * point are removed: they would mark nothing.
 */
export function placeCachePoints(blocks: readonly WireBlock[], encoding: Encoding): WireBlock[] {
  const placed: WireBlock[] = [];
  for (const block of blocks) {
    const last = placed.at(-1);
    if (!isCachePoint(block)) placed.push(block);
    else if (last === undefined) encoding.addReport('dropped', 'cache_control', 'there is nothing before it to cache');
    else if (isCachePoint(last)) continue;
    else if (!isLargeMedia(last)) placed.push(block);
    else if (encoding.family === 'claude') placed.push({ text: '\n' }, block);
    else {
      const at = placed.findLastIndex((one) => !isLargeMedia(one)) + 1;
      if (at === 0) encoding.addReport('dropped', 'cache_control', 'this model caches no document by itself');
      else if (!isCachePoint(placed[at - 1]!)) placed.splice(at, 0, block);
    }
  }
  return placed;
}

/** Documents and videos, which only some places accept. */
export function isLargeMedia(block: WireBlock): boolean {
  return block['document'] !== undefined || block['video'] !== undefined;
}

/** Limits the cache points of a request: at most four, of which the last are kept; hours before minutes. */
export function limitCachePoints(body: WireRequest, encoding: Encoding): void {
  const lists = [body.toolConfig?.tools, body.system, ...body.messages.map(({ content }) => content)];
  const holders = lists.flatMap((list = []) => list.filter(isCachePoint).map((block) => ({ list, block })));
  const surplus = Math.max(0, holders.length - limits.cache_breakpoints_max);
  for (const { list, block } of holders.slice(0, surplus)) {
    list.splice(list.indexOf(block), 1);
    encoding.addReport(
      'dropped',
      'cache_control',
      `at most ${limits.cache_breakpoints_max} breakpoints: the last ones are kept`,
    );
  }
  let isShort = false;
  for (const { list, block } of holders.slice(surplus)) {
    if (asObject(block['cachePoint'])?.['ttl'] !== '1h') isShort = true;
    else if (isShort) {
      list[list.indexOf(block)] = { cachePoint: { type: 'default' } };
      encoding.addReport(
        'changed',
        'cache_control',
        'a breakpoint of 1h cannot follow one of 5m: it was changed to 5m',
      );
    }
  }
}
