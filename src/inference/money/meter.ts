import { estimateTokens, TokenCount } from '../../ledger/prices/token-estimate.ts';
import { limits } from '../../limits.ts';
import { OpenChoices } from '../../schemas/by-choice.ts';
import type {
  ChatChunk,
  ChatRequest,
  Delta,
  FinishReason,
  ReasoningDetail,
  TokenClasses,
} from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';
import { jsonPieces } from '../../schemas/json-pieces.ts';
import { outputTokens } from '../../schemas/usage.ts';
import { CalledTools } from './called-tools.ts';

/** Characters of an answer that are buffered before they are counted. */
const UNCOUNTED_CHARS_MAX = 256 * 1024;
/** The tool definitions of a long request are estimated from their beginning, of this length. */
export const TOOLS_SAMPLE_CHARS = 256 * 1024;
/** The estimated tokens of a prompt, a message and a part that is no text, besides their texts. */
const PROMPT_TOKENS = 3;
const MESSAGE_TOKENS = 4;
const PART_TOKENS = 800;
/** The characters of a prompt that a rough estimate counts. */
const PROMPT_SAMPLE_CHARS = 128;

/** Meters one attempt's answer: its output, its end, and the usage that the upstream reports. */
export interface Meter {
  chunk(chunk: ChatChunk): void;
  /** Whether any output of the model has arrived. */
  readonly produced: boolean;
  /**
   * The answer is empty: no output has arrived, and it ended in an error or without an end; or it has no native finish reason, and no
   * output token was reported.
   */
  readonly is_void: boolean;
  /** The finish reason of the first choice. */
  readonly finish_reason: FinishReason | null;
  /** The choices that have not ended. */
  readonly open_choices: readonly number[];
  readonly native_finish_reason: string | null;
  readonly service_tier: string | null;
  readonly upstream_id: string | null;
  /** The usage that the upstream has reported so far. May be partial. */
  readonly reported: TokenClasses | undefined;
  /**
   * The usage to charge: the reported usage, or the gateway's count, marked as estimated, if that is larger and output arrived after
   * the report. Without a complete report, the gateway's count if there is output, otherwise the partial report, or null. A void answer
   * costs nothing (null), unless it has no native finish reason and output tokens were reported.
   */
  usage(request: ChatRequest): TokenClasses | null;
  /** Output tokens so far: the larger of the gateway's count and the upstream's. Each text is counted once. */
  outputTokens(): number;
  /** The usage so far, for the journal and the hold. */
  progress(request: ChatRequest): TokenClasses;
  /** The tool calls of the answer; undefined if it has none. */
  readonly calledTools: CalledTools | undefined;
}

/** Whether a detail has content, and is not only the opening of one. */
function saysSomething(detail: ReasoningDetail): boolean {
  if (detail.id) return true;
  switch (detail.type) {
    case 'reasoning.text':
      return Boolean(detail.text || detail.signature);
    case 'reasoning.summary':
      return detail.summary !== '';
    case 'reasoning.encrypted':
      return detail.data !== '';
  }
}

/** Whether a delta has output of the model. From the first such delta on, an answer cannot be withdrawn. */
export function isMeaningful(delta: Delta): boolean {
  return (
    (delta.content !== undefined && delta.content !== null && delta.content !== '') ||
    (delta.tool_calls !== undefined && delta.tool_calls.length > 0) ||
    (delta.reasoning !== undefined && delta.reasoning !== null && delta.reasoning !== '') ||
    delta.reasoning_details?.some(saysSomething) === true ||
    (delta.refusal !== undefined && delta.refusal !== null && delta.refusal !== '') ||
    delta.images !== undefined ||
    delta.audio !== undefined ||
    (delta.annotations !== undefined && delta.annotations.length > 0)
  );
}

/** A prompt as it is estimated. */
export interface PromptTexts {
  /** Its texts, the definitions of its tools last. */
  texts: string[];
  /** The tokens of everything else. */
  tokens: number;
  /** The characters of the last text if it is only the beginning of the tools' definitions; 0 if it is whole. */
  sampledChars: number;
}

/** The texts of a prompt, and a fixed number of tokens for each other part. */
export function promptTexts({ messages, tools, ext }: ChatRequest): PromptTexts {
  const texts: string[] = [];
  let tokens = PROMPT_TOKENS;
  for (const { content, tool_calls } of messages) {
    tokens += MESSAGE_TOKENS;
    if (typeof content === 'string') texts.push(content);
    else if (content != null) {
      for (const part of content) {
        if (part.type === 'text') texts.push(part.text);
        else tokens += PART_TOKENS;
      }
    }
    if (tool_calls != null) for (const { function: called } of tool_calls) texts.push(called.name, called.arguments);
  }
  let sampledChars = 0;
  if (tools?.length) {
    const { is_long, tools_chars = 0 } = ext ?? {};
    if (is_long === true && tools_chars >= TOOLS_SAMPLE_CHARS) sampledChars = tools_chars;
    texts.push(sampledChars > 0 ? sampleOf(tools) : JSON.stringify(tools));
  }
  return { texts, tokens, sampledChars };
}

/** The beginning of very long definitions: serializing them takes long, and is repeated for each attempt. */
function sampleOf(tools: NonNullable<ChatRequest['tools']>): string {
  let text = '';
  for (const piece of jsonPieces(tools as unknown as JsonValue)) {
    text += piece.toString();
    if (text.length >= TOOLS_SAMPLE_CHARS) break;
  }
  return text;
}

/** The characters of texts that were counted, and their tokens. */
export interface CountedTexts {
  chars: number;
  tokens: number;
}

/**
 * Estimates the tokens of a prompt. After `estimated_chars_max`, further texts are estimated at the average so far. `counted`: the texts of
 * prompts before that are estimated together with it, to which those of this one are added.
 */
export function estimatePrompt(request: ChatRequest, counted?: CountedTexts): number {
  const { texts, tokens, sampledChars } = promptTexts(request);
  let chars = counted?.chars ?? 0;
  let textTokens = counted?.tokens ?? 0;
  let all = tokens;
  for (let at = 0; at < texts.length; at += 1) {
    const text = texts[at]!;
    const length = sampledChars > 0 && at === texts.length - 1 ? sampledChars : text.length;
    if (chars > limits.estimated_chars_max) {
      all += Math.ceil((length * textTokens) / chars);
      continue;
    }
    const estimated = estimateTokens(text);
    chars += text.length;
    textTokens += estimated;
    all += length === text.length ? estimated : Math.ceil((estimated * length) / text.length);
  }
  if (counted !== undefined) Object.assign(counted, { chars, tokens: textTokens });
  return all;
}

/**
 * A rough estimate in a time that does not grow with the prompt's length: all characters count like those at the beginning of the
 * longest text.
 */
export function roughPrompt(request: ChatRequest): number {
  const { texts, tokens, sampledChars } = promptTexts(request);
  let chars = sampledChars === 0 ? 0 : sampledChars - texts.at(-1)!.length;
  let longest = '';
  for (const text of texts) {
    chars += text.length;
    if (text.length > longest.length) longest = text;
  }
  const sample = longest.slice(0, PROMPT_SAMPLE_CHARS);
  return sample === '' ? tokens : tokens + Math.ceil((estimateTokens(sample) * chars) / sample.length);
}

const FIRST_CHOICE: readonly number[] = [0];
const NO_CHOICES: readonly number[] = [];

/** Meters the answer of a chat attempt. A class and not closures: there is one for every attempt. */
export class AnswerMeter implements Meter {
  produced = false;
  finish_reason: FinishReason | null = null;
  native_finish_reason: string | null = null;
  service_tier: string | null = null;
  upstream_id: string | null = null;
  reported: TokenClasses | undefined = undefined;
  /** The open choices. Undefined if there is one choice. */
  readonly #open: OpenChoices | undefined;
  /** Text that is not counted yet. It is counted only if needed: most upstreams report usage. */
  #text = '';
  #reasoning = '';
  #textTokens: TokenCount | undefined = undefined;
  #reasoningTokens: TokenCount | undefined = undefined;
  #promptTokens: number | undefined = undefined;
  /** Output arrived after the last report. */
  #isOutrun = false;
  calledTools: CalledTools | undefined = undefined;

  /** `choices`: the number of choices in the answer. */
  constructor(choices = 1) {
    this.#open = choices === 1 ? undefined : new OpenChoices(choices);
  }

  get open_choices(): readonly number[] {
    if (this.#open !== undefined) return this.#open.open;
    return this.finish_reason === null ? FIRST_CHOICE : NO_CHOICES;
  }

  chunk(chunk: ChatChunk): void {
    const { delta, choice = 0 } = chunk;
    const { content, refusal, reasoning, tool_calls } = delta;
    if (!this.produced && isMeaningful(delta)) this.produced = true;
    if (content) this.#text += content;
    if (refusal) this.#text += refusal;
    if (reasoning) this.#reasoning += reasoning;
    if (content || refusal || reasoning || tool_calls?.length) this.#isOutrun = true;
    if (tool_calls !== undefined) {
      for (const call of tool_calls) {
        this.#text += (call.function.name ?? '') + (call.function.arguments ?? '');
        this.calledTools ??= new CalledTools();
        this.calledTools.add(call, choice);
      }
    }
    // A very long answer is counted while it arrives, not at its end.
    if (this.#text.length + this.#reasoning.length > UNCOUNTED_CHARS_MAX) this.#count();
    this.#open?.note(chunk);
    if (choice === 0) {
      if (chunk.finish_reason) this.finish_reason = chunk.finish_reason;
      if (chunk.native_finish_reason) this.native_finish_reason = chunk.native_finish_reason;
    }
    if (chunk.service_tier) this.service_tier = chunk.service_tier;
    const response = chunk.ext?.response;
    if (response === undefined) return;
    if (response.requestId !== undefined) this.upstream_id = response.requestId;
    if (!response.usage) return;
    const former = this.reported;
    const reported = believable(former === undefined ? response.usage : { ...former, ...response.usage });
    this.reported = reported;
    // A report that has not grown since the last one does not cover the output since then, unless the answer has ended.
    const isNew = reported === undefined || former === undefined || this.open_choices.length === 0;
    if (isNew || outputTokens(reported) > outputTokens(former)) this.#isOutrun = false;
  }

  get is_void(): boolean {
    if (this.produced) return false;
    if (this.finish_reason === null || this.finish_reason === 'error') return true;
    // Decoders add a finish reason if the upstream sends none (Snowflake).
    return this.native_finish_reason === null && (this.reported === undefined || outputTokens(this.reported) === 0);
  }

  /** Counts the buffered text. */
  #count(): void {
    if (this.#text !== '') {
      this.#textTokens ??= new TokenCount();
      this.#textTokens.add(this.#text);
      this.#text = '';
    }
    if (this.#reasoning !== '') {
      this.#reasoningTokens ??= new TokenCount();
      this.#reasoningTokens.add(this.#reasoning);
      this.#reasoning = '';
    }
  }

  #inputs(request: ChatRequest): TokenClasses {
    const { reported } = this;
    if (reported?.in_uncached !== undefined) return inputsOf(reported);
    this.#promptTokens ??= estimatePrompt(request);
    return { in_uncached: this.#promptTokens };
  }

  outputTokens(): number {
    return outputTokens(this.#most(this.reported ?? {}));
  }

  progress(request: ChatRequest): TokenClasses {
    const { reported } = this;
    const known = reported && isComplete(reported, this.produced) ? reported : this.#inputs(request);
    return { out_text: 0, ...this.#most(known), estimated: true };
  }

  /** The larger of the reported usage and our own count. */
  #most(reported: TokenClasses): TokenClasses {
    this.#count();
    const text = this.#textTokens?.total ?? 0;
    const reasoning = this.#reasoningTokens?.total ?? 0;
    const { out_text = 0, out_reasoning = 0 } = reported;
    // Reasoning that is reported separately may not be shown. Other reasoning is part of the text, or not reported.
    const isApart = out_reasoning > 0;
    if (isApart ? text <= out_text && reasoning <= out_reasoning : text + reasoning <= out_text) return reported;
    const mostReasoning = Math.max(reasoning, out_reasoning);
    return {
      ...reported,
      out_text: isApart ? Math.max(text, out_text) : text,
      ...(mostReasoning === 0 ? {} : { out_reasoning: mostReasoning }),
      estimated: true,
    };
  }

  usage(request: ChatRequest): TokenClasses | null {
    const { reported } = this;
    if (
      !this.produced &&
      this.is_void &&
      (this.native_finish_reason !== null || !reported || outputTokens(reported) === 0)
    )
      return null;
    if (reported && isComplete(reported, this.produced)) return this.#isOutrun ? this.#most(reported) : reported;
    if (!this.produced) return reported ?? null;
    return this.progress(request);
  }
}

/** Returns the usage, or undefined if it has impossible counts, which would corrupt every sum. */
export function believable(usage: TokenClasses): TokenClasses | undefined {
  for (const name in usage) {
    const value = usage[name as keyof TokenClasses];
    if (name === 'estimated' || (value === undefined && (name === 'counts' || name === 'extra'))) continue;
    if (name === 'counts') {
      if (believable(value as TokenClasses) === undefined) return undefined;
    } else if (name === 'extra') {
      if (!usage.extra!.every((other) => believable(other.classes))) return undefined;
    } else if (!Number.isInteger(value) || (value as number) < 0 || (value as number) > limits.usage_count_max) {
      return undefined;
    }
  }
  return usage;
}

/** Whether a report has both input and output: a stream that was cut may report the input alone. */
function isComplete(usage: TokenClasses, produced: boolean): boolean {
  if (usage.in_uncached === undefined) return false;
  const output = usage.out_text ?? usage.out_reasoning ?? usage.out_audio ?? usage.out_image;
  return output !== undefined || !produced;
}

function inputsOf(usage: TokenClasses): TokenClasses {
  const { in_uncached, in_cache_read, in_cache_write_5m, in_cache_write_1h, in_audio, in_image } = usage;
  return Object.fromEntries(
    Object.entries({ in_uncached, in_cache_read, in_cache_write_5m, in_cache_write_1h, in_audio, in_image }).filter(
      ([, count]) => count !== undefined,
    ),
  );
}
