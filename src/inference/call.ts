import type { Principal } from '../http/principal.ts';
import type { ChatRequest } from '../schemas/inner.ts';

/** The time, injected: wall clock for records, monotonic for durations. Milliseconds. */
export interface Clock {
  now_ms(): number;
  monotonic_ms(): number;
}

/** Tells a call that its client has left. */
export interface Cancellation {
  readonly cancelled: boolean;
  cancel(): void;
  /** One listener at a time; called at once when already cancelled. */
  onCancel(listener: (() => void) | undefined): void;
}

export function createCancellation(): Cancellation {
  let notify: (() => void) | undefined;
  const cancellation = {
    cancelled: false,
    cancel() {
      if (cancellation.cancelled) return;
      cancellation.cancelled = true;
      notify?.();
    },
    onCancel(listener: (() => void) | undefined) {
      notify = listener;
      if (cancellation.cancelled) listener?.();
    },
  };
  return cancellation;
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

/** One request for inference, past the door: what is wanted, by whom, under which id. */
export interface Call {
  request: ChatRequest;
  /** The id of the generation, `gen-…`; also the seed of minted tool call ids. */
  generation_id: string;
  request_id: string;
  principal: Principal;
  attribution: Attribution;
  accepted_ms: number;
  accepted_monotonic_ms: number;
  cancellation: Cancellation;
  /** Show the routing to the client. */
  wants_metadata: boolean;
}
