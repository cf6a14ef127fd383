import type { Endpoint, Model } from '../catalog/model.ts';
import type { Principal } from '../http/principal.ts';
import type { StoreWait } from '../http/store-wait.ts';
import type { GenerationRecord } from '../ledger/records.ts';
import type { Report } from '../providers/dialect.ts';
import type { Provider } from '../providers/provider.ts';
import type { Room } from '../providers/transport/room.ts';
import type { Candidate } from '../routing/candidate.ts';
import type { ChatRequest, Message, TokenClasses } from '../schemas/inner.ts';
import type { Stage } from '../schemas/routing-metadata.ts';

/** The time, injected: wall clock for records, monotonic for durations. Milliseconds. */
export interface Clock {
  now_ms(): number;
  monotonic_ms(): number;
}

/** Tells a call that it is to end: its client has left, or the gateway stops. */
export interface Cancellation {
  readonly cancelled: boolean;
  /** The gateway stops, and its client was there until then: it is told. */
  readonly stopped: boolean;
  /** The client has left. */
  cancel(): void;
  /** The gateway stops: also what goes on without a client that has left goes no further. */
  stop(): void;
  /** Called once, at once when already cancelled, whatever the reason. What comes back takes the listener away again. */
  onCancel(listener: () => void): () => void;
  /** Called once the gateway stops, also where the client had left before. */
  onStop(listener: () => void): void;
}

/** A class and not closures: every call has one. */
class CallCancellation implements Cancellation {
  cancelled = false;
  stopped = false;
  #listeners: (() => void)[] = [];
  #stop_listeners: (() => void)[] | undefined = undefined;

  cancel(): void {
    if (this.cancelled) return;
    this.cancelled = true;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }

  stop(): void {
    if (!this.cancelled) this.stopped = true;
    this.cancel();
    const listeners = this.#stop_listeners ?? [];
    this.#stop_listeners = undefined;
    for (const listener of listeners) listener();
  }

  onStop(listener: () => void): void {
    this.#stop_listeners ??= [];
    this.#stop_listeners.push(listener);
  }

  onCancel(listener: () => void): () => void {
    if (this.cancelled) listener();
    else this.#listeners.push(listener);
    return () => this.#forget(listener);
  }

  #forget(listener: () => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at !== -1) this.#listeners.splice(at, 1);
  }
}

export function createCancellation(): Cancellation {
  return new CallCancellation();
}

/** What a client tells of itself (specification, app-identification headers). */
export interface Attribution {
  http_referer: string | null;
  title: string | null;
  categories: string[];
  user_agent: string | null;
  /** W3C trace context of the caller, passed on to upstreams. */
  traceparent: string | undefined;
  tracestate: string | undefined;
}

/** Holds texts that a client sends against its filters. */
export interface Screening {
  /** The texts as they may go on: what is to be redacted is. Rejects with `GatewayError` 403 where one must not go on. */
  texts(texts: readonly string[], rules?: ScreeningOf): Promise<string[]>;
  /** The same for messages that a client did not send, but what it lost of them. */
  messages(messages: readonly Message[], rules?: ScreeningOf): Promise<Message[]>;
}

/** Of what is screened. */
export interface ScreeningOf {
  /** The call goes on without what must not go on, and is told to. */
  isOptional: boolean;
}

/** One request for inference, past the door: what is wanted, by whom, under which id. */
export interface Call {
  api_type: GenerationRecord['api_type'];
  /** Of a call that is not chat: its inputs as messages, so that routing, prices and records read every call alike. */
  request: ChatRequest;
  /** What it uses by our own count, where its messages do not show it. */
  estimate?: () => TokenClasses;
  /** The id of the generation, `gen-…`; also the seed of minted tool call ids. */
  generation_id: string;
  request_id: string;
  principal: Principal;
  attribution: Attribution;
  accepted_ms: number;
  accepted_monotonic_ms: number;
  cancellation: Cancellation;
  /** The time that it may wait for the store. Absent: each read has its own bound. */
  store_wait?: StoreWait | undefined;
  /** Where what is read for it is counted. Absent: nowhere. */
  room?: Room | undefined;
  /** What was changed of its body when it came. Absent: nothing. */
  changes?: readonly Report[] | undefined;
  /** Why an endpoint is not what this call is for. Absent: all are. */
  refuses?: (candidate: Candidate) => string | undefined;
  /** An endpoint as it serves this call, where that differs from what the catalog says: over another wire of its provider's. Absent: as it is. */
  endpointFor?: (endpoint: Endpoint, provider: Provider, model: Model) => Endpoint;
  /** How its client calls a field of the inner language. Absent: by the same name. */
  fieldName?: (field: string) => string;
  /** Show the routing to the client. */
  wants_metadata: boolean;
  /** It is told by the public service's name too. */
  wants_public_metadata?: boolean;
  /** Holds texts that come to the call later, as files are read, against its caller's filters. Absent: there are none. */
  screening?: Screening;
  /**
   * Called with its record once it has ended, before its client sees the end; with undefined when a fault of the gateway's kept
   * the record from being made. Must not throw.
   */
  settled?: (record: GenerationRecord | undefined) => void;
  /** What guardrails and plugins did to it so far, in order: added to as it happens, shared by all copies of the call. */
  stages: Stage[];
}
