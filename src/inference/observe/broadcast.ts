import { createHmac, hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../limits.ts';
import { type ServiceAnswer, ServiceFailed, type Services } from '../../providers/transport/services.ts';
import type { Destination } from '../../schemas/destination.ts';
import { parseServiceJson } from '../../schemas/json-structure.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import { exportJson, type Span, spanJson } from '../../telemetry/otlp.ts';
import type { Call, Clock } from '../call.ts';
import { bareSpan, generationSpans } from './generation-spans.ts';
import { type Broadcast, type EndedCall, isSampled } from './request-log.ts';

/** Calls in one request to a destination. */
const BROADCAST_BATCH_ENTRIES_MAX = 200;
/** Characters in one request to a destination. A collector takes 20 MiB (OTLP specification, OTLP/HTTP Request). */
const BROADCAST_BATCH_CHARS_MAX = 4 * 1024 * 1024;
const BROADCAST_TIMEOUT_MS = 10_000;
export const BROADCAST_ANSWER_BYTES_MAX = 64 * 1024;
/** The tries after which a batch is dropped. */
const BROADCAST_TRIES_MAX = 8;
/** The longest wait between two tries. */
const BROADCAST_RETRY_MS_MAX = 30_000;

export interface BroadcastOptions {
  destinations: readonly Destination[];
  services: Pick<Services, 'ask'>;
  /** The gateway's version, which spans name. */
  version: string;
  /** Keys the sampling of calls: callers choose their session ids, and must not choose which calls are left out. */
  secret: string;
  clock: Clock;
  /** A number from 0 to 1, below 1. */
  chance(): number;
  metrics: Pick<Metrics, 'broadcast'>;
  log: { warn(facts: object, message: string): void };
}

/** The queue of a destination. */
interface Sender {
  destination: Destination;
  add(spans: string): void;
  /** Reports that a call is sent without its details. */
  reportIncomplete(err: unknown): void;
  stop(): Promise<void>;
}

/** A call's spans as JSON, and the error if its details are missing. */
interface Spans {
  json: string;
  fault?: unknown;
}

/** The spans of a call; at least its ids, time and model, whatever a client or a provider wrote. */
function spansOf(ended: EndedCall, content: boolean): Spans {
  const toJson = (spans: readonly Span[]) => spans.map(spanJson).join(',');
  try {
    return { json: toJson(generationSpans(ended, { content })) };
  } catch (fault) {
    return { json: toJson([bareSpan(ended)]), fault };
  }
}

/** The result of sending a batch. */
type SendResult =
  | { outcome: 'sent' | 'refused'; reason?: string }
  | { outcome: 'again'; reason: string; after_ms: number };

const SCOPE = 'model-gateway';
const JSON_TYPE = 'application/json';

/** Whether a batch may be sent again: OTLP specification, "Retryable Response Codes"; for a webhook, any error of its server. */
function isRetryable({ type }: Destination, status: number): boolean {
  if (type === 'otel-collector') return [429, 502, 503, 504].includes(status);
  return status === 408 || status === 429 || status >= 500;
}

function retryAfterMs({ headers }: ServiceAnswer): number {
  const seconds = Number(headers['retry-after']);
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds * 1000, BROADCAST_RETRY_MS_MAX) : 0;
}

/** The part of a batch that a collector rejected (OTLP specification, "Partial Success"). */
function rejectedOf({ body }: ServiceAnswer): string | undefined {
  try {
    const { partialSuccess } = parseServiceJson(body.toString('utf8')) as {
      partialSuccess?: { rejectedSpans?: unknown };
    };
    const count = Number(partialSuccess?.rejectedSpans ?? 0);
    return count > 0 ? `it did not accept ${count} spans` : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Sends calls to destinations as spans in OTLP JSON: in the background, in batches, each destination by itself. A destination that does
 * not answer loses its queued calls, and delays no call.
 */
export function createBroadcast(options: BroadcastOptions): Broadcast & { stop(): Promise<void> } {
  const senders = options.destinations.map((destination) => createSender(destination, options));

  function isFor({ workspaces, share_bp }: Destination, call: Call): boolean {
    const { workspace_id, logging } = call.principal;
    const isSelected =
      workspaces === undefined ||
      workspaces.includes(workspace_id) ||
      (logging !== undefined && workspaces.includes(logging.workspace_slug));
    // All calls of a conversation are sent, or none.
    return isSelected && isSampled(call.request.session_id ?? call.generation_id, share_bp, options.secret);
  }

  return {
    wants: (call) => senders.some(({ destination }) => isFor(destination, call)),
    add(ended) {
      const byContent = new Map<boolean, Spans>();
      for (const sender of senders) {
        if (!isFor(sender.destination, ended.call)) continue;
        const content = sender.destination.include_content && ended.content !== undefined;
        const spans = byContent.get(content) ?? spansOf(ended, content);
        byContent.set(content, spans);
        if (spans.fault !== undefined) sender.reportIncomplete(spans.fault);
        sender.add(spans.json);
      }
    },
    async stop() {
      await Promise.all(senders.map((sender) => sender.stop()));
    },
  };
}

function createSender(
  destination: Destination,
  { services, version, clock, chance, metrics, log }: BroadcastOptions,
): Sender {
  const { name, url, secret } = destination;
  /** The spans of each call, oldest first. */
  const queue: string[] = [];
  let queueChars = 0;
  let sending: Promise<void> | undefined;
  let warnedMs = Number.NEGATIVE_INFINITY;
  const stopping = new AbortController();
  const resource = { 'service.name': SCOPE, 'service.version': version };

  function warn(facts: object, message: string): void {
    if (clock.monotonicMs() - warnedMs < limits.loss_notice_ms) return;
    warnedMs = clock.monotonicMs();
    log.warn({ destination: name, ...facts }, message);
  }

  /** Counts calls that are not sent. */
  function lose(count: number, reason: string): void {
    metrics.broadcast(name, 'lost', count);
    warn({ count, reason }, 'a broadcast destination misses calls');
  }

  function nextBatch(): string[] {
    const batch: string[] = [];
    let chars = 0;
    for (const spans of queue) {
      if (batch.length >= BROADCAST_BATCH_ENTRIES_MAX) break;
      chars += spans.length;
      if (batch.length > 0 && chars > BROADCAST_BATCH_CHARS_MAX) break;
      batch.push(spans);
    }
    queue.splice(0, batch.length);
    for (const spans of batch) queueChars -= spans.length;
    return batch;
  }

  function headersFor(body: string): Record<string, string> {
    const headers: Record<string, string> = {
      'user-agent': `${SCOPE}/${version}`,
      ...destination.headers,
      'content-type': JSON_TYPE,
    };
    if (destination.type === 'webhook') headers['x-gateway-idempotency-key'] = hash('sha256', body).slice(0, 32);
    if (secret !== undefined) {
      const at = Math.floor(clock.nowMs() / 1000);
      headers['x-gateway-signature'] =
        `t=${at},v1=${createHmac('sha256', secret).update(`${at},${body}`).digest('hex')}`;
    }
    return headers;
  }

  async function send(body: string): Promise<SendResult> {
    try {
      const answer = await services.ask({
        url,
        headers: headersFor(body),
        body,
        bytes_max: BROADCAST_ANSWER_BYTES_MAX,
        timeout_ms: BROADCAST_TIMEOUT_MS,
      });
      const { status } = answer;
      if (status >= 200 && status < 300) {
        const reason = rejectedOf(answer);
        return reason === undefined ? { outcome: 'sent' } : { outcome: 'refused', reason };
      }
      const reason = `it answered with ${status}`;
      if (!isRetryable(destination, status)) return { outcome: 'refused', reason };
      return { outcome: 'again', reason, after_ms: retryAfterMs(answer) };
    } catch (error) {
      if (!(error instanceof ServiceFailed)) throw error;
      const { status, message: reason } = error;
      if (status !== undefined && status >= 200 && status < 300) return { outcome: 'sent' };
      if (status !== undefined && !isRetryable(destination, status)) return { outcome: 'refused', reason };
      return { outcome: 'again', reason, after_ms: 0 };
    }
  }

  async function deliver(batch: readonly string[]): Promise<void> {
    const body = exportJson(resource, { name: SCOPE, version }, batch.join(','));
    for (let tries = 1; ; tries += 1) {
      const result = await send(body);
      if (result.outcome !== 'again') {
        metrics.broadcast(name, result.outcome, batch.length);
        if (result.reason !== undefined) warn({ reason: result.reason }, 'a broadcast destination refuses calls');
        return;
      }
      if (tries >= BROADCAST_TRIES_MAX || stopping.signal.aborted) return lose(batch.length, result.reason);
      const backoffMs = Math.min(limits.broadcast_retry_ms * 2 ** (tries - 1), BROADCAST_RETRY_MS_MAX);
      // With jitter: nodes that lost the same collector do not all retry at once.
      const waitMs = Math.max(result.after_ms, backoffMs * (0.5 + chance() / 2));
      await sleep(waitMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  async function sendAll(): Promise<void> {
    const isFull = () => queue.length >= BROADCAST_BATCH_ENTRIES_MAX || queueChars >= BROADCAST_BATCH_CHARS_MAX;
    if (!isFull())
      await sleep(limits.broadcast_gather_ms, undefined, { signal: stopping.signal }).catch(() => undefined);
    while (queue.length > 0) {
      const batch = nextBatch();
      try {
        await deliver(batch);
      } catch (err) {
        metrics.broadcast(name, 'lost', batch.length);
        warn({ err }, 'a broadcast destination misses calls');
      }
    }
  }

  return {
    destination,
    reportIncomplete(err) {
      metrics.broadcast(name, 'incomplete', 1);
      warn({ err }, 'a broadcast destination receives a call without its details, because they could not be built');
    },
    add(spans) {
      queue.push(spans);
      queueChars += spans.length;
      while (
        queue.length > limits.broadcast_queue_entries_max ||
        (queue.length > 1 && queueChars > limits.broadcast_queue_chars_max)
      ) {
        queueChars -= queue.shift()?.length ?? 0;
        lose(1, 'too many wait for it');
      }
      sending ??= sendAll().finally(() => {
        sending = undefined;
      });
    },
    async stop() {
      stopping.abort();
      const late = sleep(limits.broadcast_stop_ms_max, 'late' as const, { ref: false });
      if ((await Promise.race([sending, late])) === 'late')
        lose(queue.length, 'it did not accept them before the shutdown');
    },
  };
}
