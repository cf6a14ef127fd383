import { estimateTokens, TokenCount } from '../../ledger/prices/token-estimate.ts';
import { limits } from '../../limits.ts';
import { OpenChoices } from '../../schemas/by-choice.ts';
import type {
  ChatChunk,
  ChatRequest,
  Delta,
  FinishReason,
  Message,
  ReasoningDetail,
  TokenClasses,
} from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';
import { jsonPieces } from '../../schemas/json-pieces.ts';
import { outputTokens } from '../../schemas/usage.ts';

/** Characters of an answer that are buffered before they are counted. */
const UNCOUNTED_CHARS_MAX = 256 * 1024;
/** Characters of tool arguments that are checked for valid JSON. */
const JUDGED_ARGUMENTS_CHARS_MAX = 1024 * 1024;
/** The tool definitions of a long request are estimated from their beginning, of this length. */
export const TOOLS_SAMPLE_CHARS = 256 * 1024;
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
  /** The tool calls of the answer; undefined if there are none or the answer was cut. */
  toolCalls(): ToolCallCount | undefined;
}

/** The number of tool calls in an answer, and of those with valid JSON arguments. */
export interface ToolCallCount {
  count: number;
  valid: number;
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
  const PART_TOKENS = 800;
  const MESSAGE_TOKENS = 4;
  let tokens = 3;
  for (const message of request.messages) {
    tokens += MESSAGE_TOKENS + messageTokens(message, PART_TOKENS, count);
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

function messageTokens(message: Message, partTokens: number, count: (text: string) => number): number {
  let tokens = 0;
  if (typeof message.content === 'string') tokens += count(message.content);
  else {
    for (const part of message.content ?? []) {
      tokens += part.type === 'text' ? count(part.text) : partTokens;
    }
  }
  for (const call of message.tool_calls ?? []) {
    tokens += count(call.function.name) + count(call.function.arguments);
  }
  return tokens;
}

const FIRST_CHOICE: readonly number[] = [0];
const NO_CHOICES: readonly number[] = [];

/** A class and not closures: in V8, each new object literal with getters has a shape of its own, which is slow. */
class AnswerMeter implements Meter {
  produced = false;
  /** The open choices. Undefined if there is one choice. */
  readonly #open: OpenChoices | undefined;
  finish_reason: FinishReason | null = null;
  native_finish_reason: string | null = null;
  service_tier: string | null = null;
  upstream_id: string | null = null;
  /** Text that is not counted yet. It is counted only if needed: most upstreams report usage. */
  #text = '';
  #reasoning = '';
  readonly #textTokens = new TokenCount();
  readonly #reasoningTokens = new TokenCount();
  #promptTokens: number | undefined = undefined;
  #reported: TokenClasses | undefined = undefined;
  /** Output arrived after the last report. */
  #isOutrun = false;
  /** Arguments of tools, by the choice and the index of the call. */
  #arguments: Map<string | number, string> | undefined = undefined;

  constructor(choices: number) {
    this.#open = choices === 1 ? undefined : new OpenChoices(choices);
  }

  get open_choices(): readonly number[] {
    if (this.#open !== undefined) return this.#open.open;
    return this.finish_reason === null ? FIRST_CHOICE : NO_CHOICES;
  }

  chunk(chunk: ChatChunk): void {
    this.#delta(chunk.delta, chunk.choice);
    this.#open?.note(chunk);
    if (chunk.choice === undefined || chunk.choice === 0) {
      if (chunk.finish_reason) this.finish_reason = chunk.finish_reason;
      if (chunk.native_finish_reason) this.native_finish_reason = chunk.native_finish_reason;
    }
    if (chunk.service_tier) this.service_tier = chunk.service_tier;
    const response = chunk.ext?.response;
    if (response?.requestId !== undefined) this.upstream_id = response.requestId;
    if (response?.usage) this.#report(response.usage);
  }

  get reported(): TokenClasses | undefined {
    return this.#reported;
  }

  get is_void(): boolean {
    if (this.produced) return false;
    if (this.finish_reason === null || this.finish_reason === 'error') return true;
    // Decoders make up an end if the upstream sends none (Snowflake).
    return this.native_finish_reason === null && (this.#reported === undefined || outputTokens(this.#reported) === 0);
  }

  /** A report that has not grown since the last one does not cover the output since then, unless the answer has ended. */
  #report(usage: TokenClasses): void {
    const former = this.#reported;
    this.#reported = believable({ ...former, ...usage });
    if (this.#reported === undefined || former === undefined || this.open_choices.length === 0) this.#isOutrun = false;
    else if (outputTokens(this.#reported) > outputTokens(former)) this.#isOutrun = false;
  }

  #delta(part: Delta, choice = 0): void {
    if (!this.produced && isMeaningful(part)) this.produced = true;
    if (part.content || part.refusal || part.reasoning || part.tool_calls?.length) this.#isOutrun = true;
    if (part.content) this.#text += part.content;
    if (part.refusal) this.#text += part.refusal;
    if (part.reasoning) this.#reasoning += part.reasoning;
    for (const call of part.tool_calls ?? []) {
      this.#text += call.function.name ?? '';
      this.#text += call.function.arguments ?? '';
      this.#arguments ??= new Map();
      const key = choice === 0 ? call.index : `${choice}/${call.index}`;
      this.#arguments.set(key, (this.#arguments.get(key) ?? '') + (call.function.arguments ?? ''));
    }
    // A very long answer is counted while it arrives, not at its end.
    if (this.#text.length + this.#reasoning.length > UNCOUNTED_CHARS_MAX) this.#count();
  }

  /** Counts the buffered text. */
  #count(): void {
    if (this.#text !== '') this.#textTokens.add(this.#text);
    if (this.#reasoning !== '') this.#reasoningTokens.add(this.#reasoning);
    this.#text = '';
    this.#reasoning = '';
  }

  #inputs(request: ChatRequest): TokenClasses {
    const reported = this.#reported;
    if (reported?.in_uncached !== undefined) return inputsOf(reported);
    this.#promptTokens ??= estimatePrompt(request);
    return { in_uncached: this.#promptTokens };
  }

  outputTokens(): number {
    return outputTokens(this.#most(this.#reported ?? {}));
  }

  progress(request: ChatRequest): TokenClasses {
    const reported = this.#reported;
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

  toolCalls(): ToolCallCount | undefined {
    if (this.#arguments === undefined || this.finish_reason === 'length') return undefined;
    let count = 0;
    let valid = 0;
    let chars = 0;
    for (const text of this.#arguments.values()) {
      chars += text.length;
      // The result is a sample if the arguments are very long.
      if (chars > JUDGED_ARGUMENTS_CHARS_MAX) break;
      count += 1;
      if (isJson(text)) valid += 1;
    }
    return count === 0 ? undefined : { count, valid };
  }

  usage(request: ChatRequest): TokenClasses | null {
    const reported = this.#reported;
    if (this.is_void && (this.native_finish_reason !== null || !reported || outputTokens(reported) === 0)) return null;
    if (reported && isComplete(reported, this.produced)) return this.#isOutrun ? this.#most(reported) : reported;
    if (!this.produced) return reported ?? null;
    return this.progress(request);
  }
}

/** Whether arguments are valid JSON. Empty ones are: a tool may have no parameters. */
function isJson(text: string): boolean {
  if (text.trim() === '') return true;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Creates the meter of one attempt. `choices`: the number of choices in its answer. */
export function createMeter(choices = 1): Meter {
  return new AnswerMeter(choices);
}

/** Returns the usage, or undefined if it has impossible counts, which would corrupt every sum. */
export function believable(usage: TokenClasses): TokenClasses | undefined {
  let name: keyof TokenClasses;
  for (name in usage) {
    if (name !== 'counts' && name !== 'extra' && name !== 'estimated' && !isCount(usage[name])) return undefined;
  }
  const { counts, extra } = usage;
  if (counts !== undefined && !Object.values(counts).every(isCount)) return undefined;
  return extra === undefined || extra.every((other) => believable(other.classes)) ? usage : undefined;
}

function isCount(count: number | undefined): boolean {
  return Number.isInteger(count) && count! >= 0 && count! <= limits.usage_count_max;
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
