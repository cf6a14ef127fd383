import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { Media, MediaNeed } from '../../providers/dialect.ts';
import { dialectOf } from '../../providers/dialects.ts';
import { inlinesMedia, webMedia } from '../../providers/shared/media-addresses.ts';
import { type FetchedMedia, type MediaFetcher, MediaRefused } from '../../providers/transport/fetch-media.ts';
import type { Candidate } from '../../routing/plan.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { ChatRequest, Message } from '../../schemas/inner.ts';
import { decodeText } from '../../schemas/text-file.ts';
import { CallCancelled } from '../attempt/upstream-call.ts';
import type { Call } from '../call.ts';
import { DATA_MEMBERS, dataOf } from '../money/sent-data.ts';

/** The media of one call. Each address is fetched once, for all attempts. */
export interface CallMedia {
  /**
   * The media that an attempt needs; fetches what is missing and applies the caller's filters to texts. Throws `GatewayError` 400 that
   * names the field, 403 if a filter blocks a text, 503 or 413 if there is no memory, `CallCancelled` if the client leaves first.
   */
  gather(needs: readonly MediaNeed[]): Promise<Media>;
}

/** No media. */
export const NO_MEDIA: Media = new Map();

const NO_NEEDS: readonly MediaNeed[] = [];

/** The media to fetch before a chat request can be encoded for an endpoint. */
export function mediaNeeds(request: ChatRequest, candidate: Candidate): readonly MediaNeed[] {
  if (!contentsOf(request).has_more) return NO_NEEDS;
  const { endpoint, provider } = candidate;
  const dialect = dialectOf(endpoint.dialect ?? provider.dialect);
  const needs = dialect.requiredMedia(request, endpoint);
  if (!inlinesMedia(dialect, endpoint)) return needs;
  const urls = new Set(needs.map(({ url }) => url));
  return [...needs, ...webMedia(request.messages).filter(({ url }) => !urls.has(url))];
}

/** The field of the request that has an address. */
function fieldOf(messages: readonly Message[], url: string, place: string): string {
  for (const [at, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const [partAt, part] of content.entries()) {
      if (dataOf(part) === url) return `${place}[${at}].content[${partAt}].${DATA_MEMBERS[part.type]}`;
    }
  }
  return place;
}

/** Filters a fetched text like a text of the client. */
async function filtered(media: FetchedMedia, screening: Call['screening']): Promise<FetchedMedia> {
  if (screening === undefined || !/^text\/|^application\/json$/.test(media.mime_type)) return media;
  const text = decodeText(Buffer.from(media.base64, 'base64'));
  const [passed = ''] = await screening.texts([text]);
  if (passed === text) return media;
  const bytes = Buffer.from(passed);
  return { ...media, base64: bytes.toString('base64'), bytes: bytes.length };
}

/** Holds the media of a call in memory for as long as the call. `place`: the client's name of the field that the messages come from. */
export function createCallMedia(call: Call, fetcher: MediaFetcher, place = 'messages'): CallMedia {
  const fetched = new Map<string, Promise<FetchedMedia>>();
  const running = new Set<string>();
  const owner = call.principal.key_hash ?? call.principal.kind;
  let bytes = 0;

  function refuse(need: MediaNeed, reason: string, cause?: unknown): GatewayError {
    const field = fieldOf(call.request.messages, need.url, place);
    return new GatewayError(400, `${field} cannot be fetched: ${reason}`, { cause });
  }

  async function fetchOne(need: MediaNeed, signal: AbortSignal): Promise<FetchedMedia> {
    const most = limits.media_request_bytes_max;
    try {
      const media = await fetcher.fetch(need, { signal, bytes_max: Math.max(0, most - bytes), owner, room: call.room });
      bytes += media.bytes;
      if (bytes > most)
        throw new MediaRefused(`together with the other files of the request it is larger than ${most} bytes`);
      return await filtered(media, call.screening);
    } catch (error) {
      throw error instanceof MediaRefused ? refuse(need, error.message, error) : error;
    }
  }

  async function fetchAll(needs: readonly MediaNeed[], signal: AbortSignal): Promise<Media> {
    const missing = [...new Map(needs.map((need) => [need.url, need])).values()].filter(({ url }) => !fetched.has(url));
    if (fetched.size + missing.length > limits.media_urls_max) {
      throw refuse(missing[0]!, `a request may have at most ${limits.media_urls_max} of them`);
    }
    const work = async () => {
      for (let need = missing.shift(); need !== undefined; need = missing.shift()) {
        const one = fetchOne(need, signal).catch((error: unknown) => {
          if (error instanceof GatewayError) running.delete(need.url);
          throw error;
        });
        running.add(need.url);
        fetched.set(need.url, one);
        await one;
        running.delete(need.url);
      }
    };
    await Promise.all(Array.from({ length: limits.media_fetches_per_request_max }, work));
    return new Map(await Promise.all(needs.map(async ({ url }) => [url, await fetched.get(url)!] as const)));
  }

  return {
    async gather(needs) {
      if (needs.length === 0) return NO_MEDIA;
      const ending = new AbortController();
      const forget = call.cancellation.onCancel(() => ending.abort(new CallCancelled({ may_be_billed: false })));
      try {
        return await fetchAll(needs, ending.signal);
      } finally {
        forget();
        // A failure ends the other fetches; another endpoint may start them again.
        ending.abort();
        for (const url of running) fetched.delete(url);
        running.clear();
      }
    },
  };
}
