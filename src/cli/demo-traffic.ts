import { subjectsOf } from '../accounts/budget.ts';
import { callerOf } from '../api/authenticate.ts';
import { generationId } from '../api/shared/call-of.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Endpoint, Model } from '../catalog/model.ts';
import { priceText } from '../catalog/price-history.ts';
import { pricesFor } from '../catalog/price-list.ts';
import { charge } from '../ledger/prices/charge.ts';
import type { AttemptRecord, Charged, GenerationRecord } from '../ledger/records.ts';
import { type Settle, toSettle } from '../ledger/settle.ts';
import { type Budget, windowStart } from '../schemas/budget.ts';
import { budgetStore } from '../storage/budgets.ts';
import type { Database } from '../storage/database.ts';
import { endpointPriceStore } from '../storage/endpoint-prices.ts';
import type { StatisticsRow } from '../storage/endpoint-statistics.ts';
import { keyStore } from '../storage/keys.ts';
import { ledgerStore } from '../storage/ledger.ts';
import { demoModels, demoTeams } from './demo-company.ts';

const DAY_MS = 86_400_000;
const BATCH = 400;
const NODE = 'demo';
/** The span of a row of statistics, in minutes. */
const QUARTER = 15;

/** A sequence of numbers from 0 to 1 that is the same at each run (Lehmer). */
export function createChance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

interface Payer {
  key: NonNullable<Awaited<ReturnType<ReturnType<typeof keyStore>['findByHash']>>>;
  budgets: readonly Budget[];
  habit: (typeof demoTeams)[number]['keys'][number];
}

/** Picks a member of the list, weighted by its share. */
function chosen<T extends { share: number }>(of: readonly T[], chance: () => number): T {
  let rest = chance() * of.reduce((sum, { share }) => sum + share, 0);
  for (const one of of) {
    rest -= one.share;
    if (rest < 0) return one;
  }
  return of[0] as T;
}

function momentOf(day: number, { hours }: Payer['habit'], chance: () => number): number {
  const spread = (chance() + chance() + chance()) / 3;
  const hour = hours === 'day' ? 6 + spread * 13 : hours === 'night' ? 1 + chance() * 2 : chance() * 24;
  return day + Math.floor(hour * 3_600_000);
}

interface Invention {
  catalog: Catalog;
  payers: readonly Payer[];
  chance: () => number;
}

function attemptOf(model: Model, endpoint: Endpoint, provider: string, over: Partial<AttemptRecord>): AttemptRecord {
  return {
    endpoint_id: endpoint.id,
    provider_name: provider,
    model_permaslug: model.canonical_slug,
    status: 200,
    latency: null,
    is_byok: false,
    upstream_id: null,
    failure: null,
    cost_nano: 0,
    ...over,
  };
}

/** One invented call; its cost follows from the prices of the catalog. */
function inventedCall(atMs: number, { catalog, payers, chance }: Invention, session: string | null): GenerationRecord {
  const payer = chosen(
    payers.map((one) => ({ ...one, share: one.habit.share })),
    chance,
  );
  const { key, habit } = payer;
  const choice = chosen(demoModels, chance);
  const model = catalog.find(choice.id) as Model;
  const [first, second] = model.endpoints as [Endpoint, Endpoint | undefined];
  const nameOf = ({ provider }: Endpoint) => catalog.provider(provider)?.name ?? provider;
  // On some days a provider fails more often.
  const isBadDay = (Math.floor(atMs / DAY_MS) * 7 + choice.id.length) % 11 === 0;
  const fails = chance() > (isBadDay ? 0.88 : 0.997);
  const hasFailed = fails && second === undefined;
  const fellBack = fails && second !== undefined;
  const endpoint = fellBack && second !== undefined ? second : first;
  const prompt = Math.round(habit.prompt * (0.4 + chance() * 1.3));
  const cached = chance() > 0.55 ? Math.round(prompt * 0.6) : 0;
  const answer = Math.round(habit.answer * (0.3 + chance() * 1.5)) + 1;
  const thought = choice.id.includes('reason') ? Math.round(answer * 0.8) : 0;
  const usage = hasFailed
    ? null
    : {
        in_uncached: prompt - cached,
        ...(cached > 0 ? { in_cache_read: cached } : {}),
        out_text: answer,
        ...(thought > 0 ? { out_reasoning: thought } : {}),
      };
  const prices = pricesFor(endpoint, { prompt_tokens: prompt, service_tier: null });
  const cost = usage === null ? undefined : charge([{ usage, prices }]);
  const latency = Math.round(180 + chance() * chance() * 1_400);
  const failure = attemptOf(model, first, nameOf(first), {
    status: chance() > 0.5 ? 503 : 429,
    latency: Math.round(40 + chance() * 300),
    failure: 'unavailable',
  });
  const answered = attemptOf(model, endpoint, nameOf(endpoint), {
    latency,
    cost_nano: cost?.cost_nano ?? 0,
    tokens: [prompt, answer + thought],
    ...(cost === undefined ? {} : { charges: [...cost.lines] }),
  });
  return {
    id: generationId(atMs),
    request_id: generationId(atMs).replace('gen', 'req'),
    api_type: 'completions',
    created_at: new Date(atMs).toISOString(),
    key_hash: key.hash,
    workspace_id: key.workspace_id,
    organization_id: key.organization_id,
    user_id: key.creator_user_id,
    model: model.id,
    requested_model: model.id,
    provider_name: nameOf(endpoint),
    endpoint_id: endpoint.id,
    streamed: habit.hours !== 'all',
    is_byok: false,
    external_user: null,
    session_id: session,
    http_referer: null,
    title: habit.name,
    categories: [],
    user_agent: 'OpenAI/Python 2.8.1',
    num_media_prompt: null,
    num_input_audio_prompt: null,
    attempts: hasFailed ? [failure] : fellBack ? [failure, answered] : [answered],
    upstream_id: null,
    outcome: hasFailed ? 'failed' : 'completed',
    cancelled: false,
    finish_reason: hasFailed ? null : 'stop',
    native_finish_reason: hasFailed ? null : 'stop',
    service_tier: null,
    latency: hasFailed ? null : latency,
    generation_time: hasFailed ? null : latency + Math.round(((answer + thought) / choice.tps) * 1_000),
    usage,
    cost_nano: cost?.cost_nano ?? 0,
    upstream_cost_nano: cost?.cost_nano ?? 0,
    cache_discount_nano: cost?.cache_discount_nano ?? null,
  };
}

/** The charges of a call: one to every budget of its key, in the window of its time. */
function chargesOf(budgets: readonly Budget[], { created_at, cost_nano }: GenerationRecord): Charged[] {
  return budgets.map(({ id, reset_interval }) => ({
    budget_id: id,
    window_start: windowStart(reset_interval, Date.parse(created_at)),
    amount: cost_nano,
    cover: 0,
  }));
}

/** The days and endpoints of invented calls, for their health. */
function countHealth(days: Map<string, [ok: number, failed: number, limited: number]>, record: GenerationRecord): void {
  const day = Math.floor(Date.parse(record.created_at) / DAY_MS);
  for (const { endpoint_id, failure, status } of record.attempts) {
    const name = `${endpoint_id} ${day}`;
    const counts = days.get(name) ?? [0, 0, 0];
    counts[failure === null ? 0 : status === 429 ? 2 : 1] += 1;
    days.set(name, counts);
  }
}

/** The calls of the last day by quarter hour, which recent uptimes are made of. */
function recentQuarters(records: readonly GenerationRecord[], nowMs: number) {
  const rows = new Map<string, StatisticsRow & { run: string; written_at: number }>();
  const none = { span: QUARTER, run: NODE, tool_calls: 0, tool_calls_valid: 0, sketches: '', written_at: nowMs };
  for (const { created_at, attempts } of records) {
    const at = Date.parse(created_at);
    if (at < nowMs - DAY_MS) continue;
    const start = Math.floor(at / 60_000 / QUARTER) * QUARTER;
    for (const { endpoint_id, failure, status } of attempts) {
      const name = `${endpoint_id} ${start}`;
      const row = rows.get(name) ?? { endpoint_id, start, successes: 0, errors: 0, rate_limited: 0, ...none };
      row[failure === null ? 'successes' : status === 429 ? 'rate_limited' : 'errors'] += 1;
      rows.set(name, row);
    }
  }
  return [...rows.values()];
}

/** Invented prices of an endpoint: the earlier ones, until 45 days ago, were a quarter higher. */
function formerPrices(endpoint: Endpoint, nowMs: number) {
  const { prompt = 0, completion = 0 } = endpoint.pricing;
  const former = { ...endpoint.pricing, prompt: (prompt / 4) * 5, completion: (completion / 4) * 5 };
  return [
    { endpoint_id: endpoint.id, seq: 1, from_ms: nowMs - 200 * DAY_MS, prices: priceText({ pricing: former }) },
    { endpoint_id: endpoint.id, seq: 2, from_ms: nowMs - 45 * DAY_MS, prices: priceText(endpoint) },
  ];
}

/** Settles a month of invented calls through the ledger, as a node of its own: the sums are those of real calls. */
export async function settleDemoTraffic(
  database: Database,
  { catalog, nowMs, calls, days }: { catalog: Catalog; nowMs: number; calls: number; days: number },
): Promise<number> {
  const chance = createChance(20_261_123);
  const { queries, engine } = database;
  const store = ledgerStore(queries, engine);
  const hashes = await queries
    .selectFrom('api_keys')
    .select(['hash', 'name'])
    .where('is_management', '=', false)
    .execute();
  const habits = demoTeams.flatMap(({ keys }) => [...keys]);
  const payers: Payer[] = [];
  for (const { hash, name } of hashes) {
    const habit = habits.find((one) => one.name === name);
    const key = habit && (await keyStore(queries).findByHash(hash));
    if (habit === undefined || key === undefined) continue;
    payers.push({ key, habit, budgets: await budgetStore(queries).findBySubjects(subjectsOf(callerOf(key))) });
  }
  const budgetsOf = new Map(payers.map(({ key, budgets }) => [key.hash, budgets]));
  const today = Math.floor(nowMs / DAY_MS) * DAY_MS;
  const moments: number[] = [];
  for (let back = days; back >= 0; back -= 1) {
    const day = today - back * DAY_MS;
    const isWeekend = [0, 6].includes(new Date(day).getUTCDay());
    // The company grows a little each day.
    const count = Math.round((calls / days) * (isWeekend ? 0.35 : 1.2) * (1.15 - (back / days) * 0.3));
    for (let one = 0; one < count; one += 1) {
      const at = momentOf(day, (payers[one % payers.length] as Payer).habit, chance);
      if (at < nowMs - 60_000) moments.push(at);
    }
  }
  moments.sort((a, b) => a - b);
  let session: string | null = null;
  const records = moments.map((at, index) => {
    if (index % 7 === 0) session = chance() > 0.5 ? `session-${Math.floor(chance() * 1e9).toString(36)}` : null;
    return inventedCall(at, { catalog, payers, chance }, session);
  });
  const health = new Map<string, [number, number, number]>();
  const known = new Set<string>();
  const registered = await store.register({
    node: NODE,
    instance: NODE,
    epoch_seen: 0,
    known: await store.position(NODE),
    at: nowMs,
  });
  if (registered === undefined) throw new Error('The node of the demo is already registered');
  for (let from = 0, number = 1; from < records.length; from += BATCH, number += 1) {
    const settles: Settle[] = records.slice(from, from + BATCH).map((record) => {
      countHealth(health, record);
      return toSettle(record, chargesOf(budgetsOf.get(record.key_hash) ?? [], record));
    });
    const windows = new Map(
      settles.flatMap(({ charges }) =>
        charges.map(({ budget_id, window_start }) => [`${budget_id} ${window_start}`, { budget_id, window_start }]),
      ),
    );
    await store.settle({
      node: NODE,
      epoch: registered.epoch,
      number,
      at: nowMs,
      settles,
      divisor: 1,
      windows: [...windows].map(([name, window]) => {
        const isNew = !known.has(name);
        known.add(name);
        return { ...window, is_new: isNew, own: 0, returned: 0, need: 0, want: 0, slack: 0, withdraws: false };
      }),
    });
  }
  // It never returns and has no money: in the list of nodes it would be a lost one.
  await queries.deleteFrom('ledger_nodes').where('id', '=', NODE).execute();
  const rows = [...health].map(([name, [successes, errors, limited]]) => {
    const space = name.lastIndexOf(' ');
    return {
      endpoint_id: name.slice(0, space),
      day: Number(name.slice(space + 1)),
      successes,
      errors,
      rate_limited: limited,
    };
  });
  for (let from = 0; from < rows.length; from += BATCH)
    await queries
      .insertInto('endpoint_days')
      .values(rows.slice(from, from + BATCH))
      .execute();
  await queries.insertInto('endpoint_statistics').values(recentQuarters(records, nowMs)).execute();
  // The gateway that filled the store has recorded prices at its simulated, earlier time.
  await queries.deleteFrom('endpoint_prices').execute();
  await endpointPriceStore(queries).add(catalog.endpoints().flatMap((endpoint) => formerPrices(endpoint, nowMs)));
  return records.length;
}
