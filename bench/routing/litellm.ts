import type { ProviderFacts } from './far-side.ts';
import { type Attempt, byCost, type Router, type Strategy, tryThem, type World } from './strategy.ts';

/**
 * LiteLLM's router, from its documentation: https://docs.litellm.ai/docs/routing (strategies),
 * https://docs.litellm.ai/docs/router/learn/strategies, https://docs.litellm.ai/docs/router/learn/reliability (retries,
 * cooldowns: a 429 and a timeout at once, as in the table "When are deployments cooled down?" of the first page) and
 * https://docs.litellm.ai/docs/router/api_reference/configuration (defaults). Only its behaviour is reproduced, none of
 * its code.
 */
interface Settings {
  /** Retries in the same group of deployments, each with a new pick. Default 2. */
  num_retries: number;
  /** How long a failing deployment is skipped, if a 429 does not state a time. Default 5 s. */
  cooldown_ms: number;
  /**
   * Failures in a minute above which a deployment cools down. Undefined, the default: more than half of at least five
   * requests in a minute.
   */
  allowed_fails?: number;
}

const DEFAULTS: Settings = { num_retries: 2, cooldown_ms: 5_000 };

const MINUTE_MS = 60_000;
const FAILING_SHARE = 0.5;
const FAILING_REQUESTS_MIN = 5;
const RETRY_DELAY_MS = 500;
const RETRY_DELAY_MS_MAX = 8_000;
const JITTER_MS = 750;
const RETRY_AFTER_MS_MAX = 60_000;

/** The router's record of one deployment. */
interface Deployment {
  provider: ProviderFacts;
  in_flight: number;
  cool_until_ms: number;
  /** Counters of a window of a minute that begins with the first of them. */
  window_ms: number;
  successes: number;
  failures: number;
  /** Times to the first token of the last ten; a timeout counts as a thousand seconds. */
  latencies_ms: number[];
  /** Tokens and requests of this minute of the clock. */
  minute: number;
  tokens: number;
  requests: number;
}

type Pick = (healthy: readonly Deployment[], world: World) => Deployment | undefined;

const LATENCIES_MAX = 10;
const TIMEOUT_PENALTY_MS = 1_000_000;

function meanLatency({ latencies_ms }: Deployment): number {
  return latencies_ms.length === 0 ? 0 : latencies_ms.reduce((sum, one) => sum + one, 0) / latencies_ms.length;
}

function least(healthy: readonly Deployment[], of: (one: Deployment) => number): Deployment | undefined {
  let best: Deployment | undefined;
  for (const one of healthy) if (best === undefined || of(one) < of(best)) best = one;
  return best;
}

/** The deployments within the configured limits. */
function underLimits(healthy: readonly Deployment[]): Deployment[] {
  return healthy.filter(
    ({ provider, requests }) => requests < (provider.requests_per_minute ?? Number.POSITIVE_INFINITY),
  );
}

const PICKS = {
  'simple-shuffle': (healthy, { random }) => (healthy.length === 0 ? undefined : random.pick(healthy)),
  'least-busy': (healthy) => least(healthy, ({ in_flight }) => in_flight),
  // Without a buffer, which is the default.
  'latency-based-routing': (healthy) => least(healthy, meanLatency),
  'usage-based-routing-v2': (healthy) => least(underLimits(healthy), ({ tokens }) => tokens),
  'cost-based-routing': (healthy) => {
    const [cheapest] = byCost(underLimits(healthy).map(({ provider }) => provider));
    return healthy.find(({ provider }) => provider === cheapest);
  },
} as const satisfies Record<string, Pick>;

function turnMinute(one: Deployment, nowMs: number): void {
  const minute = Math.floor(nowMs / MINUTE_MS);
  if (one.minute !== minute) Object.assign(one, { minute, tokens: 0, requests: 0 });
}

function turnWindow(one: Deployment, nowMs: number): void {
  if (nowMs - one.window_ms >= MINUTE_MS) Object.assign(one, { window_ms: nowMs, successes: 0, failures: 0 });
}

function fail(one: Deployment, failed: Attempt & { is: 'failed' }, nowMs: number, settings: Settings): void {
  const { status, retry_after_ms } = failed;
  if (status === 408) one.latencies_ms = [...one.latencies_ms, TIMEOUT_PENALTY_MS].slice(-LATENCIES_MAX);
  turnWindow(one, nowMs);
  one.failures += 1;
  const requests = one.successes + one.failures;
  const isFailing =
    settings.allowed_fails === undefined
      ? requests >= FAILING_REQUESTS_MIN && one.failures / requests > FAILING_SHARE
      : one.failures > settings.allowed_fails;
  if (status !== 429 && status !== 408 && !isFailing) return;
  one.cool_until_ms = nowMs + (retry_after_ms ?? settings.cooldown_ms);
}

function createRouter(world: World, pick: Pick, settings: Settings): Router {
  const { time, random } = world;
  const nowMs = time.elapsedMs;
  const deployments = world.farSide.providers.map(
    (provider): Deployment => ({
      provider,
      in_flight: 0,
      cool_until_ms: 0,
      window_ms: 0,
      successes: 0,
      failures: 0,
      latencies_ms: [],
      minute: -1,
      tokens: 0,
      requests: 0,
    }),
  );
  const healthy = () => deployments.filter(({ cool_until_ms }) => cool_until_ms <= nowMs());

  return (wanted) => {
    let retries = 0;
    let mine: Deployment | undefined;
    const choose = () => {
      for (const one of deployments) turnMinute(one, nowMs());
      mine = pick(healthy(), world);
      if (mine === undefined) return undefined;
      mine.in_flight += 1;
      mine.requests += 1;
      return mine.provider;
    };
    const leave = () => {
      if (mine !== undefined) mine.in_flight -= 1;
    };
    return tryThem(
      world,
      wanted,
      async (failed) => {
        if (failed === undefined) return choose();
        leave();
        if (mine === undefined || failed.attempt.is !== 'failed') return undefined;
        fail(mine, failed.attempt, nowMs(), settings);
        if (retries >= settings.num_retries) return undefined;
        // With other healthy deployments at once; without any, not at all.
        if (healthy().length === 0) return undefined;
        if (deployments.length === 1) {
          const { retry_after_ms = 0 } = failed.attempt;
          const retryAfterMs = retry_after_ms > 0 && retry_after_ms <= RETRY_AFTER_MS_MAX ? retry_after_ms : undefined;
          const doubled = Math.min(RETRY_DELAY_MS * 2 ** retries, RETRY_DELAY_MS_MAX);
          await time.sleep((retryAfterMs ?? doubled) + random.next() * JITTER_MS);
        }
        retries += 1;
        return choose();
      },
      (_provider, { first_ms, ok }) => {
        leave();
        if (mine === undefined) return;
        if (!ok) {
          // After text has arrived, nothing is retried.
          fail(mine, { is: 'failed', status: 503, retry_after_ms: undefined }, nowMs(), settings);
          return;
        }
        turnWindow(mine, nowMs());
        turnMinute(mine, nowMs());
        mine.successes += 1;
        mine.tokens += wanted.prompt_tokens + wanted.completion_tokens;
        mine.latencies_ms = [...mine.latencies_ms, first_ms].slice(-LATENCIES_MAX);
      },
    );
  };
}

/** Every strategy with its defaults, and the two most used ones with longer cooldowns that an operator has set. */
export const LITELLM: readonly Strategy[] = [
  ...Object.entries(PICKS).map(([name, pick]) => ({
    name: `litellm ${name}`,
    description: 'LiteLLM, its defaults',
    create: (world: World) => createRouter(world, pick, DEFAULTS),
  })),
  ...(['simple-shuffle', 'cost-based-routing'] as const).map((name) => ({
    name: `litellm ${name}, tuned`,
    description: 'LiteLLM with allowed_fails: 1, cooldown_time: 60',
    create: (world: World) =>
      createRouter(world, PICKS[name], { ...DEFAULTS, allowed_fails: 1, cooldown_ms: MINUTE_MS }),
  })),
];
