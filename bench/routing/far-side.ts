import { Random } from '../../test/simulation/random.ts';

/** A provider with its list prices and its behaviour on a good day. */
export interface ProviderFacts {
  name: string;
  /** USD per million tokens. */
  prompt_usd: number;
  completion_usd: number;
  /** Median time to the first token. */
  first_token_ms: number;
  /** The spread: the standard deviation of the logarithm. */
  spread: number;
  tokens_per_second: number;
  /** The number of requests that it accepts in each minute of the clock. Not set if there is no limit. */
  requests_per_minute?: number;
  /** Whether its 429 states how long to wait. */
  tells_retry_after?: boolean;
}

/** An incident of a provider. */
export interface Incident {
  provider: string;
  from_min: number;
  to_min: number;
  /**
   * `down`: 503. `errors`: 500 for a share of the requests. `refused`: no connection. `hangs`: takes requests and never
   * answers. `dies`: breaks off a share of its streams in the middle. `slow`: first token later by a factor, tokens slower.
   * `limited`: takes fewer requests a minute.
   */
  is: 'down' | 'errors' | 'refused' | 'hangs' | 'dies' | 'slow' | 'limited';
  /** The share of requests that it concerns. Default: all. */
  share?: number;
  /** The factor of slowness. */
  factor?: number;
  requests_per_minute?: number;
}

/** One request of the workload. */
export interface Wanted {
  index: number;
  at_ms: number;
  prompt_tokens: number;
  completion_tokens: number;
}

/** What happens to a request that is sent to a provider now. */
export type Reply =
  /** `status` null: the connection is refused. */
  | { is: 'refusal'; after_ms: number; status: number | null; retry_after_ms: number | undefined }
  | { is: 'silence' }
  /** `dies_ms`: when the answer breaks off, if it does. */
  | { is: 'stream'; first_ms: number; total_ms: number; dies_ms: number | undefined };

/** One request at a provider. */
export interface Exchange {
  reply: Reply;
  /** Ends the request, by itself or because the caller closed it: what was generated until then is billed. */
  end(): void;
}

export interface FarSide {
  providers: readonly ProviderFacts[];
  /** The outcome if the request were sent now; changes nothing. */
  foresee(provider: ProviderFacts, wanted: Wanted, nth: number): Reply;
  /** Whether there is no incident except slowness, so that the outcome does not depend on luck. */
  isWell(provider: ProviderFacts): boolean;
  send(provider: ProviderFacts, wanted: Wanted, nth: number): Exchange;
  /** The amount that the providers have charged for a request so far, in nano-USD. */
  billedNano(index: number): number;
  /** The requests that were sent. */
  sent: number;
}

const MINUTE_MS = 60_000;
const REFUSAL_MS: Record<string, number> = { down: 120, errors: 400, limited: 60, refused: 5 };

/** The price of a whole answer in nano-USD: a USD per million tokens is a thousand nano-USD a token. */
export function costNano(
  { prompt_usd, completion_usd }: ProviderFacts,
  tokens: { prompt_tokens: number; completion_tokens: number },
): number {
  return 1_000 * (prompt_usd * tokens.prompt_tokens + completion_usd * tokens.completion_tokens);
}

/** Randomness of a request, a provider and a try, so that every strategy meets the same. */
function chanceOf(seed: number, index: number, provider: number, nth: number): Random {
  const mixed =
    Math.imul(seed, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b) ^ Math.imul(provider * 64 + nth, 0xc2b2ae35);
  return new Random(mixed);
}

/** A number from the normal distribution (Box and Muller). */
function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}

/** The requests of a run: arrivals are random at this rate, lengths of prompts and answers have long tails. */
export function workloadOf(seed: number, { minutes, per_second }: { minutes: number; per_second: number }): Wanted[] {
  const random = new Random(seed * 7 + 1);
  const requests: Wanted[] = [];
  for (let atMs = 0; ; ) {
    atMs += (-Math.log(1 - random.next()) * 1_000) / per_second;
    if (atMs >= minutes * MINUTE_MS) return requests;
    requests.push({
      index: requests.length,
      at_ms: atMs,
      prompt_tokens: Math.round(random.longTailed(100, 1_500, 12_000)),
      completion_tokens: Math.round(random.longTailed(20, 400, 1_500)),
    });
  }
}

/**
 * The providers of one run. With the same seed every request has the same luck at every provider, whichever strategy
 * sends it.
 */
export function createFarSide(
  { providers, incidents }: { providers: readonly ProviderFacts[]; incidents: readonly Incident[] },
  seed: number,
  elapsedMs: () => number,
): FarSide {
  const bills = new Map<number, number>();
  const taken = providers.map(() => ({ minute: -1, count: 0 }));
  const at = new Map(providers.map((provider, index) => [provider, index]));

  function running({ name }: ProviderFacts): Incident[] {
    const minute = elapsedMs() / MINUTE_MS;
    return incidents.filter(
      ({ provider, from_min, to_min }) => provider === name && from_min <= minute && minute < to_min,
    );
  }

  function place(provider: ProviderFacts): number {
    return at.get(provider) ?? 0;
  }

  function refusal(kind: string, status: number | null, retryAfterMs?: number): Reply {
    return { is: 'refusal', after_ms: REFUSAL_MS[kind] ?? 0, status, retry_after_ms: retryAfterMs };
  }

  /** The limit of this minute, and what is left of it. */
  function limitOf(provider: ProviderFacts, active: readonly Incident[]): { left: number; until_ms: number } {
    const lowest = active.flatMap(({ requests_per_minute = [] }) => requests_per_minute);
    const limit = Math.min(provider.requests_per_minute ?? Number.POSITIVE_INFINITY, ...lowest);
    const minute = Math.floor(elapsedMs() / MINUTE_MS);
    const used = taken[place(provider)];
    const left = limit - (used?.minute === minute ? used.count : 0);
    return { left, until_ms: (minute + 1) * MINUTE_MS - elapsedMs() };
  }

  function foresee(provider: ProviderFacts, wanted: Wanted, nth: number): Reply {
    const active = running(provider);
    const random = chanceOf(seed, wanted.index, place(provider), nth);
    // Drawn before any decision, so that events do not change a request's later luck.
    const luck = random.next();
    const first = provider.first_token_ms * Math.exp(provider.spread * normal(random)) + wanted.prompt_tokens / 20;
    const breaking = random.between(0.1, 0.9);
    const hit = (kind: Incident['is']) => active.find(({ is, share = 1 }) => is === kind && luck < share);
    if (hit('refused')) return refusal('refused', null);
    const { left, until_ms } = limitOf(provider, active);
    if (left <= 0) return refusal('limited', 429, provider.tells_retry_after ? until_ms : undefined);
    if (hit('down')) return refusal('down', 503);
    if (hit('errors')) return refusal('errors', 500);
    if (hit('hangs')) return { is: 'silence' };
    const factor = hit('slow')?.factor ?? 1;
    const firstMs = first * factor;
    // The later tokens are slowed by the square root: a queue delays the first token most.
    const makingMs = (wanted.completion_tokens / provider.tokens_per_second) * 1_000 * Math.sqrt(factor);
    const diesMs = hit('dies') ? firstMs + makingMs * breaking : undefined;
    return { is: 'stream', first_ms: firstMs, total_ms: firstMs + makingMs, dies_ms: diesMs };
  }

  const farSide: FarSide = {
    providers,
    sent: 0,
    foresee,
    isWell: (provider) => running(provider).every(({ is }) => is === 'slow' || is === 'limited'),
    billedNano: (index) => bills.get(index) ?? 0,
    send(provider, wanted, nth) {
      const reply = foresee(provider, wanted, nth);
      const sentMs = elapsedMs();
      farSide.sent += 1;
      const used = taken[place(provider)];
      const minute = Math.floor(sentMs / MINUTE_MS);
      if (used && used.minute !== minute) Object.assign(used, { minute, count: 0 });
      const isTaken = reply.is !== 'refusal' || (reply.status !== null && reply.status !== 429);
      if (used && isTaken) used.count += 1;
      let isOver = false;
      return {
        reply,
        end() {
          if (isOver || reply.is !== 'stream') return;
          isOver = true;
          const { first_ms, total_ms, dies_ms = total_ms } = reply;
          const madeMs = Math.min(elapsedMs() - sentMs, dies_ms) - first_ms;
          const made = madeMs <= 0 ? 0 : madeMs / (total_ms - first_ms);
          const completionTokens = wanted.completion_tokens * Math.min(1, made);
          const before = bills.get(wanted.index) ?? 0;
          bills.set(wanted.index, before + costNano(provider, { ...wanted, completion_tokens: completionTokens }));
        },
      };
    },
  };
  return farSide;
}
