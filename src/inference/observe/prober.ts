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
import type { Inference } from '../answer.ts';
import { CallCancelled } from '../attempt/exchange.ts';
import { type Call, type Clock, createCancellation } from '../call.ts';
import type { ModelSource } from '../plan/requested-models.ts';

export interface ProberOptions {
  catalog(): ModelSource;
  inference: Pick<Inference, 'stream'>;
  statistics: Pick<EndpointStatistics, 'isQuiet'>;
  health: Pick<Health, 'coolingUntil'>;
  /** Whom probes are counted against, with what is left of their budget. Null: nobody lets them. */
  principal(): Promise<Principal | null>;
  /** Whether this process is the one that probes an endpoint now: one of all, and once in so long. */
  claim(endpoint_id: string, every_ms: number): Promise<boolean>;
  generationId(now_ms: number): string;
  every_minutes: number;
  /** Ids of the models whose endpoints are probed; undefined: all. */
  models: readonly string[] | undefined;
  clock: Clock;
  log: { info(facts: object, message: string): void; warn(facts: object, message: string): void };
}

/** Asks endpoints that nobody asked for a while, so that something is known of them. */
export interface Prober {
  /** Begins to look for them every few seconds. */
  start(): void;
  /** Ends what is under way. */
  stop(): Promise<void>;
}

const UNTOLD = { http_referer: null, title: 'Health probe', categories: [], user_agent: null };

interface Target {
  model: Model;
  endpoint_id: string;
}

/** What a probe can ask: text for text, at the gateway's own account, at a known price and without a fee for each request. */
function* targetsIn(catalog: ModelSource, wanted: readonly string[] | undefined): Generator<Target> {
  for (const model of catalog.models()) {
    if (wanted !== undefined && !wanted.includes(model.id)) continue;
    if (!model.input_modalities.includes('text') || !model.output_modalities.includes('text')) continue;
    for (const endpoint of model.endpoints) {
      const provider = catalog.provider(endpoint.provider);
      const is_fit = provider !== undefined && !provider.is_own_only && isPriced(endpoint.pricing);
      if (is_fit && (endpoint.pricing.request ?? 0) === 0) yield { model, endpoint_id: endpoint.id };
    }
  }
}

/**
 * Probes are calls like any other: planned, paid from the budget of their key, recorded, and counted as traffic. Where the
 * budget is spent the ledger refuses the next one, which ends them until the budget's next day.
 */
export function createProber(options: ProberOptions): Prober {
  const { clock, health, inference, log, statistics } = options;
  const every_ms = options.every_minutes * 60_000;
  /** Before then nobody needs to be asked whether an endpoint is due. */
  const later = new Map<string, number>();
  const stopping = createCancellation();
  /** By endpoint: whether the budget paid for it. */
  const under_way = new Map<string, Promise<boolean>>();
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let paused_until_ms = 0;

  function isDue(endpoint_id: string, now_ms: number): boolean {
    const later_ms = (later.get(endpoint_id) ?? 0) - now_ms;
    // Longer than a wait can be: the clock was set back.
    if ((later_ms > 0 && later_ms <= every_ms) || under_way.has(endpoint_id)) return false;
    return (
      statistics.isQuiet(endpoint_id, options.every_minutes, now_ms) && health.coolingUntil(endpoint_id, now_ms) === 0
    );
  }

  function callFor({ model, endpoint_id }: Target, principal: Principal): Call {
    const accepted_ms = clock.now_ms();
    const generation_id = options.generationId(accepted_ms);
    return {
      api_type: 'completions',
      request: {
        model: model.id,
        messages: [{ role: 'user', content: 'Hi' }],
        // One token is the least that shows that an endpoint answers, and how soon.
        max_tokens: 1,
        stream: true,
      },
      refuses: ({ endpoint, own, tier }: Candidate) =>
        endpoint.id === endpoint_id && own === undefined && tier === undefined ? undefined : 'it is not probed now',
      generation_id,
      request_id: generation_id,
      principal,
      attribution: { ...UNTOLD, traceparent: undefined, tracestate: undefined },
      accepted_ms,
      accepted_monotonic_ms: clock.monotonic_ms(),
      cancellation: stopping,
      wants_metadata: false,
      stages: [],
    };
  }

  /** Whether the budget had enough for it. What else goes wrong is the endpoint's, and counted. */
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

  /** Waits for a probe, but not for long: an endpoint that hangs holds up no other. */
  async function begin(target: Target, principal: Principal): Promise<boolean> {
    const { endpoint_id } = target;
    const probing = probe(target, principal)
      .catch((err: unknown) => {
        log.warn({ err, endpoint: endpoint_id }, 'an endpoint could not be probed');
        return true;
      })
      .finally(() => under_way.delete(endpoint_id));
    under_way.set(endpoint_id, probing);
    return Promise.race([probing, sleep(limits.probe_wait_ms, true, { ref: false })]);
  }

  function pause(): void {
    const now_ms = clock.now_ms();
    paused_until_ms = windowEnd('daily', now_ms) ?? now_ms;
    log.info(
      { until: new Date(paused_until_ms).toISOString() },
      'the rest of the budget does not pay for another probe; probes pause',
    );
  }

  async function round(): Promise<void> {
    const started_ms = clock.now_ms();
    if (started_ms < paused_until_ms && paused_until_ms - started_ms <= DAY_MS) return;
    if (later.size > limits.health_endpoints_max) later.clear();
    let principal: Principal | null | undefined;
    let count = 0;
    for (const target of targetsIn(options.catalog(), options.models)) {
      if (stopping.cancelled || count >= limits.probes_per_round_max) return;
      if (under_way.size >= limits.probes_under_way_max) return;
      if (!isDue(target.endpoint_id, started_ms)) continue;
      principal ??= await options.principal();
      if (principal === null) return;
      later.set(target.endpoint_id, started_ms + every_ms);
      if (!(await options.claim(target.endpoint_id, every_ms))) continue;
      count += 1;
      if (await begin(target, principal)) continue;
      // Those under way may give back what is set aside for them.
      if (under_way.size === 0) pause();
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
      await Promise.all(under_way.values());
    },
  };
}
