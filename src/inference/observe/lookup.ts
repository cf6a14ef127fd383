import { setTimeout as sleep } from 'node:timers/promises';
import type { Catalog } from '../../catalog/catalog.ts';
import { pricesFor } from '../../catalog/price-list.ts';
import type { FoundAttempt, Lookup, LostAttempt } from '../../ledger/lookup.ts';
import { charge } from '../../ledger/prices/charge.ts';
import { limits } from '../../limits.ts';
import type { Provider } from '../../providers/provider.ts';
import type { Services } from '../../providers/transport/services.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import { parseServiceJson } from '../../schemas/json-structure.ts';
import { inputTokens } from '../../schemas/usage.ts';
import { clientRequestId } from '../attempt/upstream-call.ts';

/** A provider's report of one lost attempt. */
const LOOKUP_ANSWER_BYTES_MAX = 64 * 1024;
/** The wait before a running attempt is looked up again. */
const LOOKUP_AGAIN_MS = 100;

/** A provider's report on one attempt, in the sandbox's form (`src/sandbox/memory.ts`). */
interface ReportedAttempt {
  id: string;
  outcome: string;
  billed: {
    input_tokens: number;
    cache_read_tokens: number;
    cache_write_5m_tokens: number;
    cache_write_1h_tokens: number;
    output_tokens: number;
    reasoning_tokens: number;
    audio_ms?: number;
  } | null;
}

interface Answer {
  data: ReportedAttempt[];
  /** Milliseconds since 1970: later attempts are in `data`. */
  remembers_since: number;
}

const NOTHING: FoundAttempt = { usage: null, cost_nano: 0, charges: [], upstream_id: null };

function usageOf(billed: NonNullable<ReportedAttempt['billed']>): TokenClasses {
  const { cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, reasoning_tokens } = billed;
  return {
    in_uncached: billed.input_tokens - cache_read_tokens - cache_write_5m_tokens - cache_write_1h_tokens,
    in_cache_read: cache_read_tokens,
    in_cache_write_5m: cache_write_5m_tokens,
    in_cache_write_1h: cache_write_1h_tokens,
    out_text: billed.output_tokens - reasoning_tokens,
    out_reasoning: reasoning_tokens,
    ...(billed.audio_ms === undefined ? {} : { audio_ms: billed.audio_ms }),
  };
}

function sumOf(usages: TokenClasses[]): TokenClasses {
  const sum: Record<string, number> = {};
  for (const usage of usages) {
    for (const [name, count] of Object.entries(usage) as [string, number][]) sum[name] = (sum[name] ?? 0) + count;
  }
  return sum;
}

async function ask(services: Services, attemptsUrl: string, name: string): Promise<Answer> {
  const { status, body } = await services.ask({
    url: `${attemptsUrl}/${encodeURIComponent(name)}/close`,
    bytes_max: LOOKUP_ANSWER_BYTES_MAX,
    timeout_ms: limits.lookups_ms_max,
  });
  if (status < 200 || status > 299) throw new Error(`The provider answered with ${status}`);
  return parseServiceJson(body.toString('utf8')) as unknown as Answer;
}

/**
 * Asks providers with an `attempts_url` for the outcome of an attempt, and prices it by the prices of its admission. A provider that
 * has not received the attempt refuses it from then on.
 */
export function createLookup({
  catalog,
  providers,
  services,
}: {
  catalog: Catalog;
  providers: readonly Provider[];
  services: Services;
}): Lookup {
  const urls = new Map(providers.map(({ slug, attempts_url }) => [slug, attempts_url]));

  function priced({ record, endpoint }: LostAttempt, reported: readonly ReportedAttempt[]): FoundAttempt | undefined {
    const id = reported[0]?.id ?? null;
    const billed = reported.flatMap((one) => one.billed ?? []);
    if (billed.length === 0) return { ...NOTHING, upstream_id: id };
    const usage = sumOf(billed.map(usageOf));
    const counts = Object.values(usage) as number[];
    if (!counts.every((tokens) => Number.isSafeInteger(tokens) && tokens >= 0)) {
      throw new Error('The provider reports a number that is not valid');
    }
    const model = catalog.at(Date.parse(record.created_at)).find(record.model);
    const list = model?.endpoints.find(({ id }) => id === endpoint);
    if (list === undefined) return undefined;
    const prices = pricesFor(list, { prompt_tokens: inputTokens(usage), service_tier: null });
    const images = (record.num_media_prompt ?? 0) - (record.num_input_audio_prompt ?? 0);
    const { cost_nano, lines, is_unpriced } = charge([{ usage, prices, images }]);
    return is_unpriced ? undefined : { usage, cost_nano, charges: lines, upstream_id: id };
  }

  return async (attempt) => {
    const { id, number, record, endpoint } = attempt;
    const model = catalog.find(record.model);
    const provider = model?.endpoints.find((one) => one.id === endpoint)?.provider;
    const url = provider === undefined ? undefined : urls.get(provider);
    if (url === undefined) return undefined;
    const deadline = performance.now() + limits.lookups_ms_max;
    for (;;) {
      const { data, remembers_since } = await ask(services, url, clientRequestId(id, number));
      const [first, ...others] = data;
      if (first === undefined) return Date.parse(record.created_at) >= remembers_since ? NOTHING : undefined;
      // Embeddings may take several requests; other calls have one request with this name.
      if (others.length > 0 && record.api_type !== 'embeddings') return undefined;
      if (performance.now() > deadline) return undefined;
      if (data.every(({ outcome }) => outcome !== 'open')) return priced(attempt, data);
      await sleep(LOOKUP_AGAIN_MS);
    }
  };
}
