import type { Source } from '../../http/sources.ts';
import { limits } from '../../limits.ts';
import { nextTurn } from '../../next-turn.ts';
import { type ChatDialect, type Frame, type StreamDecoder, UpstreamError } from '../../providers/dialect.ts';
import type { Framer } from '../../providers/framer.ts';
import { createFramer } from '../../providers/transport/frames.ts';
import { countAnswer, type UpstreamResponse } from '../../providers/transport/upstream.ts';
import { append } from '../../schemas/append.ts';
import type { ChatChunk } from '../../schemas/inner.ts';
import { type StructureBounds, structureBreach } from '../../schemas/json-structure.ts';
import type { Call } from '../call.ts';
import { isMeaningful } from '../money/meter.ts';
import { AnswerBounds, AnswerTail, asUpstreamFailure, tooComplex } from './answer-bounds.ts';
import { dividedChunks, sliceEnd } from './chunk-slices.ts';
import { CallCancelled } from './upstream-call.ts';

/**
 * The divisor of a stream's bytes that gives the part kept in memory: the JSON around the text is dropped, and so is most of the
 * text.
 */
const STREAM_KEPT_DIVISOR = 16;
/** An answer is counted with all its copies (`countAnswer`). Of its probabilities there are two: with the bytes of each token, and without. */
const PROBABILITY_COPIES_DIVISOR = 2;
/** Events of a stream that are read before other requests are served. */
export const STREAM_SLICE_FRAMES = 128;

/** The chunks of an answer, one read at a time. */
export interface AnswerChunks extends Source<ChatChunk[]> {
  /** Whether the next chunks have arrived: the provider has made and billed them. */
  readonly isBuffered: boolean;
}

const NO_FRAMES: readonly Frame[] = [];

/** The same failure, marked as an end that the upstream itself made. */
function endedBy(error: unknown): unknown {
  if (!(error instanceof UpstreamError)) return error;
  const { failure, message, status, native_code, retry_after_ms, raw } = error;
  const facts = { status, native_code, retry_after_ms, raw };
  return new UpstreamError(failure, message, { ...facts, has_ended: true, cause: error });
}

/**
 * Reads and decodes the body of one attempt. The same bytes give the same chunks, however they are split into reads. Chunks before a
 * failure in the same read are returned first. A class and not closures: there is one for every attempt.
 */
export class AnswerReader implements AnswerChunks {
  ended = false;
  /** The answer has meaningful content: a failure after its finish reason does not count any more. Set by the reader of its beginning. */
  hasBegun = false;
  readonly #response: UpstreamResponse;
  readonly #call: Call;
  readonly #framer: Framer;
  readonly #decoder: StreamDecoder;
  readonly #count: ReturnType<typeof countAnswer>;
  #failure: { error: unknown } | undefined = undefined;
  /** Chunks that wait for room in memory. */
  #held: ChatChunk[] | undefined = undefined;
  #waiting: Promise<void> | undefined = undefined;
  #bytes = 0;
  #drainedBytes = 0;
  /** The events of the last read, and the index of the next one. */
  #frames: readonly Frame[] = NO_FRAMES;
  #next = 0;
  #readBytes = 0;
  /** Nothing is left to read; and the decoder has seen the end. */
  #isLast = false;
  #isDecoderEnded = false;
  /** Decoded chunks for the next turn. */
  #rest: ChatChunk[] | undefined = undefined;
  /** The data after a complete answer; undefined before its end. */
  #tail: AnswerTail | undefined = undefined;
  /** An event of the last read was so long that its chunks are divided. */
  #isLong = false;
  #looked: { frame: Frame; breach: string | undefined } | undefined = undefined;
  readonly #bounds = new AnswerBounds();
  readonly #repeatsProbabilities: boolean;
  /** The kept characters that are counted as memory. */
  #countedChars = 0;
  readonly #jsonBounds: StructureBounds;

  /** `bounds`: of the JSON of one event. */
  constructor(
    response: UpstreamResponse,
    dialect: Pick<ChatDialect, 'frames'>,
    { decoder, call, bounds }: { decoder: StreamDecoder; call: Call; bounds: StructureBounds },
  ) {
    this.#response = response;
    this.#call = call;
    this.#framer = createFramer(dialect.frames);
    this.#decoder = decoder;
    this.#count = countAnswer(call.room);
    this.#repeatsProbabilities = call.request.ext?.client.repeatsProbabilities === true;
    this.#jsonBounds = bounds;
  }

  ready(): Promise<void> | undefined {
    if (this.#waiting !== undefined) return this.#waiting;
    if (this.#rest !== undefined || this.#next < this.#frames.length) return nextTurn();
    if (this.ended || this.#failure !== undefined) return undefined;
    const coming = this.#response.ready();
    return coming !== undefined && this.#tail !== undefined ? this.#tail.wait(coming) : coming;
  }

  read(): ChatChunk[] | undefined {
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined && held.length > 0) return held;
    if (this.#failure !== undefined && this.#rest === undefined) throw this.#failure.error;
    if (this.ended || held !== undefined) return undefined;
    if (this.#rest === undefined && this.#next === this.#frames.length) {
      let bytes: Buffer | undefined;
      try {
        bytes = this.#response.read();
      } catch (error) {
        // A connection that is cut or stays open only after a whole answer has lost nothing.
        if (!(error instanceof UpstreamError && this.#decoder.isWhole())) return this.#endOf(error);
      }
      // The answer is complete, and more follows it than is read.
      const isTooLate = bytes !== undefined && this.#tail?.isOver === true;
      this.#isLast = bytes === undefined || isTooLate;
      this.#readBytes = isTooLate ? 0 : (bytes?.length ?? 0);
      if (this.#tail !== undefined) this.#tail.bytes += this.#readBytes;
      this.#isLong = false;
      try {
        if (isTooLate) this.#frames = NO_FRAMES;
        else this.#frames = bytes === undefined ? this.#framer.end() : this.#framer.push(bytes);
      } catch (error) {
        throw this.#endedBy(error);
      }
      this.#next = 0;
      for (const frame of this.#frames) {
        if (frame.data.length <= limits.answer_turn_bytes_min) continue;
        // A long event is decoded in the next turn.
        this.#looked = { frame, breach: structureBreach(frame.data, this.#jsonBounds) };
        return undefined;
      }
    }
    const chunks = this.#rest === undefined ? this.#decode() : this.#slice(this.#rest);
    // Some wires state an end and go on with their answer: its tail begins again with each part of the model's own.
    if (this.#decoder.isWhole()) {
      let isAnew = this.#tail === undefined;
      for (const { delta } of chunks) isAnew ||= isMeaningful(delta);
      if (isAnew) this.#tail = new AnswerTail();
    }
    const isHandedOn = this.#rest === undefined && this.#next === this.#frames.length;
    if (this.#isDecoderEnded && isHandedOn) this.ended = true;
    // A read is counted once all of it was handed on; one with a long event before any of that is, and once.
    else if (!this.#isLast && (isHandedOn ? !this.#isLong : this.#rest !== undefined && chunks.length === 0)) {
      const bytes = this.#readBytes;
      this.#readBytes = 0;
      this.#bytes += bytes;
      const { keptChars, probabilityChars } = this.#bounds;
      const kept = this.#repeatsProbabilities ? keptChars + probabilityChars / PROBABILITY_COPIES_DIVISOR : keptChars;
      const more = kept - this.#countedChars;
      this.#countedChars = kept;
      // Part of an event that is larger than a read is kept whole.
      const waiting = this.#count(chunks.length === 0 ? bytes : Math.max(Math.ceil(bytes / STREAM_KEPT_DIVISOR), more));
      if (waiting !== undefined) {
        this.#held = chunks;
        this.#waiting = this.#wait(waiting, bytes);
        return undefined;
      }
      if (this.#bytes > limits.stream_bytes_max || this.#call.cancellation.cancelled) this.#checkLength(bytes);
    }
    return chunks.length === 0 ? undefined : chunks;
  }

  /** The chunks of the next events of a read, within what one turn of the loop takes; a failure among them is for after them. */
  #decode(): ChatChunk[] {
    let chunks: ChatChunk[] = [];
    const frames = this.#frames;
    const until = Math.min(frames.length, this.#next + STREAM_SLICE_FRAMES);
    let chars = 0;
    let error: unknown;
    try {
      while (this.#next < until && chunks.length < limits.stream_slice_chunks && chars < limits.stream_slice_chars) {
        const frame = frames[this.#next]!;
        this.#next += 1;
        chars += frame.data.length;
        const looked = this.#looked?.frame === frame ? this.#looked : undefined;
        const breach = looked === undefined ? structureBreach(frame.data, this.#jsonBounds) : looked.breach;
        if (breach !== undefined) throw tooComplex(breach);
        const decoded = this.#decoder.push(frame);
        // Most reads hold one event, whose list is taken as it is.
        if (chunks.length === 0) chunks = decoded;
        else append(chunks, decoded);
      }
      if (this.#isLast && this.#next === frames.length) {
        this.#isDecoderEnded = true;
        const last = this.#decoder.end();
        if (chunks.length === 0) chunks = last;
        else append(chunks, last);
      }
    } catch (caught) {
      error = asUpstreamFailure(caught);
    }
    const within = this.#bounds.add(chunks);
    if (within < chunks.length) {
      chunks.length = within;
      error = this.#bounds.failure;
    }
    if (error !== undefined) {
      this.#frames = NO_FRAMES;
      this.#next = 0;
      error = this.#endedBy(error);
      if (chunks.length === 0) throw error;
      this.#failure = { error };
    }
    if (chars > limits.stream_chunk_chars_max) {
      this.#isLong = true;
      this.#rest = dividedChunks(chunks);
      return [];
    }
    return this.#isLong || chunks.length > limits.stream_slice_chunks ? this.#slice(chunks) : chunks;
  }

  /** Each read is counted once: after all of it was passed on, or, if it has a long event, before that. */
  #slice(chunks: ChatChunk[]): ChatChunk[] {
    const end = this.#isLong ? sliceEnd(chunks, 0) : limits.stream_slice_chunks;
    this.#rest = chunks.length > end ? chunks.slice(end) : undefined;
    return this.#rest === undefined ? chunks : chunks.slice(0, end);
  }

  get isBuffered(): boolean {
    return this.#rest !== undefined || this.#next < this.#frames.length || this.#held !== undefined;
  }

  #endedBy(error: unknown): unknown {
    return this.#isLast && this.#response.complete ? endedBy(error) : error;
  }

  /** The remaining chunks after a failure in the middle of a body, if the finish reason came before it. Otherwise throws the failure. */
  #endOf(error: unknown): ChatChunk[] | undefined {
    if (!this.hasBegun || !(error instanceof UpstreamError)) throw error;
    let rest: ChatChunk[];
    try {
      rest = this.#decoder.end();
    } catch {
      throw error;
    }
    this.ended = true;
    return rest.length === 0 ? undefined : rest;
  }

  async #wait(waiting: Promise<void>, bytes: number): Promise<void> {
    try {
      await waiting;
      this.#checkLength(bytes);
    } catch (error) {
      this.#held = undefined;
      this.#rest = undefined;
      this.#failure = { error };
    }
    this.#waiting = undefined;
  }

  #checkLength(bytes: number): void {
    if (this.#call.cancellation.cancelled) {
      this.#drainedBytes += bytes;
      if (this.#drainedBytes > limits.drain_bytes_max) throw new CallCancelled({ may_be_billed: true });
    }
    if (this.#bytes > limits.stream_bytes_max) {
      throw new UpstreamError(
        'invalid_response',
        `The provider's stream is longer than ${limits.stream_bytes_max} bytes`,
      );
    }
  }
}
