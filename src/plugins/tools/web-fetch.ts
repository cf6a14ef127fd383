import { GatewayError, invalidField } from '../../errors.ts';
import type { ServerTool, ToolOutcome } from '../../inference/tools/server-tools.ts';
import { limits } from '../../limits.ts';
import { MediaRefused, type PageFetcher } from '../../providers/transport/fetch-media.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { PdfReader } from '../files/pdf-reader.ts';
import { WEB_FETCH } from '../requested-tools.ts';
import { readFetchOptions } from '../tool-options.ts';
import { isAllowed } from '../web/domains.ts';
import { AS_DATA } from '../web/results.ts';
import { plainText } from '../web/search.ts';
import { pageText } from './page-text.ts';

/** Tokens of a page that a model gets if its call names no number. */
const PAGE_TOKENS_DEFAULT = 25_000;
/** Bytes that count as one token of a page. */
const PAGE_BYTES_PER_TOKEN = 4;

/** The readers of pages. */
export interface PageReaders {
  pages: PageFetcher;
  pdfs: PdfReader;
}

function urlOf({ url }: JsonObject): string {
  return typeof url === 'string' ? url.trim() : '';
}

/** Cuts a text to about `tokens` tokens, at four bytes each. */
function cutToTokens(text: string, tokens: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= tokens * PAGE_BYTES_PER_TOKEN) return text;
  // A split character is left out.
  return new TextDecoder().decode(bytes.subarray(0, tokens * PAGE_BYTES_PER_TOKEN), { stream: true });
}

/** The visible characters of a text, up to about `charsMax`. Yields to the event loop between pieces. */
async function visibleText(text: string, charsMax: number): Promise<string> {
  let visible = '';
  for (let at = 0; at < text.length && visible.length < charsMax; ) {
    if (at > 0) await new Promise((resolve) => setImmediate(resolve));
    const next = at + limits.page_slice_chars;
    const isSplit = (text.charCodeAt(next - 1) & 0xfc00) === 0xd800;
    const end = isSplit ? next - 1 : next;
    visible += plainText(text.slice(at, end), limits.page_slice_chars);
    at = end;
  }
  return visible;
}

/** The tool that reads a page of the public web. */
export function fetchTool(parameters: JsonObject, { pages, pdfs }: PageReaders): ServerTool {
  const webOptions = readFetchOptions(parameters, 'parameters');
  const tokensMax = webOptions.max_content_tokens ?? PAGE_TOKENS_DEFAULT;
  return {
    type: WEB_FETCH,
    declaration: {
      type: 'function',
      function: {
        name: 'web_fetch',
        description: 'Reads one web page and returns its text. Supported are HTML, plain text, JSON, XML and PDF.',
        parameters: {
          type: 'object',
          properties: { url: { type: 'string', description: 'The whole address, with https:// or http://.' } },
          required: ['url'],
        },
      },
    },
    cost_nano_max: 0,
    max_uses: webOptions.max_uses ?? limits.web_uses_max,
    query: urlOf,
    async run(args, { call, signal, now_ms }): Promise<ToolOutcome> {
      const url = urlOf(args);
      if (url === '') throw invalidField('url', 'must be a string that is not empty');
      const owner = call.principal.key_hash ?? call.principal.organization_id;
      try {
        const page = await pages.fetch(url, {
          signal,
          bytes_max: limits.page_bytes_max,
          owner,
          room: call.room,
          allows: (at) => isAllowed(webOptions.domains, at),
        });
        const charsMax = tokensMax * PAGE_BYTES_PER_TOKEN;
        const { title, text } = await pageText(page, { pdfs, chars_max: charsMax, owner, signal });
        const content = cutToTokens(await visibleText(text, charsMax), tokensMax);
        const shown = plainText(title, limits.web_title_chars_max);
        const answer = {
          note: AS_DATA,
          url: page.url,
          title: shown,
          content,
          status: 'completed',
          retrieved_at: new Date(now_ms).toISOString(),
        };
        return {
          content: JSON.stringify(answer),
          sources: [
            { url: page.url, title: shown, content: content.slice(0, limits.web_result_chars_default).toWellFormed() },
          ],
          cost_nano: 0,
          counts: { web_fetch: 1 },
        };
      } catch (error) {
        if (signal.aborted || !(error instanceof MediaRefused || error instanceof GatewayError)) throw error;
        const answer = { url, status: 'failed', error: error.message };
        return {
          content: JSON.stringify(answer),
          sources: [],
          cost_nano: 0,
          counts: { web_fetch: 1 },
          has_failed: true,
        };
      }
    },
  };
}
