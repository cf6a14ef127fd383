import { limits } from '../../limits.ts';
import { nextTurn } from '../../next-turn.ts';
import { UpstreamError } from '../../providers/dialect.ts';
import type { ChatChunk, Delta } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { jsonChars } from '../../schemas/json-pieces.ts';
import { type StructureBounds, structureBreach } from '../../schemas/json-structure.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import { charsOf, probabilitiesOf, tokensOf } from './chunk-slices.ts';

/** The failure of an answer with too many parts of one kind. */
function tooMany(parts: string, most: number): UpstreamError {
  const message = `The provider's answer has more than ${most} ${parts}, which is more than the gateway accepts`;
  return new UpstreamError('invalid_response', message, { status: 200 });
}

/** The failure of an answer with a call of no tool: no client can run it, and no provider accepts it in the next turn. */
function namelessCall(): UpstreamError {
  return new UpstreamError('invalid_response', 'The provider called a tool without its name', { status: 200 });
}

/** The failure of an answer whose JSON breaks a rule of its structure. */
export function tooComplex(breach: string): UpstreamError {
  const message = `The provider's answer is more than the gateway accepts: its JSON ${breach}`;
  return new UpstreamError('invalid_response', message, { status: 200 });
}

/** Throws `UpstreamError` for a text of JSON that is beyond its bounds. */
export function requireBounded(text: string, bounds: StructureBounds): void {
  const breach = structureBreach(text, bounds);
  if (breach !== undefined) throw tooComplex(breach);
}

/** The characters of the citation in an event of a wire; 0 for other events. */
function citedChars({ citation, annotation }: JsonObject): number {
  const cited = citation ?? annotation;
  return cited == null ? 0 : jsonChars(cited);
}

/** The names and the number of a probability in JSON. */
const PROBABILITY_CHARS = 50;

/** Counts the parts of one answer. */
export class AnswerBounds {
  /** The failure of the first chunk that is too much. */
  failure: UpstreamError | undefined = undefined;
  #chars = 0;
  #calls = 0;
  #annotations = 0;
  #citationChars = 0;
  /** The same in the form of the wire, which has citations that no client API has. */
  #wireCitationChars = 0;
  #fileChars = 0;
  #details = 0;
  #images = 0;
  #blocks = 0;
  #logprobs = 0;
  #logprobChars = 0;
  /** The characters of what is kept of a streamed answer until its end, apart from its probabilities. */
  keptChars = 0;
  /** The characters of the probabilities so far as JSON. */
  probabilityChars = 0;

  /** Counts chunks. Returns how many of them are within the bounds: all, unless `failure` is set. */
  add(chunks: readonly ChatChunk[]): number {
    for (let at = 0; at < chunks.length; at += 1) {
      const chunk = chunks[at]!;
      const { content, reasoning, refusal, tool_calls, annotations, reasoning_details, images } = chunk.delta;
      const isPlain = !(tool_calls ?? annotations ?? reasoning_details ?? images);
      this.#chars += isPlain
        ? (content?.length ?? 0) + (reasoning?.length ?? 0) + (refusal?.length ?? 0)
        : charsOf(chunk.delta);
      const slot = chunk.ext?.slot;
      if (slot?.open !== undefined) this.#blocks += 1;
      if (slot?.raw !== undefined) this.#wireCitationChars += citedChars(slot.raw);
      if (chunk.logprobs !== undefined) {
        for (const token of tokensOf(chunk.logprobs)) {
          const { count, chars } = probabilitiesOf(token);
          this.#logprobs += count;
          this.#logprobChars += chars;
        }
        this.probabilityChars = this.#logprobs * PROBABILITY_CHARS + this.#logprobChars;
      }
      if (this.#chars > limits.answer_chars_max) this.failure = tooMany('characters', limits.answer_chars_max);
      else if (this.#blocks > limits.answer_blocks_max) this.failure = tooMany('blocks', limits.answer_blocks_max);
      else if (this.#logprobs > limits.answer_logprobs_max) {
        this.failure = tooMany('probabilities', limits.answer_logprobs_max);
      } else if (this.#logprobChars > limits.answer_logprobs_chars_max) {
        this.failure = tooMany('characters of probabilities', limits.answer_logprobs_chars_max);
      } else if (this.#wireCitationChars > limits.answer_citations_chars_max) {
        this.failure = tooMany('characters of citations', limits.answer_citations_chars_max);
      } else if (!isPlain) this.failure = this.#count(chunk.delta);
      this.keptChars = this.#chars + this.#citationChars + this.#wireCitationChars + this.#fileChars;
      if (this.failure !== undefined) return at;
    }
    return chunks.length;
  }

  #count({ tool_calls, annotations, reasoning_details, images }: Delta): UpstreamError | undefined {
    if (tool_calls !== undefined) {
      for (const { id, function: called } of tool_calls) {
        if (id === undefined) continue;
        this.#calls += 1;
        if (!called.name) return namelessCall();
      }
      if (this.#calls > limits.answer_calls_max) return tooMany('tool calls', limits.answer_calls_max);
    }
    if (annotations !== undefined) {
      this.#annotations += annotations.length;
      if (this.#annotations > limits.answer_annotations_max) {
        return tooMany('annotations', limits.answer_annotations_max);
      }
      for (const annotation of annotations) {
        if (annotation.type === 'file') this.#fileChars += jsonChars(annotation);
        else this.#citationChars += jsonChars(annotation);
      }
      if (this.#citationChars > limits.answer_citations_chars_max) {
        return tooMany('characters of citations', limits.answer_citations_chars_max);
      }
      if (this.#fileChars > limits.answer_files_chars_max) {
        return tooMany('characters of files in annotations', limits.answer_files_chars_max);
      }
    }
    if (reasoning_details !== undefined) {
      // The deltas of one detail repeat its ordinal.
      for (const { index = this.#details } of reasoning_details) this.#details = Math.max(this.#details, index + 1);
      if (this.#details > limits.answer_details_max) return tooMany('parts of reasoning', limits.answer_details_max);
    }
    if (images !== undefined) {
      this.#images += images.length;
      if (this.#images > limits.answer_images_max) return tooMany('images', limits.answer_images_max);
    }
    return undefined;
  }
}

/** The lists of parts in whole answers, in all wires, with the most entries that an answer may have in one of them. */
const PARTS_MAX: Readonly<Record<string, number>> = lookupTable({
  choices: limits.choices_max,
  candidates: limits.choices_max,
  output: limits.answer_blocks_max,
  content: limits.answer_blocks_max,
  parts: limits.answer_blocks_max,
  summary: limits.answer_details_max,
  reasoning_details: limits.answer_details_max,
  tool_calls: limits.answer_calls_max,
  images: limits.answer_images_max,
  annotations: limits.answer_annotations_max,
  citations: limits.answer_annotations_max,
});
const PART_LISTS = Object.keys(PARTS_MAX);
/** The parts of one answer together, of whatever kind. */
const ALL_PARTS_MAX = 3 * limits.answer_annotations_max;

/** Cuts the lists of a whole answer before it is decoded. */
class PartCut {
  #parts = 0;
  failure: UpstreamError | undefined;

  visit(value: JsonValue | undefined): void {
    if (typeof value !== 'object' || value === null) return;
    const object = value as { [name: string]: JsonValue | undefined };
    for (let at = 0; at < PART_LISTS.length; at += 1) {
      const name = PART_LISTS[at]!;
      const list = object[name];
      if (typeof list !== 'object' || list === null) continue;
      if (Array.isArray(list)) this.#cut(name, list);
      else this.visit(list);
    }
    if (object['message'] !== undefined) this.visit(object['message']);
  }

  #cut(name: string, list: JsonValue[]): void {
    const most = Math.min(PARTS_MAX[name]!, ALL_PARTS_MAX - this.#parts);
    if (list.length > most) {
      this.failure ??= tooMany(`entries in its list ${name}`, PARTS_MAX[name]!);
      list.length = Math.max(0, most);
    }
    this.#parts += list.length;
    for (let at = 0; at < list.length; at += 1) this.visit(list[at]);
  }
}

/**
 * Cuts off the parts of a whole answer beyond the bounds, so that they are not decoded. Returns the failure of such an answer,
 * which is metered by the remaining parts and fails.
 */
export function cutParts(body: JsonValue): UpstreamError | undefined {
  const cut = new PartCut();
  cut.visit(body);
  return cut.failure;
}

/** Runs a decoder. An answer that it cannot read is a failure of the upstream. */
export function readable<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw asUpstreamFailure(error);
  }
}

/** The failure for an error of a decoder: its own, or for an unexpected fault that the answer cannot be read. */
export function asUpstreamFailure(error: unknown): unknown {
  if (!(error instanceof TypeError || error instanceof RangeError)) return error;
  return new UpstreamError('invalid_response', 'The provider sent an answer that cannot be read', {
    status: 200,
    cause: error,
  });
}

/**
 * What an upstream sends after the end of its answer: late usage, the end of the connection, or, if it is broken or hostile, bytes
 * without end. The time that the gateway waits for all of it is bounded, and so is the number of bytes.
 */
export class AnswerTail {
  #waitedMs = 0;
  /** The bytes that were read of it. */
  bytes = 0;

  /** Nothing more of it is read. */
  get isOver(): boolean {
    return this.bytes > limits.upstream_tail_bytes_max || this.#waitedMs >= limits.upstream_tail_ms_max;
  }

  /** Waits for the next bytes, at most until the tail is over. The time in which nobody waits, since the client is slow, is not counted. */
  async wait(arrival: Promise<void>): Promise<void> {
    const begunMs = performance.now();
    let timer: NodeJS.Timeout | undefined;
    let isLate = false;
    const over = new Promise<void>((resolve) => {
      const late = () => {
        isLate = true;
        resolve();
      };
      timer = setTimeout(late, Math.max(0, limits.upstream_tail_ms_max - this.#waitedMs));
    });
    await Promise.race([arrival, over]);
    clearTimeout(timer);
    this.#waitedMs = isLate ? limits.upstream_tail_ms_max : this.#waitedMs + performance.now() - begunMs;
  }
}

/** Tokens whose probabilities are counted before other requests are served. */
const COUNTED_TOKENS = 1_000;

function hasManyTokens({ logprobs }: ChatChunk): boolean {
  return logprobs !== undefined && tokensOf(logprobs).length > COUNTED_TOKENS;
}

/** The failure of an answer with too many parts; undefined for any other. A promise if it has the probabilities of many tokens. */
export function breachOf(chunks: readonly ChatChunk[]): UpstreamError | undefined | Promise<UpstreamError | undefined> {
  const bounds = new AnswerBounds();
  if (!chunks.some(hasManyTokens)) {
    bounds.add(chunks);
    return bounds.failure;
  }
  const long = chunks.filter(hasManyTokens);
  bounds.add(chunks.map((chunk) => (long.includes(chunk) ? { delta: chunk.delta } : chunk)));
  return breachOfTokens(bounds, long);
}

async function breachOfTokens(bounds: AnswerBounds, chunks: readonly ChatChunk[]): Promise<UpstreamError | undefined> {
  for (const { logprobs } of chunks) {
    const tokens = tokensOf(logprobs);
    for (let at = 0; at < tokens.length && bounds.failure === undefined; at += COUNTED_TOKENS) {
      await nextTurn();
      bounds.add([{ delta: {}, logprobs: { content: tokens.slice(at, at + COUNTED_TOKENS) } }]);
    }
  }
  await nextTurn();
  return bounds.failure;
}
