import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { Media, MediaNeed } from '../../providers/dialect.ts';
import { type FetchedMedia, type MediaFetcher, MediaRefused } from '../../providers/transport/fetch-media.ts';
import type { InnerPart, Message } from '../../schemas/inner.ts';
import { decodeText } from '../../schemas/text-file.ts';
import { CallCancelled } from '../attempt/exchange.ts';
import type { Call } from '../call.ts';

/** What one call has fetched: each address once, whichever attempts need it. */
export interface CallMedia {
  /**
   * What an attempt needs, fetched where it is not there yet, texts as the caller's filters let them through. Throws `GatewayError` 400
   * that names the field, 403 where a filter blocks it, 503 or 413 where there is no memory for it, `CallCancelled` when the client left first.
   */
  gather(needs: readonly MediaNeed[]): Promise<Media>;
}

/** Nothing was needed. */
export const NO_MEDIA: Media = new Map();

function urlOf(part: InnerPart): [url: string | undefined, member: string] {
  switch (part.type) {
    case 'image_url':
      return [part.image_url.url, 'image_url.url'];
    case 'file':
      return [part.file.file_data, 'file.file_data'];
    case 'video_url':
      return [part.video_url.url, 'video_url.url'];
    case 'input_audio':
      return [part.input_audio.data, 'input_audio.data'];
    default:
      return [undefined, ''];
  }
}

/** Where the client wrote an address. */
function fieldOf(messages: readonly Message[], url: string, place: string): string {
  for (const [at, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const [part_at, part] of content.entries()) {
      const [told, member] = urlOf(part);
      if (told === url) return `${place}[${at}].content[${part_at}].${member}`;
    }
  }
  return place;
}

/** Of what was fetched, a text is held against the caller's filters as if the client had sent it. */
async function screened(found: FetchedMedia, screening: Call['screening']): Promise<FetchedMedia> {
  if (screening === undefined || !/^text\/|^application\/json$/.test(found.mime_type)) return found;
  const text = decodeText(Buffer.from(found.base64, 'base64'));
  const [passed = ''] = await screening.texts([text]);
  if (passed === text) return found;
  const bytes = Buffer.from(passed);
  return { ...found, base64: bytes.toString('base64'), bytes: bytes.length };
}

/** Starts with nothing fetched; what it holds goes with the call. `place` is where its client wrote what stands in its messages. */
export function createCallMedia(call: Call, fetcher: MediaFetcher, place = 'messages'): CallMedia {
  const fetched = new Map<string, Promise<FetchedMedia>>();
  const under_way = new Set<string>();
  const owner = call.principal.key_hash ?? call.principal.kind;
  let bytes = 0;

  function refuse(need: MediaNeed, reason: string, cause?: unknown): GatewayError {
    const field = fieldOf(call.request.messages, need.url, place);
    return new GatewayError(400, `${field} cannot be fetched: ${reason}`, { cause });
  }

  async function fetchOne(need: MediaNeed, signal: AbortSignal): Promise<FetchedMedia> {
    const most = limits.media_request_bytes_max;
    try {
      const found = await fetcher.fetch(need, { signal, bytes_max: Math.max(0, most - bytes), owner, room: call.room });
      bytes += found.bytes;
      if (bytes > most)
        throw new MediaRefused(`together with the other files of the request it is larger than ${most} bytes`);
      return await screened(found, call.screening);
    } catch (error) {
      throw error instanceof MediaRefused ? refuse(need, error.message, error) : error;
    }
  }

  async function fetchAll(needs: readonly MediaNeed[], signal: AbortSignal): Promise<Media> {
    const missing = needs.filter(
      ({ url }, at) => !fetched.has(url) && needs.findIndex((one) => one.url === url) === at,
    );
    if (fetched.size + missing.length > limits.media_urls_max) {
      throw refuse(missing[0]!, `a request may have at most ${limits.media_urls_max} of them`);
    }
    const work = async () => {
      for (let need = missing.shift(); need !== undefined; need = missing.shift()) {
        const one = fetchOne(need, signal).catch((error: unknown) => {
          if (error instanceof GatewayError) under_way.delete(need.url);
          throw error;
        });
        under_way.add(need.url);
        fetched.set(need.url, one);
        await one;
        under_way.delete(need.url);
      }
    };
    await Promise.all(Array.from({ length: limits.media_fetches_per_request_max }, work));
    const found = await Promise.all(needs.map(async ({ url }) => [url, await fetched.get(url)!] as const));
    return new Map(found);
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
        // One that failed ends the others, whose bytes nobody will want, but perhaps another endpoint.
        ending.abort();
        for (const url of under_way) fetched.delete(url);
        under_way.clear();
      }
    },
  };
}
