import type { Random } from '../../test/simulation/random.ts';
import { costNano, type FarSide, type ProviderFacts, type Wanted } from './far-side.ts';
import type { VirtualTime } from './virtual-time.ts';

/** The environment of a strategy: virtual time, providers, and randomness of its own. */
export interface World {
  time: VirtualTime;
  farSide: FarSide;
  random: Random;
  /** Every strategy abandons an attempt after this time without a first token. */
  first_token_ms_max: number;
}

/** How a request ended for its client. Times count from its arrival. */
export interface RequestOutcome {
  /** Whether the whole answer arrived. */
  ok: boolean;
  /** The time of the first token. Undefined if there was none. */
  first_ms: number | undefined;
  /** The time of attempts before the one that answered. */
  lost_ms: number;
  attempts: number;
  /** Its provider's name. */
  by: string | undefined;
}

/** A way to choose providers. It serves concurrent requests as they arrive. */
export type Router = (wanted: Wanted) => Promise<RequestOutcome>;

export interface Strategy {
  name: string;
  /** A description, or the source of its documentation. */
  description: string;
  create(world: World): Router;
}

/** One attempt, as its sender sees it. */
export type Attempt =
  | {
      is: 'answering';
      first_ms: number;
      /** Whether the answer was complete when the attempt ended. */
      ended: Promise<boolean>;
    }
  /** `status` is null if there was no connection, and 408 if the attempt was abandoned. */
  | { is: 'failed'; status: number | null; retry_after_ms: number | undefined };

/** Sends a request, and waits for its first token or for the certainty that none arrives. */
async function attempt(
  { time, farSide, first_token_ms_max }: World,
  provider: ProviderFacts,
  wanted: Wanted,
  nth: number,
): Promise<Attempt> {
  const exchange = farSide.send(provider, wanted, nth);
  const { reply } = exchange;
  if (reply.is === 'refusal') {
    await time.sleep(reply.after_ms);
    return { is: 'failed', status: reply.status, retry_after_ms: reply.retry_after_ms };
  }
  if (reply.is === 'silence' || reply.first_ms > first_token_ms_max) {
    await time.sleep(first_token_ms_max);
    exchange.end();
    return { is: 'failed', status: 408, retry_after_ms: undefined };
  }
  const { first_ms, total_ms, dies_ms } = reply;
  await time.sleep(first_ms);
  const ended = time.sleep((dies_ms ?? total_ms) - first_ms).then(() => {
    exchange.end();
    return dies_ms === undefined;
  });
  return { is: 'answering', first_ms, ended };
}

/** Tries providers one after another as `next` names them; `failed` and `over` receive the outcome of each. */
export async function tryThem(
  world: World,
  wanted: Wanted,
  next: (failed: { provider: ProviderFacts; attempt: Attempt } | undefined) => Promise<ProviderFacts | undefined>,
  over: (provider: ProviderFacts, how: { first_ms: number; ok: boolean }) => void = () => {},
): Promise<RequestOutcome> {
  const arrivedMs = world.time.elapsedMs();
  const tries = new Map<ProviderFacts, number>();
  let failed: { provider: ProviderFacts; attempt: Attempt } | undefined;
  for (let attempts = 0; ; attempts += 1) {
    const provider = await next(failed);
    const lostMs = world.time.elapsedMs() - arrivedMs;
    if (provider === undefined) return { ok: false, first_ms: undefined, lost_ms: lostMs, attempts, by: undefined };
    const nth = tries.get(provider) ?? 0;
    tries.set(provider, nth + 1);
    const tried = await attempt(world, provider, wanted, nth);
    if (tried.is === 'answering') {
      const ok = await tried.ended;
      over(provider, { first_ms: tried.first_ms, ok });
      return { ok, first_ms: lostMs + tried.first_ms, lost_ms: lostMs, attempts: attempts + 1, by: provider.name };
    }
    failed = { provider, attempt: tried };
  }
}

const typical = { prompt_tokens: 3, completion_tokens: 1 };

/** In ascending order of the cost of a request with three prompt tokens for each token of the answer. */
export function byCost(providers: readonly ProviderFacts[]): ProviderFacts[] {
  return providers.toSorted((a, b) => costNano(a, typical) - costNano(b, typical));
}

/**
 * Knows in advance which providers are healthy and would answer, and takes the best of them, which no gateway can do.
 * If none is healthy it takes one that would answer by luck.
 */
function oracle(
  name: string,
  description: string,
  rank: (provider: ProviderFacts, firstMs: number) => number,
): Strategy {
  return {
    name,
    description,
    create: (world) => (wanted) => {
      const { farSide } = world;
      const able = farSide.providers.flatMap((provider) => {
        const reply = farSide.foresee(provider, wanted, 0);
        if (reply.is !== 'stream' || reply.dies_ms !== undefined) return [];
        return { provider, ill: farSide.isWell(provider) ? 0 : 1, rank: rank(provider, reply.first_ms) };
      });
      const best = able.sort((a, b) => a.ill - b.ill || a.rank - b.rank)[0]?.provider;
      return tryThem(world, wanted, async (failed) => (failed ? undefined : best));
    },
  };
}

/** The lowest cost of answers without luck. */
export const CHEAPEST_HEALTHY = oracle(
  'cheapest healthy (oracle)',
  'knows who is well, takes the cheapest',
  (provider) => costNano(provider, typical),
);

/** The earliest possible first tokens. */
export const FASTEST_HEALTHY = oracle(
  'fastest healthy (oracle)',
  'knows who is well, takes the fastest',
  (_provider, firstMs) => firstMs,
);

/** Strategies without a gateway. */
export const SIMPLE: readonly Strategy[] = [
  {
    name: 'always the cheapest',
    description: 'one provider, no fallback',
    create: (world) => {
      const [cheapest] = byCost(world.farSide.providers);
      return (wanted) => tryThem(world, wanted, async (failed) => (failed ? undefined : cheapest));
    },
  },
  {
    name: 'round robin',
    description: 'each in turn, no fallback',
    create: (world) => {
      let turn = -1;
      const { providers } = world.farSide;
      return (wanted) => {
        turn += 1;
        const mine = providers[turn % providers.length];
        return tryThem(world, wanted, async (failed) => (failed ? undefined : mine));
      };
    },
  },
];
