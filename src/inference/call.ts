import type { Endpoint, Model } from '../catalog/model.ts';
import type { Principal } from '../http/principal.ts';
import type { StoreWait } from '../http/store-wait.ts';
import type { GenerationRecord } from '../ledger/records.ts';
import type { Report } from '../providers/dialect.ts';
import type { Provider } from '../providers/provider.ts';
import type { MemoryBudget } from '../providers/transport/room.ts';
import type { Candidate } from '../routing/candidate.ts';
import type { ChatRequest, Message, TokenClasses } from '../schemas/inner.ts';
import type { Stage } from '../schemas/routing-metadata.ts';

/** The time, injected: wall clock for records, monotonic for durations. Milliseconds. */
export interface Clock {
  nowMs(): number;
  monotonicMs(): number;
}

/** Ends a call early: its client has left, or the gateway stops. */
export interface Cancellation {
  readonly cancelled: boolean;
  /** The gateway stops while the client is still connected: the client gets an error. */
  readonly stopped: boolean;
  /** The client has left. */
  cancel(): void;
  /** The gateway stops: work that continues without a client ends too. */
  stop(): void;
  /** Calls a listener once, immediately if already cancelled. Returns a function that removes the listener. */
  onCancel(listener: () => void): () => void;
  /** Calls a listener when the gateway stops, even if the client has left before. */
  onStop(listener: () => void): void;
}

/** A class and not closures: every call has one. */
export class CallCancellation implements Cancellation {
  cancelled = false;
  stopped = false;
  #listeners: (() => void)[] | undefined = undefined;
  #stopListeners: (() => void)[] | undefined = undefined;

  cancel(): void {
    if (this.cancelled) return;
    this.cancelled = true;
    const listeners = this.#listeners ?? [];
    this.#listeners = undefined;
    for (const listener of listeners) listener();
  }

  stop(): void {
    if (!this.cancelled) this.stopped = true;
    this.cancel();
    const listeners = this.#stopListeners ?? [];
    this.#stopListeners = undefined;
    for (const listener of listeners) listener();
  }

  onStop(listener: () => void): void {
    this.#stopListeners ??= [];
    this.#stopListeners.push(listener);
  }

  onCancel(listener: () => void): () => void {
    if (this.cancelled) listener();
    // A list of one takes less memory than an empty one that grows.
    else if (this.#listeners === undefined) this.#listeners = [listener];
    else this.#listeners.push(listener);
    return () => {
      const at = this.#listeners?.indexOf(listener) ?? -1;
      if (at !== -1) this.#listeners!.splice(at, 1);
    };
  }
}

/** How a client identifies its application (specification, app-identification headers). */
export interface Attribution {
  http_referer: string | null;
  title: string | null;
  categories: string[];
  user_agent: string | null;
  /** The caller's tags of the call, at least one. Not set: none. */
  tags?: readonly string[];
  /** W3C trace context of the caller, passed on to upstreams. */
  traceparent: string | undefined;
  tracestate: string | undefined;
}

/** Applies the filters of a caller to content. */
export interface Screening {
  /** Returns the texts with their redactions. Rejects with `GatewayError` 403 if one is blocked. */
  texts(texts: readonly string[], rules?: ScreeningOf): Promise<string[]>;
  /** The same for restored messages of former turns, which the client did not send. */
  messages(messages: readonly Message[], rules?: ScreeningOf): Promise<Message[]>;
}

/** How content is filtered. */
export interface ScreeningOf {
  /** The call continues without the blocked content. */
  isOptional: boolean;
}

/** The record of a call. */
export interface CallOutcome {
  /** It has ended, and an attempt or a fee was recorded: it is a generation. */
  isSettled: boolean;
  /** Undefined if the call is not a generation, or a fault of the gateway prevented its record. */
  record: GenerationRecord | undefined;
}

/** One parsed request for inference, with its caller and its id. */
export interface Call {
  api_type: GenerationRecord['api_type'];
  /** For calls that are not chat, the inputs as messages: routing, prices and records read every call in the same way. */
  request: ChatRequest;
  /** The estimated usage if the messages do not show it. */
  estimate?: () => TokenClasses;
  /** The id of the generation, `gen-…`; also the seed of minted tool call ids. */
  generation_id: string;
  request_id: string;
  principal: Principal;
  attribution: Attribution;
  accepted_ms: number;
  accepted_monotonic_ms: number;
  cancellation: Cancellation;
  /** The time that it may wait for the store. Not set: each read has its own bound. */
  store_wait?: StoreWait | undefined;
  /** Counts the memory of what is read for the call. Not set: it is not counted. */
  room?: MemoryBudget | undefined;
  /** Changes that were made to its body when it was received. */
  changes?: readonly Report[] | undefined;
  /** The reason why an endpoint cannot serve this call; undefined if it can. Not set if all can. */
  refuses?: (candidate: Candidate) => string | undefined;
  /** The endpoint as it serves this call, if that differs from the catalog: over another wire of its provider. */
  endpointFor?: (endpoint: Endpoint, provider: Provider, model: Model) => Endpoint;
  /** The client's name for a field of the inner language. Not set: the same name. */
  fieldName?: (field: string) => string;
  /** Show the routing to the client. */
  wants_metadata: boolean;
  /** Show it under the public service's name too. */
  wants_public_metadata?: boolean;
  /** Applies the caller's filters to content that joins the call later: files, pages, results of tools. Not set if there are none. */
  screening?: Screening;
  /** Its record. Set by its settlement, before its client sees the end; shared by all copies of the call. */
  outcome: CallOutcome;
  /** The actions of guardrails and plugins on it so far, in order: each is appended when it happens, shared by all copies of the call. */
  stages: Stage[];
}
