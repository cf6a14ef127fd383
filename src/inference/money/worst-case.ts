import { sniffSound, soundMs } from '../../audio/sound.ts';
import type { Endpoint } from '../../catalog/model.ts';
import { pricesInReach } from '../../catalog/price-list.ts';
import { atOnce } from '../../http/turn-work.ts';
import { limits } from '../../limits.ts';
import type { Media as FetchedMedia } from '../../providers/dialect.ts';
import { readDataUrl } from '../../providers/shared/data-url.ts';
import { cacheMarksOf } from '../../providers/shared/worst-case.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { InnerPart, InnerTool, Native } from '../../schemas/inner.ts';
import type { Prices } from '../../schemas/prices.ts';
import type { PreparedAttempt } from '../attempt/attempt.ts';
import { cacheMarks, matches, type Planner } from './payload-search.ts';
import { jsonWithout, sentDataOf, writtenChars } from './sent-data.ts';

/** Tokens that may go in, by what they are priced as. */
export interface PromptTokens {
  text: number;
  image: number;
  audio: number;
}

/** What an attempt may cost at most, as a line: `costOf` reads it. Prices in pico-USD, dearest class of each kind. */
export interface WorstCaseCost {
  /** One for each price list that may come to apply. */
  lines: readonly { fixed_pico: number; output_pico: number; afterDiscountPpm: number }[];
  /** The output bound that is sent; what the model may think beside it is in `fixed_pico`. */
  output_tokens: number;
}

/** A bit more than what floating point can lose where sums leave the exact integers. */
const INEXACT = 1 + 1e-12;

const MILLION = 1_000_000;

/** A quotient, rounded up as charges are. */
function upTo(amount: number, divisor: number): number {
  if (!Number.isSafeInteger(amount)) return Math.ceil((amount / divisor) * INEXACT);
  const rest = amount % divisor;
  return (amount - rest) / divisor + (rest > 0 ? 1 : 0);
}

const toNano = (pico: number) => upTo(pico, 1000);

/** What the attempt costs at most if so many tokens come out, in nano-USD. */
export function costOf(exposure: WorstCaseCost, output_tokens: number): number {
  let most = 0;
  for (const { fixed_pico, output_pico, afterDiscountPpm } of exposure.lines) {
    const pico = fixed_pico + output_tokens * output_pico;
    most = Math.max(most, toNano(afterDiscountPpm === MILLION ? pico : upTo(pico * afterDiscountPpm, MILLION)));
  }
  return most;
}

/** The most output tokens that an amount pays for, not more than the bound that is sent. */
export function outputFor(exposure: WorstCaseCost, granted_nano: number): number {
  let [low, high] = [0, exposure.output_tokens];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (costOf(exposure, middle) <= granted_nano) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Data that goes upstream as base64: priced by what it shows, not by its length. */
function dataOf(part: InnerPart): string | undefined {
  switch (part.type) {
    case 'image_url':
      return part.image_url.url;
    case 'input_audio':
      return part.input_audio.data;
    case 'video_url':
      return part.video_url.url;
    case 'file':
      // Clients may send null for what a file does not have.
      return part.file.file_data ?? undefined;
    default:
      return undefined;
  }
}

/** Data that is written out (RFC 2397) and not in base64: a dialect may write it anew, so that the payload does not tell if it was sent. */
function isWrittenOut(data: string): boolean {
  return /^data:[^,]*,/i.test(data) && !/^data:[^,]*;\s*base64\s*,/i.test(data);
}

/** The media type of a part's data, of fetched ones as found; empty where nothing tells. */
function typeOf(told: string | undefined, fetched: FetchedMedia): string {
  if (told === undefined) return '';
  return fetched.get(told)?.mime_type ?? readDataUrl(told)?.media_type ?? '';
}

/** The base64 itself; undefined for a URL that points elsewhere. */
function base64Of(data: string, is_bare: boolean): string | undefined {
  const is_url = /^data:/i.test(data);
  if (is_url) return data.slice(data.indexOf(',') + 1);
  // Some providers take an address in its place.
  return is_bare && !/^[a-z][a-z0-9+.-]*:/i.test(data) ? data : undefined;
}

/**
 * The most tokens of one image. GPT-4o mini counts 2,833 and 5,667 a tile, of which there are 8 at most; other GPT models
 * at most 10,000 patches (https://platform.openai.com/docs/guides/images-vision). Elsewhere the largest known is 16,384 (Qwen-VL,
 * `max_pixels` of its processor); Claude takes at most 4,784 (https://platform.claude.com/docs/en/build-with-claude/vision).
 */
export function imageTokens(tokenizer: string, upstream_model: string): number {
  if (upstream_model.includes('gpt-4o-mini')) return 2_833 + 8 * 5_667;
  return tokenizer === 'GPT' ? 10_000 : 16_384;
}

/**
 * Of the tokens of a film, those of its sound: 32 a second beside 66 at least
 * (https://ai.google.dev/gemini-api/docs/video-understanding).
 */
const SOUND_SHARE = 1 / 3;

/** Sound of 8 kbit/s, less than what is in use, at 32 tokens a second (https://ai.google.dev/gemini-api/docs/audio), twice. */
const SOUND_BYTES_PER_TOKEN = 16;

/**
 * The most tokens of a sound: by its bytes, and by its length where it can be measured, since silence takes next to no bytes in
 * most formats. Undefined for one that takes too long to measure.
 */
function soundTokens(base64: string): number | undefined {
  if (base64.length > (limits.sound_bytes_max * 4) / 3) return undefined;
  const by_bytes = Math.ceil((base64.length * 3) / 4 / SOUND_BYTES_PER_TOKEN);
  const bytes = Buffer.from(base64, 'base64');
  const format = sniffSound(bytes);
  const duration_ms = (format && soundMs(bytes, format)) ?? 0;
  return Math.max(by_bytes, Math.ceil((duration_ms / 1000) * limits.sound_tokens_per_second));
}

/** What a part may be read as: by what its data are said to be, whichever kind of part they came in. */
function readAs(part: InnerPart, media_type: string): 'image' | 'audio' | 'video' | 'file' {
  const kind = media_type.split('/')[0];
  if (kind === 'video' || kind === 'audio') return kind;
  if (part.type === 'video_url') return 'video';
  if (part.type === 'input_audio') return 'audio';
  return part.type === 'image_url' && (kind === 'image' || kind === '') ? 'image' : 'file';
}

/** The most tokens of what was read as such, beside its text; undefined: as many as the model takes. */
function tokensOf(kind: ReturnType<typeof readAs>, data: string | undefined, image_tokens: number): number | undefined {
  if (kind === 'image') return image_tokens;
  // A film is counted by its seconds, and a still picture may last for hours in a few bytes.
  if (data === undefined || kind === 'video') return undefined;
  if (kind === 'audio') return soundTokens(data);
  // A document is compressed text and a picture of each page: two tokens a byte are over what any page was seen to cost.
  return image_tokens + 2 * Math.ceil((data.length * 3) / 4);
}

/** What of a payload is not text: its base64, and what that may count. */
export interface Media {
  image: number;
  audio: number;
  /** The base64 of parts that are in the payload. */
  data: string[];
  /** Something is only pointed at, or runs at the provider: the prompt may be as long as the model takes. */
  is_open: boolean;
}

/** All data that a request's parts may put into a payload. */
function* dataIn({ request, media: fetched }: PreparedAttempt): Generator<string> {
  for (const { content, images } of request.messages) {
    for (const { image_url } of images ?? []) {
      const data = base64Of(image_url.url, false);
      if (data !== undefined) yield data;
    }
    if (!Array.isArray(content)) continue;
    for (const part of content) {
      const told = dataOf(part);
      if (told === undefined) continue;
      const bytes = fetched.get(told)?.base64;
      if (bytes !== undefined) yield bytes;
      const data = base64Of(told, part.type === 'input_audio');
      if (data !== undefined) yield data;
    }
  }
}

function isNative(part: InnerPart): part is Native {
  return part.type === 'native';
}

/** The most that a prompt counts at an endpoint, or is taken to where that is not known. */
function mostTokens(endpoint: Endpoint): number {
  const context = contextOf(endpoint);
  return Number.isFinite(context) ? context : limits.prompt_tokens_unknown;
}

/** Looks at the request's parts once; the body tells which of them were sent. Yields where others may be served. */
export function* mediaSteps(prepared: PreparedAttempt): Planner<Media> {
  const { request, payload, candidate, dialect } = prepared;
  const media: Media = { image: 0, audio: 0, data: [], is_open: false };
  if (contentsOf(request).has_more) yield* countParts(prepared, media);
  const { unseenMedia: unseen } = dialect.worstCase;
  if (unseen !== undefined && (yield* matches(unseen.pattern, payload))) {
    media.is_open = true;
    const share = (yield* matches(unseen.sound, payload)) ? 1 : SOUND_SHARE;
    media.audio = Math.max(media.audio, Math.ceil(mostTokens(candidate.endpoint) * share));
  }
  return media;
}

/** The same at once, for what is not long. */
export function mediaOf(prepared: PreparedAttempt): Media {
  return atOnce(mediaSteps(prepared));
}

function* countParts(prepared: PreparedAttempt, media: Media): Planner<void> {
  const { request, encoded, candidate, dialect, media: fetched } = prepared;
  const sent = yield* sentDataOf(encoded.body, dataIn(prepared));
  const image_tokens = imageTokens(candidate.model.tokenizer, candidate.endpoint.upstream_model);
  const most = mostTokens(candidate.endpoint);
  for (const { content, images, ext } of request.messages) {
    const natives = [...(ext?.natives ?? []), ...(Array.isArray(content) ? content.filter(isNative) : [])];
    for (const { wire, block } of natives) {
      if (wire === dialect.wire) media.image += image_tokens * dialect.worstCase.picturesIn(block);
    }
    // Pictures that the model made itself, where they go back to it.
    for (const { image_url } of images ?? []) {
      const data = base64Of(image_url.url, false);
      if (data === undefined) continue;
      const mark = yield* sent.markOf(data);
      if (!sent.has(mark)) continue;
      if (sent.take(mark)) media.data.push(data);
      media.image += image_tokens;
    }
    if (!Array.isArray(content)) continue;
    for (const part of content) {
      if (part.type === 'text' || part.type === 'native') continue;
      const told = dataOf(part);
      const bytes = told === undefined ? undefined : fetched.get(told)?.base64;
      const is_inlined = bytes !== undefined && sent.has(yield* sent.markOf(bytes));
      const data = is_inlined ? bytes : told && base64Of(told, part.type === 'input_audio');
      const mark = data === undefined ? undefined : yield* sent.markOf(data);
      // What the dialect left out costs nothing; its length must not be taken off the others' either.
      const is_shown = mark === undefined || sent.has(mark);
      if (!is_shown && !(told !== undefined && isWrittenOut(told))) continue;
      if (data !== undefined && mark !== undefined && is_shown && sent.take(mark)) media.data.push(data);
      const kind = readAs(part, typeOf(told, fetched));
      const tokens = tokensOf(kind, data, image_tokens);
      if (kind === 'video') media.audio += Math.ceil(most * SOUND_SHARE);
      if (tokens === undefined && kind === 'audio') media.audio += most;
      if (tokens === undefined) media.is_open = true;
      else if (kind === 'audio') media.audio += tokens;
      else media.image += tokens;
    }
  }
}

/** Tokens that no text of the request shows: the template's own. */
function templateTokens({ request }: PreparedAttempt): number {
  return (
    limits.template_tokens_max +
    (request.tools?.length ? limits.template_tools_tokens_max : 0) +
    (request.response_format?.type === 'json_schema' ? limits.template_schema_tokens_max : 0)
  );
}

const NO_TOOLS: readonly InnerTool[] = [];

/** The most uses of each tool that the provider runs by itself. */
function toolUses({ request, encoded, candidate, dialect }: PreparedAttempt): number[] {
  const { upstream_model } = candidate.endpoint;
  return dialect.worstCase.toolUses({ tools: request.tools ?? NO_TOOLS, body: encoded.body, upstream_model });
}

/** As many tokens as the model takes: what is longer is refused upstream. */
function contextOf({ context_length, max_prompt_tokens }: Endpoint): number {
  return Math.min(context_length ?? Number.POSITIVE_INFINITY, max_prompt_tokens ?? Number.POSITIVE_INFINITY);
}

/**
 * The most tokens that a prompt may count, given those of its text. A bound where the text's count is one: each byte-level
 * or byte-fallback token stands for one byte at least, so the bytes of the payload are (every wire's JSON is longer than
 * the marks a template puts in its place). What providers add of their own is an allowance (`limits.template_…`), and so is what
 * they read at the places that a request only points at, where no context length is known.
 */
export function promptTokens(prepared: PreparedAttempt, text_tokens: number, media: Media): PromptTokens {
  const most = contextOf(prepared.candidate.endpoint);
  const text = text_tokens + templateTokens(prepared);
  // What the provider's own tools bring is read as prompt, too.
  if (media.is_open || toolUses(prepared).length > 0) {
    const open = Number.isFinite(most) ? most : Math.max(text, limits.prompt_tokens_unknown);
    return { text: open, image: Math.min(media.image, most), audio: Math.min(media.audio, most) };
  }
  // A prompt above the context length is refused, whatever it is made of.
  return {
    text: Math.min(text, most),
    image: Math.min(media.image, most),
    audio: Math.min(media.audio, most),
  };
}

/** The text of a payload in bytes: more than the tokens that any tokenizer makes of it. */
export function textBytes({ payload }: PreparedAttempt, media: Media): number {
  let bytes = typeof payload === 'string' ? Buffer.byteLength(payload) : payload.length;
  for (const data of media.data) bytes -= writtenChars(data);
  return Math.max(0, bytes);
}

/** The text of a payload, for a tokenizer. Yields where others may be served. */
export function* textSteps({ payload, encoded }: PreparedAttempt, media: Media): Planner<string> {
  return media.data.length === 0 ? payload.toString() : yield* jsonWithout(encoded.body, media.data);
}

/** The same at once, for what is not long. */
export function textOf(prepared: PreparedAttempt, media: Media): string {
  return atOnce(textSteps(prepared, media));
}

/** The dearest that a text token may be on its way in. */
function inputPrice(prices: Prices, { payload, dialect, marks }: PreparedAttempt): number {
  const prompt = prices.prompt ?? 0;
  const write = prices.input_cache_write ?? prompt;
  const hour = prices.input_cache_write_1h ?? write;
  let most = Math.max(prompt, prices.input_cache_read ?? prompt);
  if (write <= most && hour <= most) return most;
  const { is_any, is_hour } =
    marks ?? (typeof payload === 'string' ? cacheMarksOf(payload) : atOnce(cacheMarks(payload)));
  if (is_any || dialect.worstCase.unmarkedCacheWrites) most = Math.max(most, write);
  if (is_any && is_hour) most = Math.max(most, hour);
  return most;
}

function outputPrice(prices: Prices, { model }: PreparedAttempt['candidate']): number {
  const { completion = 0, internal_reasoning = 0, audio_output = 0, image_output = 0 } = prices;
  const makes = (kind: string) => model.output_modalities.includes(kind);
  return Math.max(
    completion,
    internal_reasoning,
    audio_output > 0 && makes('audio') ? audio_output : 0,
    image_output > 0 && makes('image') ? image_output : 0,
  );
}

/** What an attempt may cost at most when its prompt counts at most so many tokens and it sends this output bound. */
export function exposureOf(prepared: PreparedAttempt, prompt: PromptTokens, output_tokens: number): WorstCaseCost {
  const { candidate, dialect, encoded, request } = prepared;
  const { endpoint } = candidate;
  const beside = dialect.worstCase.tokensBesideBound(encoded.body, endpoint);
  const passes = dialect.worstCase.passes(encoded.body);
  // The prompt is read once for all answers, and each of them may be as long as the bound.
  const choices = choicesOf(request);
  const prompt_tokens = prompt.text + prompt.image + prompt.audio;
  const lists = pricesInReach(endpoint, { prompt_tokens, service_tier: prepared.service_tier });
  const lines = lists.map((prices) => {
    const input_pico = inputPrice(prices, prepared);
    const output_pico = outputPrice(prices, candidate) * passes * choices;
    const fixed_pico =
      passes * prompt.text * input_pico +
      passes * prompt.image * Math.max(input_pico, prices.image_token ?? 0) +
      prompt.audio * Math.max(input_pico, prices.audio ?? 0, prices.input_audio_cache ?? 0) +
      (prices.request ?? 0) +
      (prices.image === undefined ? 0 : prices.image * contentsOf(request).images) +
      (prices.web_search === undefined ? 0 : prices.web_search * searchesOf(prepared)) +
      beside * output_pico;
    return { fixed_pico, output_pico, afterDiscountPpm: MILLION - Math.round((prices.discount ?? 0) * MILLION) };
  });
  return { lines, output_tokens };
}

function searchesOf(prepared: PreparedAttempt): number {
  const uses = toolUses(prepared).reduce((sum, most) => sum + most, 0);
  return uses > 1 && prepared.dialect.worstCase.billsOneSearch(prepared.candidate.endpoint) ? 1 : uses;
}
