import type { ProviderFacts } from './far-side.ts';
import { byCost, type Router, type Strategy, tryThem, type World } from './strategy.ts';

/**
 * Portkey's gateway, from its documentation: https://portkey.ai/docs/product/ai-gateway/load-balancing,
 * https://portkey.ai/docs/product/ai-gateway/fallbacks (any status that is not 2xx),
 * https://portkey.ai/docs/product/ai-gateway/automatic-retries (on 429, 500, 502, 503, 504 and 529, at the same target,
 * after one second, two, four …) and https://portkey.ai/docs/product/ai-gateway/circuit-breaker. Only its behaviour is
 * reproduced, none of its code.
 */
interface Settings {
  mode: 'fallback' | 'loadbalance';
  retry_attempts: number;
  /** The example of the documentation: a fifth of at least ten requests. */
  circuit_breaker?: { failure_share: number; requests_min: number; cooldown_ms: number };
}

const RETRIED: ReadonlySet<number | null> = new Set([429, 500, 502, 503, 504, 529]);
const BACKOFF_MS = 1_000;

interface Circuit {
  requests: number;
  failures: number;
  open_until_ms: number;
}

function createRouter(world: World, { mode, retry_attempts, circuit_breaker: breaker }: Settings): Router {
  const { time, random, farSide } = world;
  const circuits = new Map<ProviderFacts, Circuit>();
  const circuitOf = (provider: ProviderFacts): Circuit => {
    const circuit = circuits.get(provider) ?? { requests: 0, failures: 0, open_until_ms: 0 };
    circuits.set(provider, circuit);
    return circuit;
  };
  function note(provider: ProviderFacts, ok: boolean): void {
    if (breaker === undefined) return;
    const circuit = circuitOf(provider);
    circuit.requests += 1;
    if (ok) return;
    circuit.failures += 1;
    const { failure_share, requests_min, cooldown_ms } = breaker;
    if (circuit.requests < requests_min || circuit.failures / circuit.requests <= failure_share) return;
    Object.assign(circuit, { requests: 0, failures: 0, open_until_ms: time.elapsedMs() + cooldown_ms });
  }
  /** If every circuit is open, none counts. */
  function targets(): ProviderFacts[] {
    const all = byCost(farSide.providers);
    const closed = all.filter((provider) => circuitOf(provider).open_until_ms <= time.elapsedMs());
    return closed.length === 0 ? all : closed;
  }

  return (wanted) => {
    const candidates = targets();
    const chain = mode === 'fallback' ? candidates : [random.pick(candidates)];
    let retries = 0;
    return tryThem(
      world,
      wanted,
      async (failed) => {
        if (failed === undefined) return chain[0];
        if (failed.attempt.is !== 'failed') return undefined;
        note(failed.provider, false);
        if (retries < retry_attempts && RETRIED.has(failed.attempt.status)) {
          await time.sleep(BACKOFF_MS * 2 ** retries);
          retries += 1;
          return failed.provider;
        }
        retries = 0;
        return chain[chain.indexOf(failed.provider) + 1];
      },
      (provider, { ok }) => note(provider, ok),
    );
  };
}

/** Targets are in ascending order of cost, and their weights are equal. */
export const PORTKEY: readonly Strategy[] = [
  {
    name: 'portkey loadbalance',
    description: 'Portkey, equal weights, retry.attempts: 5',
    create: (world) => createRouter(world, { mode: 'loadbalance', retry_attempts: 5 }),
  },
  {
    name: 'portkey fallback',
    description: 'Portkey, no retries',
    create: (world) => createRouter(world, { mode: 'fallback', retry_attempts: 0 }),
  },
  {
    name: 'portkey fallback, retries',
    description: 'Portkey, retry.attempts: 2',
    create: (world) => createRouter(world, { mode: 'fallback', retry_attempts: 2 }),
  },
  {
    name: 'portkey fallback, circuit breaker',
    description: 'Portkey, cb_config: 20 % of 10 requests, 60 s',
    create: (world) =>
      createRouter(world, {
        mode: 'fallback',
        retry_attempts: 0,
        circuit_breaker: { failure_share: 0.2, requests_min: 10, cooldown_ms: 60_000 },
      }),
  },
];
