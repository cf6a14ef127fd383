import type { IncomingHttpHeaders } from 'node:http';
import { headerOf } from '../../http/aliases.ts';
import { isStorable } from '../../schemas/text.ts';

/** Tags of one call, and the characters of each. What exceeds a bound is left out. */
const TAGS_MAX = 8;
const TAG_CHARS_MAX = 64;
/** Characters of the header and of each text in the body that are read. */
const TAGS_CHARS_MAX = 1_024;

/**
 * The tags of a call: those in `metadata.tags` (comma-separated text or a list of texts) and those in the header `x-gateway-tags`
 * (comma-separated), sorted, each once. Undefined if there are none.
 */
export function tagsOf(headers: IncomingHttpHeaders, body: unknown): string[] | undefined {
  const header = headerOf(headers, 'x-gateway-tags');
  const { metadata } = (body ?? {}) as { metadata?: { tags?: unknown } | null };
  // A text or a number has no such member.
  const listed = metadata?.tags;
  if (header === undefined && listed === undefined) return undefined;
  const texts = [...(Array.isArray(listed) ? listed.slice(0, TAGS_MAX) : [listed]), header];
  const tags = new Set<string>();
  for (const text of texts) {
    if (typeof text !== 'string') continue;
    for (const part of text.slice(0, TAGS_CHARS_MAX).split(',')) {
      const tag = part.trim();
      if (tag !== '' && tag.length <= TAG_CHARS_MAX && isStorable(tag) && tags.size < TAGS_MAX) tags.add(tag);
    }
  }
  return tags.size === 0 ? undefined : [...tags].sort();
}
