import { detailsPath } from '../../catalog/describe.ts';
import type { Model } from '../../catalog/model.ts';
import { limits } from '../../limits.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';

export const feedContentType = 'application/rss+xml; charset=utf-8';

/** The addresses of the feed and of the pages that its items link to. */
export interface FeedPlace {
  /** Without a trailing slash. */
  origin: string;
  /** Path and query of the feed itself. */
  path: string;
  /** Whether items link to a conversation with the model instead of its endpoints. */
  chat_links: boolean;
}

/**
 * An RSS 2.0 feed (https://www.rssboard.org/rss-specification) of models in the order of the list. Items have the same content as those of
 * the public service.
 */
export function modelFeed(models: readonly Model[], { origin, path, chat_links }: FeedPlace): string {
  const items = models.map((model) => {
    const link = `${origin}${chat_links ? `/?model=${encodeURIComponent(model.id)}` : detailsPath(model)}`;
    return `<item>
<title>${cdata(`${model.name} (${model.id})`)}</title>
<link>${escaped(link)}</link>
<guid isPermaLink="false">${escaped(model.canonical_slug)}</guid>
<description>${cdata(asHtml(model.description))}</description>
<pubDate>${new Date(model.created * 1000).toUTCString()}</pubDate>
</item>`;
  });
  const newest = models.reduce((latest, { created }) => Math.max(latest, created), 0);
  return `<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom">
<channel>
<title>Models of this gateway</title>
<link>${escaped(`${origin}/`)}</link>
<description>The models that can be called here, newest first.</description>
<language>en</language>
<lastBuildDate>${new Date(newest * 1000).toUTCString()}</lastBuildDate>
<ttl>60</ttl>
<atom:link href="${escaped(`${origin}${path}`)}" rel="self" type="application/rss+xml"/>
${items.join('\n')}
</channel>
</rss>
`;
}

/** Characters that XML 1.0 does not allow: controls, lone surrogates, and two others (section 2.2, `Char`). */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what the pattern must match
const UNWRITABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;

function writable(text: string): string {
  return text.toWellFormed().replace(UNWRITABLE, '\ufffd');
}

const entities: Readonly<Record<string, string>> = lookupTable({
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
});

/** Escapes text between tags or in an attribute. */
function escaped(text: string): string {
  return writable(text).replace(/[&<>"']/g, (character) => entities[character] ?? '');
}

/** Text as a CDATA section; an end marker inside it is split. */
function cdata(text: string): string {
  return `<![CDATA[${writable(text).replaceAll(']]>', ']]]]><![CDATA[>')}]]>`;
}

/** The beginning of a text, as inert HTML. */
function asHtml(text: string): string {
  const characters = [...text];
  const { feed_description_chars_max } = limits;
  const start =
    characters.length <= feed_description_chars_max
      ? text
      : `${characters.slice(0, feed_description_chars_max).join('').trimEnd()}...`;
  const paragraphs = start.split(/\n\s*\n/).map((paragraph) => paragraph.trim());
  return paragraphs.map((paragraph) => `<p>${escaped(paragraph)}</p>`).join('');
}
