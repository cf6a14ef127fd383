import { limits } from '../../limits.ts';
import { UpstreamError } from '../../providers/dialect.ts';
import type { Quirks } from '../../providers/provider.ts';
import type { Candidate } from '../../routing/plan.ts';
import { append } from '../../schemas/append.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import type { ChatChunk, ChatCompletion, ChatRequest, Delta } from '../../schemas/inner.ts';
import { outputTokens } from '../../schemas/usage.ts';
import type { View } from '../body.ts';
import type { Call } from '../call.ts';
import type { CallState } from '../state.ts';
import type { ChatAttempt } from './chat-attempts.ts';
import { fallsOver } from './failure.ts';

/** The text of an answer that broke off, up to which another endpoint can continue it. */
const CONTINUED_CHARS_MAX = 64 * 1024;
/** The least length of shown text, repeated at the beginning of a continuation, that counts as a repetition. */
const OVERLAP_CHARS_MIN = 16;
/** The same if the repeated text is all that was shown. */
const OVERLAP_WHOLE_CHARS_MIN = 4;
/** An answer that shares at least this many first characters with the shown text, and then differs, is a restart. */
const RESTART_CHARS_MIN = 32;

/** Follows the text that a stream has shown. Another endpoint can continue it only if there is nothing but text. */
export class ShownText {
  #text: string | undefined = '';

  add(chunks: readonly ChatChunk[]): void {
    for (const chunk of chunks) {
      if (this.#text === undefined) return;
      const { content, ...rest } = chunk.delta;
      const isText = !hasMore(rest) && chunk.ext?.slot?.open?.native === undefined && chunk.logprobs == null;
      this.#text = isText ? this.#text + (content ?? '') : undefined;
      if (this.#text !== undefined && this.#text.length > CONTINUED_CHARS_MAX) this.#text = undefined;
    }
  }

  /** The text; undefined if it cannot be continued: there is more than text, it is too long, cut inside a character, or empty. */
  get text(): string | undefined {
    const text = this.#text;
    return text === undefined || text.trim() === '' || !text.isWellFormed() ? undefined : text;
  }
}

function hasMore({ role: _, ...rest }: Delta): boolean {
  return Object.values(rest).some(
    (value) => value != null && value !== '' && !(Array.isArray(value) && value.length === 0),
  );
}

/**
 * Fields of some servers that constrain the form of an answer, or make the model reason first: a continuation would begin the
 * form again (https://docs.vllm.ai/en/latest/features/structured_outputs.html,
 * https://docs.sglang.ai/advanced_features/structured_outputs.html).
 */
const SHAPES: readonly string[] = [
  'structured_outputs',
  'guided_json',
  'guided_regex',
  'guided_choice',
  'guided_grammar',
  'guided_structural_tag',
  'json_schema',
  'regex',
  'ebnf',
  'structural_tag',
  'grammar',
  'response_format',
  'output_config',
  'thinking',
  'enable_thinking',
  'chat_template_kwargs',
];

function shapes(fields: Readonly<Record<string, unknown>>): boolean {
  return SHAPES.some((name) => fields[name] != null && fields[name] !== false);
}

/**
 * Whether the answer to a request may be continued. Not if the request ends with an assistant message of the client's, if the answer
 * must be JSON or more than text, or if the model reasons first: upstreams refuse a trailing assistant message then.
 */
export function isContinuable(request: ChatRequest): boolean {
  const { messages, response_format, provider, reasoning, reasoning_effort, modalities, logprobs, audio, ...rest } =
    request;
  const format = response_format?.type ?? 'text';
  const thinks =
    (reasoning != null && reasoning.enabled !== false && reasoning.effort !== 'none') ||
    (reasoning_effort != null && reasoning_effort !== 'none');
  const makesMore = modalities?.some((kind) => kind !== 'text') === true || audio != null;
  const isShaped = shapes(rest) || Object.values(provider?.options ?? {}).some(shapes);
  const isText = format === 'text' && !isShaped && !makesMore && logprobs !== true;
  return messages.at(-1)?.role !== 'assistant' && isText && !thinks && choicesOf(request) === 1;
}

/** Whether an endpoint is known to continue a trailing assistant message. */
export function continuesText({ endpoint: { quirks } }: Candidate): boolean {
  const can = quirks.prefill === true || quirks.prefill_prefix === true || quirks.continue_final_message === true;
  return can && quirks.no_prefill !== true && quirks.thinking_default === undefined;
}

/** The fields in which reasoning is switched off for upstreams that reason by default. */
const THINKING_FIELDS: readonly Quirks['reasoning_field'][] = ['thinking', 'thinking_effort', 'enable_thinking'];

/** The endpoints that may continue an answer, and the call with the request that lets them. */
export interface Continuation {
  candidates: readonly Candidate[];
  call: Call;
}

/** How the text of an attempt that broke off is continued; undefined if it is not: by the next endpoints of its model that can. */
export function continuationOf(
  { call, plan, parts }: CallState,
  { candidate, meter }: ChatAttempt,
  { text }: ShownText,
  { failure }: UpstreamError,
): Continuation | undefined {
  if (text === undefined || !fallsOver(failure) || call.cancellation.cancelled) return undefined;
  if (parts.length >= limits.continuations_max) return undefined;
  const later = plan.attempts.slice(plan.attempts.indexOf(candidate) + 1);
  const candidates = later.filter((one) => one.model === candidate.model && continuesText(one));
  if (candidates.length === 0) return undefined;
  let tokens = meter.outputTokens();
  for (const { usage } of parts) if (usage !== null) tokens += outputTokens(usage);
  const request = continuedRequest(call.request, { text, tokens });
  return request && { candidates, call: { ...call, request } };
}

/** The view of a continuation. It keeps no reasoning state: the answer is of more than one account. */
export class ContinuedView implements View {
  readonly #text: ShownText;
  readonly #overlap: OverlapCut;

  constructor(text: ShownText) {
    this.#text = text;
    this.#overlap = new OverlapCut(text.text ?? '');
  }

  show(chunks: ChatChunk[]): ChatChunk[] {
    const shown = this.#overlap.add(chunks);
    this.#text.add(shown);
    return shown;
  }

  rest(): ChatChunk[] {
    return this.#overlap.end();
  }

  showOwn(chunks: ChatChunk[]): ChatChunk[] {
    return chunks;
  }

  /** Only streams are continued. */
  whole(completion: ChatCompletion): ChatCompletion {
    return completion;
  }
}

/** The request that lets an endpoint continue a text; `tokens` of the output bound are used. Undefined if none are left. */
export function continuedRequest(
  request: ChatRequest,
  { text, tokens }: { text: string; tokens: number },
): ChatRequest | undefined {
  const { max_tokens, max_completion_tokens } = request;
  if (tokens >= Math.min(max_tokens ?? Infinity, max_completion_tokens ?? Infinity)) return undefined;
  return {
    ...request,
    // Some wires refuse a trailing blank; the model writes it again.
    messages: [...request.messages, { role: 'assistant', content: text.trimEnd() }],
    ...(max_tokens == null ? {} : { max_tokens: max_tokens - tokens }),
    ...(max_completion_tokens == null ? {} : { max_completion_tokens: max_completion_tokens - tokens }),
  };
}

/** The same request for one endpoint. */
export function fitContinued(request: ChatRequest, { endpoint }: Candidate): ChatRequest {
  const { reasoning_field } = endpoint.quirks;
  return THINKING_FIELDS.includes(reasoning_field) ? { ...request, reasoning: { enabled: false } } : request;
}

/** The length of the shortest piece whose repetition makes the text; the last repetition may be incomplete. */
function periodOf(text: string): number {
  // For each prefix, the length of its longest proper suffix that is also its prefix.
  const ends: number[] = [0];
  let end = 0;
  for (let at = 1; at < text.length; at += 1) {
    while (end > 0 && text[at] !== text[end]) end = ends[end - 1] ?? 0;
    if (text[at] === text[end]) end += 1;
    ends.push(end);
  }
  return text.length - end;
}

/** Whether `more` repeats what `text` already repeats at its end: then it is likely a continuation, not an overlap. */
function isRefrain(text: string, more: string): boolean {
  const period = periodOf(more);
  return text.endsWith(period * 2 <= more.length ? more.slice(0, period) : more + more);
}

/** How many characters at the beginning of `more`, which continues `sent`, repeat the end of `text`; 0 if that may be chance. */
function repetitionOf(text: string, more: string, sent: string): number {
  for (let length = Math.min(text.length, more.length); length >= OVERLAP_WHOLE_CHARS_MIN; length -= 1) {
    if (length < OVERLAP_CHARS_MIN && length < text.length) continue;
    const again = more.slice(0, length);
    if (text.endsWith(again)) return isRefrain(sent, again) ? 0 : length;
  }
  return 0;
}

/** How many characters at the beginning of `more` the client has seen at the end of `shown`. */
function overlapOf(shown: string, more: string): number {
  const sent = shown.trimEnd();
  const whole = sent === shown ? 0 : repetitionOf(shown, more, sent);
  if (whole > 0) return whole;
  const repeated = repetitionOf(sent, more, sent);
  // The blank that was not sent back.
  let length = repeated;
  for (let at = sent.length; at < shown.length && more[length] === shown[at]; at += 1) length += 1;
  return length;
}

/** Whether a text begins like the shown one and then differs. */
function isRestart(shown: string, more: string): boolean {
  const beginning = more.slice(0, RESTART_CHARS_MIN);
  return more.length > RESTART_CHARS_MIN && shown.startsWith(beginning) && !isRefrain(shown.trimEnd(), beginning);
}

/**
 * Removes from a continuation the repetition of the text before it, and holds its beginning back while it may be a repetition.
 */
export class OverlapCut {
  readonly #shown: string;
  #more = '';
  #held: ChatChunk[] = [];
  /** The place in the shown text at which a repetition may have begun; -1 if there is none. */
  #at = 0;
  #isDone = false;

  constructor(shown: string) {
    this.#shown = shown;
  }

  /** The chunks that can be shown by now. Throws `UpstreamError` if the answer is no continuation. */
  add(chunks: readonly ChatChunk[]): ChatChunk[] {
    const out: ChatChunk[] = [];
    for (const chunk of chunks) {
      if (this.#isDone) out.push(chunk);
      else append(out, this.#take(chunk));
    }
    return out;
  }

  /** At the end of the stream: everything that is still held. */
  end(): ChatChunk[] {
    return this.#isDone ? [] : this.#release();
  }

  #take(chunk: ChatChunk): ChatChunk[] {
    const { content, ...rest } = chunk.delta;
    this.#held.push(chunk);
    if (content) {
      this.#more += content;
      if (this.#at >= 0) this.#follow(content);
    }
    const ends = this.#at < 0 || hasMore(rest) || chunk.finish_reason != null;
    return ends ? this.#release(chunk.finish_reason === 'length') : [];
  }

  /** Moves to the next place from which all text so far is a repetition that does not reach the end yet. */
  #follow(piece: string): void {
    const at = this.#at + this.#more.length - piece.length;
    if (!this.#shown.startsWith(piece, at)) this.#at = this.#shown.indexOf(this.#more, this.#at);
    if (this.#at + this.#more.length >= this.#shown.length) this.#at = -1;
  }

  #release(isCut = false): ChatChunk[] {
    this.#isDone = true;
    const more = this.#more;
    // An answer may begin again and end before any new text; if it was cut, it may be short.
    const leastChars = isCut ? OVERLAP_WHOLE_CHARS_MIN : OVERLAP_CHARS_MIN;
    const isOld = more.length >= leastChars && this.#shown.startsWith(more) && !isRefrain(this.#shown.trimEnd(), more);
    let left = isOld ? more.length : overlapOf(this.#shown, more);
    const held = this.#held;
    this.#held = [];
    if (left === 0 && isRestart(this.#shown, more)) {
      // A failure class that does not cool the endpoint down, since it concerns this call only.
      throw new UpstreamError('conflict', 'The next provider started a new answer instead of continuing the text');
    }
    if (left === 0) return held;
    return held.map((chunk) => {
      const { content } = chunk.delta;
      if (!content || left === 0) return chunk;
      const kept = content.slice(left);
      left -= content.length - kept.length;
      return { ...chunk, delta: { ...chunk.delta, content: kept } };
    });
  }
}
