import type { GatewayError } from '../errors.ts';
import type { Events, Source } from '../http/sources.ts';
import { limits } from '../limits.ts';
import { nextTurn } from '../next-turn.ts';
import { accumulate } from '../schemas/accumulate.ts';
import { append } from '../schemas/append.ts';
import { chunksOf } from '../schemas/chunks.ts';
import type { ChatChunk, ChatCompletion } from '../schemas/inner.ts';
import type { JsonObject } from '../schemas/json.ts';
import type { Stage } from '../schemas/routing-metadata.ts';
import { charsOf, dividedChunks, sliceEnd } from './attempt/chunk-slices.ts';
import type { StreamEnd, StreamEvent } from './events.ts';

/** Changes the chunks of one answer on their way to the client. Synchronous, so that a chunk needs no promise. */
export interface AnswerTransform {
  /** Takes chunks and returns those that may be sent now. */
  take(chunks: ChatChunk[]): ChatChunk[];
  /** The chunks to send before another endpoint continues the answer. */
  reopen(): ChatChunk[];
  /** The chunks that are left at the end of the answer. */
  end(): ChatChunk[];
  /** Whether any chunk was changed. A whole answer without changes is kept as it is. */
  hasChanged(): boolean;
  /** The error that cuts the answer. Undefined as long as the client gets all of it. Once set, no more is read upstream. */
  readonly refusal: GatewayError | undefined;
}

/** Applies a transform to a whole answer. Returns the same object if nothing changes. */
export function transformWhole(
  completion: ChatCompletion,
  transform: Pick<AnswerTransform, 'take' | 'end' | 'hasChanged'>,
): ChatCompletion {
  const chunks = transform.take(chunksOf(completion));
  append(chunks, transform.end());
  return transform.hasChanged() ? accumulate(chunks, completion.created) : completion;
}

/** The same for an answer of any length: a long one in several turns of the event loop. */
export function transformInTurns(
  completion: ChatCompletion,
  transform: Pick<AnswerTransform, 'take' | 'end' | 'hasChanged'>,
): ChatCompletion | Promise<ChatCompletion> {
  let chars = 0;
  const chunks = chunksOf(completion);
  for (const { delta } of chunks) chars += charsOf(delta);
  if (chars <= limits.stream_chunk_chars_max) return transformWhole(completion, transform);
  return transformLong(dividedChunks(chunks), completion, transform);
}

async function transformLong(
  chunks: readonly ChatChunk[],
  completion: ChatCompletion,
  transform: Pick<AnswerTransform, 'take' | 'end' | 'hasChanged'>,
): Promise<ChatCompletion> {
  const shown: ChatChunk[] = [];
  for (let at = 0; at < chunks.length; ) {
    const end = sliceEnd(chunks, at, limits.stream_chunk_chars_max);
    append(shown, transform.take(chunks.slice(at, end)));
    at = end;
    await nextTurn();
  }
  append(shown, transform.end());
  return transform.hasChanged() ? accumulate(shown, completion.created) : completion;
}

/** Changes the events of one stream, beside its chunks. */
export interface EventHooks {
  /** Changes a body that was sent upstream before it is shown to a client for debugging. */
  onUpstreamBody?(body: JsonObject): JsonObject;
  /** Changes an error. `place`: the call throws it, or its stream ends with it. */
  onError?(error: GatewayError, place: 'thrown' | 'end'): GatewayError;
}

/** The routing metadata with the stages of the call, some of which acted after the metadata was written. */
export function withStages<T extends Record<string, unknown> | undefined>(metadata: T, stages: readonly Stage[]): T {
  return metadata === undefined || stages.length === 0 ? metadata : { ...metadata, pipeline: stages };
}

/** The events of a stream with transformed chunks. Hooks and transforms are applied in the order of their lists. */
export class TransformedEvents implements Source<StreamEvent> {
  /** The error that ended the stream, as the client sees it. Undefined if the stream has not ended, or without an error. */
  error: GatewayError | undefined = undefined;
  readonly #events: Events<StreamEvent>;
  readonly #hooks: readonly EventHooks[];
  readonly #transforms: readonly AnswerTransform[];
  readonly #stages: readonly Stage[];
  #isOpen = false;
  /** The event after the chunks that were held back until it. */
  #next: StreamEvent | undefined = undefined;
  /** Chunks of an event that are transformed in the next turn. */
  #waiting: ChatChunk[] | undefined = undefined;

  constructor(
    events: Events<StreamEvent>,
    {
      hooks,
      transforms,
      stages,
    }: { hooks: readonly EventHooks[]; transforms: readonly AnswerTransform[]; stages: readonly Stage[] },
  ) {
    this.#events = events;
    this.#hooks = hooks;
    this.#transforms = transforms;
    this.#stages = stages;
  }

  get ended(): boolean {
    return this.#next === undefined && this.#waiting === undefined && this.#events.ended;
  }

  ready(): Promise<void> | undefined {
    if (this.#waiting !== undefined) return nextTurn();
    return this.#next === undefined ? this.#events.ready() : undefined;
  }

  read(): StreamEvent | undefined {
    const next = this.#next;
    if (next !== undefined) {
      this.#next = undefined;
      return next;
    }
    if (this.#waiting !== undefined) return this.#transformed(this.#waiting);
    const event = this.#events.read();
    if (event === undefined) return undefined;
    if (event.type === 'chunks') return this.#transformed(event.chunks);
    const held = this.#heldBefore(event);
    const shown = this.shown(event);
    if (held.length === 0) return shown;
    this.#next = shown;
    return { type: 'chunks', chunks: held };
  }

  /** The first of these chunks, transformed: as many as one turn takes. */
  #transformed(received: ChatChunk[]): StreamEvent | undefined {
    let chunks = received;
    this.#waiting = undefined;
    if (this.#transforms.length > 0) {
      const end = sliceEnd(received, 0, limits.stream_chunk_chars_max);
      if (end < received.length) {
        chunks = received.slice(0, end);
        this.#waiting = received.slice(end);
      }
    }
    for (const transform of this.#transforms) chunks = transform.take(chunks);
    return chunks.length === 0 ? undefined : { type: 'chunks', chunks };
  }

  /** An event without chunks, as the client sees it. */
  shown(event: StreamEvent): StreamEvent {
    switch (event.type) {
      case 'chunks':
        return event;
      case 'open':
        this.#isOpen = true;
        return this.#opened(event);
      case 'end':
        return this.#ended(event);
    }
  }

  /** The chunks that the transforms have held back until this event. */
  #heldBefore({ type }: StreamEvent): ChatChunk[] {
    let held: ChatChunk[] = [];
    if (type === 'open' && !this.#isOpen) return held;
    for (const transform of this.#transforms) {
      const passed = held.length === 0 ? held : transform.take(held);
      held = [...passed, ...(type === 'open' ? transform.reopen() : transform.end())];
    }
    return held;
  }

  #opened(event: StreamEvent & { type: 'open' }): StreamEvent {
    if (event.upstream_bodies.length === 0) return event;
    const upstreamBodies = event.upstream_bodies.map(({ served, body }) => ({
      served,
      body: this.#hooks.reduce((shown, hooks) => hooks.onUpstreamBody?.(shown) ?? shown, body),
    }));
    return { ...event, upstream_bodies: upstreamBodies };
  }

  #ended(event: StreamEnd): StreamEnd {
    // For the client, a refused answer has already ended: a later failure of the upstream is not shown.
    const isRefused = this.#transforms.some(({ refusal }) => refusal !== undefined);
    let error = isRefused ? undefined : event.error;
    for (const hooks of this.#hooks) if (error !== undefined) error = hooks.onError?.(error, 'end') ?? error;
    this.error = error;
    return { ...event, metadata: withStages(event.metadata, this.#stages), error };
  }
}
