import { sniffSound, soundSteps } from '../../audio/sound.ts';
import type { Endpoint } from '../../catalog/model.ts';
import { pricesInReach } from '../../catalog/price-list.ts';
import { atOnce } from '../../http/turn-work.ts';
import { afterDiscountPpm } from '../../ledger/prices/charge.ts';
import { limits } from '../../limits.ts';
import { readDataUrl } from '../../providers/shared/data-url.ts';
import { cacheMarksOf } from '../../providers/shared/worst-case.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { InnerPart, Native } from '../../schemas/inner.ts';
import type { Prices } from '../../schemas/prices.ts';
import type { PreparedAttempt } from '../attempt/prepare-attempt.ts';
import { cacheMarks, matches, type SlicedWork } from './payload-search.ts';
import { dataOf, jsonWithout, sentDataOf, writtenChars } from './sent-data.ts';

/** Tokens that a template can add for the schema of an answer. */
export const TEMPLATE_SCHEMA_TOKENS_MAX = 512;
/** The prompt bound of a model whose context length is not known, if the parts of the prompt do not determine one. */
export const PROMPT_TOKENS_UNKNOWN = 1_048_576;

/** The most tokens of a prompt, by price class. */
export interface PromptTokens {
  text: number;
  image: number;
  audio: number;
}

/** The most that an attempt may cost, as a linear function of its output tokens (`costOf`). Prices in pico-USD, the highest of each kind. */
export interface WorstCaseCost {
  /** One for each price list that may apply. */
  lines: readonly { fixed_pico: number; output_pico: number; afterDiscountPpm: number }[];
  /** The output bound that is sent. Reasoning beside the bound is in `fixed_pico`. */
  output_tokens: number;
}

/** Above the rounding error of floating point for sums that are not safe integers. */
const INEXACT = 1 + 1e-12;

const MILLION = 1_000_000;

/** A quotient, rounded up like charges. */
function upTo(amount: number, divisor: number): number {
  if (!Number.isSafeInteger(amount)) return Math.ceil((amount / divisor) * INEXACT);
  const rest = amount % divisor;
  return (amount - rest) / divisor + (rest > 0 ? 1 : 0);
}

const toNano = (pico: number) => upTo(pico, 1000);

/** The most that the attempt costs with this many output tokens, in nano-USD. */
export function costOf(exposure: WorstCaseCost, outputTokens: number): number {
  let most = 0;
  for (const { fixed_pico, output_pico, afterDiscountPpm } of exposure.lines) {
    const pico = fixed_pico + outputTokens * output_pico;
    most = Math.max(most, toNano(afterDiscountPpm === MILLION ? pico : upTo(pico * afterDiscountPpm, MILLION)));
  }
  return most;
}

/** The most output tokens that an amount pays for, up to the bound that is sent. */
export function outputFor(exposure: WorstCaseCost, grantedNano: number): number {
  let [low, high] = [0, exposure.output_tokens];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (costOf(exposure, middle) <= grantedNano) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Data that is percent-encoded (RFC 2397) instead of base64: a dialect may encode it again, so the payload does not show whether it was sent. */
function isPercentEncoded(data: string): boolean {
  return /^data:[^,]*,/i.test(data) && !/^data:[^,]*;\s*base64\s*,/i.test(data);
}

/** The base64 of a data URL, or of bare data; undefined for an address. */
function base64Of(data: string, isBare: boolean): string | undefined {
  if (/^data:/i.test(data)) return data.slice(data.indexOf(',') + 1);
  // Some providers accept an address instead.
  return isBare && !/^[a-z][a-z0-9+.-]*:/i.test(data) ? data : undefined;
}

/**
 * The most tokens of one image. GPT-4o mini counts 2,833 and 5,667 for each of up to 8 tiles; other GPT models count at most 10,000
 * patches (https://platform.openai.com/docs/guides/images-vision). The largest number of other models is 16,384 (Qwen-VL,
 * `max_pixels` of its processor); Claude counts at most 4,784 (https://platform.claude.com/docs/en/build-with-claude/vision).
 */
export function imageTokens(tokenizer: string, upstreamModel: string): number {
  if (upstreamModel.includes('gpt-4o-mini')) return 2_833 + 8 * 5_667;
  return tokenizer === 'GPT' ? 10_000 : 16_384;
}

/** The share of sound in a video's tokens: 32 a second beside at least 66 (https://ai.google.dev/gemini-api/docs/video-understanding). */
const SOUND_SHARE = 1 / 3;

/** Twice the tokens of sound at 8 kbit/s, a rate below those in use, with 32 tokens a second (https://ai.google.dev/gemini-api/docs/audio). */
const SOUND_BYTES_PER_TOKEN = 16;

/**
 * The most tokens of a sound: by its bytes, and by its duration if that can be measured, since silence takes few bytes in most
 * formats. Undefined for a sound that is too long to measure.
 */
function* soundTokens(base64: string): SlicedWork<number | undefined> {
  if (base64.length > (limits.sound_bytes_max * 4) / 3) return undefined;
  const tokensByBytes = Math.ceil((base64.length * 3) / 4 / SOUND_BYTES_PER_TOKEN);
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length > limits.joined_slice_bytes) yield;
  const format = sniffSound(bytes);
  const durationMs = (format && (yield* soundSteps(bytes, format))) ?? 0;
  return Math.max(tokensByBytes, Math.ceil((durationMs / 1000) * limits.sound_tokens_per_second));
}

/** The kind as which a provider may read a part: the media type of its data takes precedence over the type of the part. */
function readAs(part: InnerPart, mediaType: string): 'image' | 'audio' | 'video' | 'file' {
  const kind = mediaType.split('/')[0];
  if (kind === 'video' || kind === 'audio') return kind;
  if (part.type === 'video_url') return 'video';
  if (part.type === 'input_audio') return 'audio';
  return part.type === 'image_url' && (kind === 'image' || kind === '') ? 'image' : 'file';
}

/** The most tokens of a part, besides its text; undefined if only the model's context bounds them. */
function* tokensOf(
  kind: ReturnType<typeof readAs>,
  data: string | undefined,
  imageTokens: number,
): SlicedWork<number | undefined> {
  if (kind === 'image') return imageTokens;
  // A video is counted by its seconds, and a still image may last for hours in a few bytes.
  if (data === undefined || kind === 'video') return undefined;
  if (kind === 'audio') return yield* soundTokens(data);
  // A document is compressed text and an image of each page: two tokens a byte exceed every measured page.
  return imageTokens + 2 * Math.ceil((data.length * 3) / 4);
}

/** The media of a payload: its base64, and the tokens that it may count. */
export interface Media {
  image: number;
  audio: number;
  /** The base64 of parts that are in the payload. */
  data: string[];
  /** The provider reads more than the payload has, such as an address: the prompt may be as long as the model's context. */
  is_open: boolean;
}

/** All data of a request that a payload may contain. */
function* dataIn({ request, media: fetched }: PreparedAttempt): Generator<string> {
  for (const { content, images } of request.messages) {
    for (const { image_url } of images ?? []) {
      const data = base64Of(image_url.url, false);
      if (data !== undefined) yield data;
    }
    if (!Array.isArray(content)) continue;
    for (const part of content) {
      const source = dataOf(part);
      if (source === undefined) continue;
      const bytes = fetched.get(source)?.base64;
      if (bytes !== undefined) yield bytes;
      const data = base64Of(source, part.type === 'input_audio');
      if (data !== undefined) yield data;
    }
  }
}

function isNative(part: InnerPart): part is Native {
  return part.type === 'native';
}

/** The most prompt tokens that an endpoint accepts; infinite if not known. */
function contextOf({ context_length = Infinity, max_prompt_tokens = Infinity }: Endpoint): number {
  return Math.min(context_length, max_prompt_tokens);
}

/** The same, with the assumed length if it is not known. */
function assumedContextOf(endpoint: Endpoint): number {
  const context = contextOf(endpoint);
  return Number.isFinite(context) ? context : PROMPT_TOKENS_UNKNOWN;
}

/** The media of an attempt that its body contains. Yields when other requests may be served. */
export function* mediaSteps(prepared: PreparedAttempt): SlicedWork<Media> {
  const { request, payload, candidate, dialect } = prepared;
  const media: Media = { image: 0, audio: 0, data: [], is_open: false };
  if (contentsOf(request).has_more) yield* countParts(prepared, media);
  const { unseenMedia: unseen } = dialect.worstCase;
  if (unseen !== undefined && (yield* matches(unseen.pattern, payload))) {
    media.is_open = true;
    const share = (yield* matches(unseen.sound, payload)) ? 1 : SOUND_SHARE;
    media.audio = Math.max(media.audio, Math.ceil(assumedContextOf(candidate.endpoint) * share));
  }
  return media;
}

/** The same without yielding, for short payloads. Most have no media, and nothing to search for. */
export function mediaOf(prepared: PreparedAttempt): Media {
  const mayHaveMedia = contentsOf(prepared.request).has_more || prepared.dialect.worstCase.unseenMedia !== undefined;
  return mayHaveMedia ? atOnce(mediaSteps(prepared)) : { image: 0, audio: 0, data: [], is_open: false };
}

function* countParts(prepared: PreparedAttempt, media: Media): SlicedWork<void> {
  const { request, encoded, candidate, dialect, media: fetched } = prepared;
  const sent = yield* sentDataOf(encoded.body, dataIn(prepared));
  const tokensPerImage = imageTokens(candidate.model.tokenizer, candidate.endpoint.upstream_model);
  const most = assumedContextOf(candidate.endpoint);
  for (const { content, images, ext } of request.messages) {
    const natives = [...(ext?.natives ?? []), ...(Array.isArray(content) ? content.filter(isNative) : [])];
    for (const { wire, block } of natives) {
      if (wire === dialect.wire) media.image += tokensPerImage * dialect.worstCase.picturesIn(block);
    }
    // Images of the model's earlier turns.
    for (const { image_url } of images ?? []) {
      const data = base64Of(image_url.url, false);
      if (data === undefined) continue;
      const mark = yield* sent.markOf(data);
      if (!sent.has(mark)) continue;
      if (sent.take(mark)) media.data.push(data);
      media.image += tokensPerImage;
    }
    if (!Array.isArray(content)) continue;
    for (const part of content) {
      if (part.type === 'text' || part.type === 'native') continue;
      const source = dataOf(part);
      const file = source === undefined ? undefined : fetched.get(source);
      const isInlined = file !== undefined && sent.has(yield* sent.markOf(file.base64));
      const data = isInlined ? file.base64 : source && base64Of(source, part.type === 'input_audio');
      const mark = data === undefined ? undefined : yield* sent.markOf(data);
      // A part that the dialect left out costs nothing, and its length is not subtracted from the text.
      const isSent = mark === undefined || sent.has(mark);
      if (!isSent && !(source !== undefined && isPercentEncoded(source))) continue;
      if (data !== undefined && mark !== undefined && isSent && sent.take(mark)) media.data.push(data);
      const kind = readAs(part, file?.mime_type ?? (source && readDataUrl(source)?.media_type) ?? '');
      const tokens = yield* tokensOf(kind, data, tokensPerImage);
      if (kind === 'video') media.audio += Math.ceil(most * SOUND_SHARE);
      if (tokens === undefined && kind === 'audio') media.audio += most;
      if (tokens === undefined) media.is_open = true;
      else if (kind === 'audio') media.audio += tokens;
      else media.image += tokens;
    }
  }
}

/** Tokens of the model's chat template, which the request does not contain. */
function templateTokens({ request }: PreparedAttempt): number {
  return (
    limits.template_tokens_max +
    (request.tools?.length ? limits.template_tools_tokens_max : 0) +
    (request.response_format?.type === 'json_schema' ? TEMPLATE_SCHEMA_TOKENS_MAX : 0)
  );
}

/** The most uses of each tool that the provider runs itself. */
function toolUses({ request, encoded, candidate, dialect }: PreparedAttempt): number[] {
  const { upstream_model } = candidate.endpoint;
  return dialect.worstCase.toolUses({ tools: request.tools ?? [], body: encoded.body, upstream_model });
}

/**
 * The most tokens that a prompt may count, given those of its text. An upper bound if `textTokens` is one; the bytes of the payload
 * are: each token stands for at least one byte, and the JSON of every wire is longer than a template's marks in its place.
 * Text that providers add is an allowance (`limits.template_…`), and so is content that they read at addresses if no context length
 * is known.
 */
export function promptTokens(prepared: PreparedAttempt, textTokens: number, media: Media): PromptTokens {
  const most = contextOf(prepared.candidate.endpoint);
  const text = textTokens + templateTokens(prepared);
  // Results of the provider's own tools count as prompt.
  if (media.is_open || toolUses(prepared).length > 0) {
    const open = Number.isFinite(most) ? most : Math.max(text, PROMPT_TOKENS_UNKNOWN);
    return { text: open, image: Math.min(media.image, most), audio: Math.min(media.audio, most) };
  }
  // The provider refuses a prompt above the context length.
  return { text: Math.min(text, most), image: Math.min(media.image, most), audio: Math.min(media.audio, most) };
}

/** The bytes of a payload's text: at least the tokens of any tokenizer. */
export function textBytes({ payload }: PreparedAttempt, media: Media): number {
  let bytes = typeof payload === 'string' ? Buffer.byteLength(payload) : payload.length;
  for (const data of media.data) bytes -= writtenChars(data);
  return Math.max(0, bytes);
}

/** The text of a payload, for a tokenizer. Yields when other requests may be served. */
export function* textSteps({ payload, encoded }: PreparedAttempt, media: Media): SlicedWork<string> {
  return media.data.length === 0 ? payload.toString() : yield* jsonWithout(encoded.body, media.data);
}

/** The highest price of a text token of the prompt. */
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

/** The highest price of an output token. */
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

/** The most that an attempt may cost with a prompt of at most these tokens and this output bound. */
export function exposureOf(prepared: PreparedAttempt, prompt: PromptTokens, outputTokens: number): WorstCaseCost {
  const { candidate, dialect, encoded, request } = prepared;
  const { endpoint } = candidate;
  const beside = dialect.worstCase.tokensBesideBound(encoded.body, endpoint);
  const passes = dialect.worstCase.passes(encoded.body);
  // The prompt is read once for all answers; each answer may be as long as the bound.
  const choices = choicesOf(request);
  const promptTokens = prompt.text + prompt.image + prompt.audio;
  let uses = 0;
  const usesOfTools = toolUses(prepared);
  for (let at = 0; at < usesOfTools.length; at += 1) uses += usesOfTools[at]!;
  const searches = uses > 1 && dialect.worstCase.billsOneSearch(endpoint) ? 1 : uses;
  const lists = pricesInReach(endpoint, { prompt_tokens: promptTokens, service_tier: prepared.service_tier });
  const lines = lists.map((prices) => {
    const inputPico = inputPrice(prices, prepared);
    const outputPico = outputPrice(prices, candidate) * passes * choices;
    const fixedPico =
      passes * prompt.text * inputPico +
      passes * prompt.image * Math.max(inputPico, prices.image_token ?? 0) +
      prompt.audio * Math.max(inputPico, prices.audio ?? 0, prices.input_audio_cache ?? 0) +
      (prices.request ?? 0) +
      (prices.image === undefined ? 0 : prices.image * contentsOf(request).images) +
      (prices.web_search === undefined ? 0 : prices.web_search * searches) +
      beside * outputPico;
    return {
      fixed_pico: fixedPico,
      output_pico: outputPico,
      afterDiscountPpm: afterDiscountPpm(prices),
    };
  });
  return { lines, output_tokens: outputTokens };
}
