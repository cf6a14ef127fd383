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

/** Estimates the tokens of a prompt: texts and tool definitions by `count`, and a fixed number for each other part. */
export function estimatePrompt(request: ChatRequest, count: CountText = promptCount()): number {
  let tokens = PROMPT_TOKENS;
  for (const { content, tool_calls } of request.messages) {
    tokens += MESSAGE_TOKENS;
    if (typeof content === 'string') tokens += count(content);
    else if (content != null)
      for (const part of content) tokens += part.type === 'text' ? count(part.text) : PART_TOKENS;
    if (tool_calls == null) continue;
    for (const call of tool_calls) tokens += count(call.function.name) + count(call.function.arguments);
  }
  if (request.tools?.length) tokens += toolTokens(request.tools, request.ext, count);
  return tokens;
}

/** Counts the tokens of a text that is a sample of `chars` characters. Default: its own length. */
type CountText = (text: string, chars?: number) => number;

/** Very long definitions are estimated from their beginning: serializing them takes long, and is repeated for each attempt. */
function toolTokens(tools: NonNullable<ChatRequest['tools']>, ext: ChatRequest['ext'], count: CountText): number {
  const { is_long, tools_chars = 0 } = ext ?? {};
  if (is_long !== true || tools_chars < TOOLS_SAMPLE_CHARS) return count(JSON.stringify(tools));
  let text = '';
  for (const piece of jsonPieces(tools as unknown as JsonValue)) {
    text += piece.toString();
    if (text.length >= TOOLS_SAMPLE_CHARS) break;
  }
  return count(text, tools_chars);
}

/** Counts the texts of one prompt. After `estimated_chars_max`, further texts are estimated at the average so far. */
function promptCount(): CountText {
  let chars = 0;
  let tokens = 0;
  return (text, allChars = text.length) => {
    if (chars > limits.estimated_chars_max) return Math.ceil((allChars * tokens) / chars);
    const counted = estimateTokens(text);
    chars += text.length;
    tokens += counted;
    return allChars === text.length ? counted : Math.ceil((counted * allChars) / text.length);
  };
}

/**
 * A rough estimate in a time that does not grow with the prompt's length: all characters count like those at the beginning of the
 * longest text.
 */
export function roughPrompt(request: ChatRequest): number {
  let chars = 0;
  let longest = '';
  const beside = estimatePrompt(request, (text, allChars = text.length) => {
    chars += allChars;
    if (text.length > longest.length) longest = text;
    return 0;
  });
  const sample = longest.slice(0, PROMPT_SAMPLE_CHARS);
  return sample === '' ? beside : beside + Math.ceil((estimateTokens(sample) * chars) / sample.length);
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
  readonly #textTokens = new TokenCount();
  readonly #reasoningTokens = new TokenCount();
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
    const reported = believable({ ...former, ...response.usage });
    this.reported = reported;
    // A report that has not grown since the last one does not cover the output since then, unless the answer has ended.
    const isNew = reported === undefined || former === undefined || this.open_choices.length === 0;
    if (isNew || outputTokens(reported) > outputTokens(former)) this.#isOutrun = false;
  }

  get is_void(): boolean {
    if (this.produced) return false;
    if (this.finish_reason === null || this.finish_reason === 'error') return true;
    // Decoders make up an end if the upstream sends none (Snowflake).
    return this.native_finish_reason === null && (this.reported === undefined || outputTokens(this.reported) === 0);
  }

  /** Counts the buffered text. */
  #count(): void {
    if (this.#text !== '') this.#textTokens.add(this.#text);
    if (this.#reasoning !== '') this.#reasoningTokens.add(this.#reasoning);
    this.#text = '';
    this.#reasoning = '';
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
    const text = this.#textTokens.total;
    const reasoning = this.#reasoningTokens.total;
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
