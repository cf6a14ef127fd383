import { setTimeout as sleep } from 'node:timers/promises';
import type { Model } from '../../catalog/model.ts';
import { GatewayError } from '../../errors.ts';
import type { Principal } from '../../http/principal.ts';
import { limits } from '../../limits.ts';
import type { Candidate } from '../../routing/candidate.ts';
import type { EndpointStatistics } from '../../routing/endpoint-statistics.ts';
import type { Health } from '../../routing/health.ts';
import { DAY_MS, windowEnd } from '../../schemas/budget.ts';
import { isPriced } from '../../schemas/prices.ts';
import { CallCancelled } from '../attempt/upstream-call.ts';
import { type Call, CallCancellation, type Clock } from '../call.ts';
import type { Inference } from '../create-inference.ts';
import type { ModelSource } from '../plan/requested-models.ts';

/** Endpoints that are probed in one round. */
const PROBES_PER_ROUND_MAX = 20;
/** Probes without an answer, above which none is sent. */
const PROBES_UNDER_WAY_MAX = 20;

export interface ProberOptions {
  catalog(): ModelSource;
  inference: Pick<Inference, 'stream'>;
  statistics: Pick<EndpointStatistics, 'isQuiet'>;
  health: Pick<Health, 'coolingUntil'>;
  /** The key that pays for probes, with its budgets. Null if none may be used. */
  principal(): Promise<Principal | null>;
  /** Whether this process may probe the endpoint now: one process of all, once in `everyMs`. */
  claim(endpointId: string, everyMs: number): Promise<boolean>;
  generationId(nowMs: number): string;
  every_minutes: number;
  /** Ids of the models to probe. Undefined for all. */
  models: readonly string[] | undefined;
  clock: Clock;
  log: { info(facts: object, message: string): void; warn(facts: object, message: string): void };
}

/** Sends requests to endpoints without recent traffic, so that their statistics stay current. */
export interface Prober {
  /** Starts to look for such endpoints, every `probes_look_ms`. */
  start(): void;
  /** Cancels running probes. */
  stop(): Promise<void>;
}

const ATTRIBUTION = { http_referer: null, title: 'Health probe', categories: [], user_agent: null };

interface Target {
  model: Model;
  endpoint_id: string;
}

/** The endpoints to probe: text models at the gateway's own account, with a known price and without a fee for each request. */
function* targetsIn(catalog: ModelSource, ids: readonly string[] | undefined): Generator<Target> {
  for (const model of catalog.models()) {
    if (ids !== undefined && !ids.includes(model.id)) continue;
    if (!model.input_modalities.includes('text') || !model.output_modalities.includes('text')) continue;
    for (const endpoint of model.endpoints) {
      const provider = catalog.provider(endpoint.provider);
      const isSuitable = provider !== undefined && !provider.is_own_only && isPriced(endpoint.pricing);
      if (isSuitable && (endpoint.pricing.request ?? 0) === 0) yield { model, endpoint_id: endpoint.id };
    }
  }
}

/**
 * Probes are calls like any other: planned, paid from the budget of their key, recorded, and counted as traffic. If the budget is
 * spent, the ledger refuses the next probe, and probes pause until the budget's next day.
 */
export function createProber(options: ProberOptions): Prober {
  const { clock, health, inference, log, statistics } = options;
  const everyMs = options.every_minutes * 60_000;
  /** The time before which an endpoint is not due. */
  const notBeforeMs = new Map<string, number>();
  const stopping = new CallCancellation();
  /** Running probes by endpoint: whether the budget paid for it. */
  const inFlight = new Map<string, Promise<boolean>>();
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let pausedUntilMs = 0;

  function isDue(endpointId: string, nowMs: number): boolean {
    const waitMs = (notBeforeMs.get(endpointId) ?? 0) - nowMs;
    // A longer wait means that the clock was set back.
    if ((waitMs > 0 && waitMs <= everyMs) || inFlight.has(endpointId)) return false;
    return statistics.isQuiet(endpointId, options.every_minutes, nowMs) && health.coolingUntil(endpointId, nowMs) === 0;
  }

  function callFor({ model, endpoint_id }: Target, principal: Principal): Call {
    const acceptedMs = clock.nowMs();
    const generationId = options.generationId(acceptedMs);
    return {
      api_type: 'completions',
      request: {
        model: model.id,
        messages: [{ role: 'user', content: 'Hi' }],
        // One token suffices to measure whether an endpoint answers, and how soon.
        max_tokens: 1,
        stream: true,
      },
      refuses: ({ endpoint, own, tier }: Candidate) =>
        endpoint.id === endpoint_id && own === undefined && tier === undefined ? undefined : 'it is not probed now',
      generation_id: generationId,
      request_id: generationId,
      principal,
      attribution: { ...ATTRIBUTION, traceparent: undefined, tracestate: undefined },
      accepted_ms: acceptedMs,
      accepted_monotonic_ms: clock.monotonicMs(),
      cancellation: stopping,
      wants_metadata: false,
      stages: [],
      outcome: { isSettled: false, record: undefined },
    };
  }

  /** Whether the budget paid for the probe. Failures of the endpoint are counted in its statistics. */
  async function probe(target: Target, principal: Principal): Promise<boolean> {
    try {
      for await (const event of inference.stream(callFor(target, principal))) {
        if (event.type === 'end') break;
      }
    } catch (error) {
      if (error instanceof CallCancelled) return true;
      if (!(error instanceof GatewayError)) throw error;
      return error.status !== 402;
    }
    return true;
  }

  /** Waits a bounded time for a probe: an endpoint that hangs does not delay the others. */
  async function begin(target: Target, principal: Principal): Promise<boolean> {
    const { endpoint_id } = target;
    const probing = probe(target, principal)
      .catch((err: unknown) => {
        log.warn({ err, endpoint: endpoint_id }, 'an endpoint could not be probed');
        return true;
      })
      .finally(() => inFlight.delete(endpoint_id));
    inFlight.set(endpoint_id, probing);
    return Promise.race([probing, sleep(limits.probe_wait_ms, true, { ref: false })]);
  }

  function pause(): void {
    const nowMs = clock.nowMs();
    pausedUntilMs = windowEnd('daily', nowMs) ?? nowMs;
    log.info(
      { until: new Date(pausedUntilMs).toISOString() },
      'the rest of the budget does not pay for another probe; probes pause',
    );
  }

  async function round(): Promise<void> {
    const startedMs = clock.nowMs();
    if (startedMs < pausedUntilMs && pausedUntilMs - startedMs <= DAY_MS) return;
    if (notBeforeMs.size > limits.health_endpoints_max) notBeforeMs.clear();
    let principal: Principal | null | undefined;
    let count = 0;
    for (const target of targetsIn(options.catalog(), options.models)) {
      if (stopping.cancelled || count >= PROBES_PER_ROUND_MAX) return;
      if (inFlight.size >= PROBES_UNDER_WAY_MAX) return;
      if (!isDue(target.endpoint_id, startedMs)) continue;
      principal ??= await options.principal();
      if (principal === null) return;
      notBeforeMs.set(target.endpoint_id, startedMs + everyMs);
      if (!(await options.claim(target.endpoint_id, everyMs))) continue;
      count += 1;
      if (await begin(target, principal)) continue;
      // Running probes may release a part of their holds.
      if (inFlight.size === 0) pause();
      return;
    }
  }

  function look(): void {
    running ??= round()
      .catch((err: unknown) => log.warn({ err }, 'endpoints could not be probed'))
      .finally(() => {
        running = undefined;
      });
  }

  return {
    start() {
      timer = setInterval(look, limits.probes_look_ms);
      timer.unref();
      look();
    },
    async stop() {
      clearInterval(timer);
      stopping.cancel();
      await running;
      await Promise.all(inFlight.values());
    },
  };
}
