/**
 * A gateway in front of scripted providers `a`, `b`, `c` and `d`, which speak the chat wire: what a client sees of
 * their failures, and what it pays.
 */
import { expect, vi } from 'vitest';
import { recordOf } from '../../src/ledger/journal/record-values.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { verifyLedger } from '../../src/storage/verify-ledger.ts';
import { checkChatStream } from '../grammar/chat.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { type Exchange, responseHead, type Step, startWireServer, type WireServer } from '../wires/wire-server.ts';

/** The steps of a provider for a request; `nth` counts its own requests from 0. */
export type Script = (exchange: Exchange, nth: number) => Step[];

export interface Metadata {
  attempt: number;
  attempts: AttemptSeen[];
  endpoints: { available: { provider: string; selected: boolean }[] };
}

export interface AttemptSeen {
  provider: string;
  status: number;
  failure: string | null;
  cost: number;
  continues: boolean;
  hedges: boolean;
  estimated: boolean;
  tokens_completion: number | null;
}

export interface StreamChunk {
  provider?: string;
  choices: { delta: { content?: string; tool_calls?: unknown[] }; finish_reason: string | null }[];
  usage?: { prompt_tokens: number; completion_tokens: number; cost: number };
  error?: { code: number; message: string; metadata?: { provider_name?: string } };
  gateway_metadata?: Metadata;
}

export interface StreamSeen {
  id: string;
  status: number;
  chunks: StreamChunk[];
  /** The text that a client accumulates. */
  text: string;
  finishes: (string | null)[];
  last: StreamChunk;
  is_done: boolean;
}

export interface FailoverSite {
  gateway: TestGateway;
  scripts: Record<string, Script>;
  /** The bodies that a provider received. */
  sent(provider: string): Record<string, unknown>[];
  /** The requests of a provider. */
  exchanges(provider: string): Exchange[];
  /** A key with a limit in USD; without one, a key whose spending is only counted. */
  key(limit?: number): Promise<string>;
  ask(body: object, options?: { key?: string; signal?: AbortSignal }): Promise<Response>;
  stream(body: object, options?: { key?: string }): Promise<StreamSeen>;
  generation(id: string, key?: string): Promise<Record<string, unknown> & { total_cost: number }>;
  /** No hold remains, every generation is the sum of its attempts, and the store's own check finds no difference. */
  expectSound(): Promise<void>;
  stop(): Promise<void>;
}

const PRICES: Record<string, object> = {
  a: { prompt: 1, completion: 1000 },
  b: { prompt: 2, completion: 2000 },
  c: { prompt: 3, completion: 3000 },
  d: { prompt: 4, completion: 4000 },
};

const sse = responseHead(200, 'text/event-stream');
const event = (choices: object[], more: object = {}) =>
  `data: ${JSON.stringify({ id: 'up-1', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices, ...more })}\n\n`;

/** The events of the chat wire, as a script writes them. */
export const wire = {
  head: sse,
  event,
  delta: (delta: object) => event([{ index: 0, delta, finish_reason: null }]),
  text: (...pieces: string[]) => pieces.map((content) => wire.delta({ content })).join(''),
  end: (completionTokens: number, promptTokens = 10) =>
    event([{ index: 0, delta: {}, finish_reason: 'stop' }]) +
    event([], {
      usage: {
        prompt_tokens: promptTokens,
        completion_tokens: completionTokens,
        total_tokens: promptTokens + completionTokens,
      },
    }) +
    'data: [DONE]\n\n',
  fail: (status: number): Step[] => [
    responseHead(status, 'application/json'),
    JSON.stringify({ error: { message: `scripted ${status}` } }),
    'END',
  ],
};

export async function startFailoverSite(options: {
  /** Quirks by provider. */
  quirks?: Record<string, object>;
  routing?: object;
  ledger?: object;
  timeouts?: object;
  providers?: Record<string, object>;
}): Promise<FailoverSite> {
  const scripts: Record<string, Script> = {};
  const providerOf = ({ path }: Exchange) => path.split('/')[2] ?? '';
  const counts = new Map<string, number>();
  const upstream: WireServer = await startWireServer((exchange) => {
    const provider = providerOf(exchange);
    const nth = counts.get(provider) ?? 0;
    counts.set(provider, nth + 1);
    return (scripts[provider] ?? (() => wire.fail(500)))(exchange, nth);
  });
  const names = Object.keys(PRICES);
  const rows = names.map((name) => [
    name,
    {
      name: name.toUpperCase(),
      dialect: 'openai-chat',
      base_url: `${upstream.url}/${name}`,
      quirks: options.quirks?.[name] ?? {},
      ...options.providers?.[name],
    },
  ]);
  const endpoints = names.map((provider) => ({
    provider,
    upstream_model: 'scripted',
    pricing: PRICES[provider],
    max_completion_tokens: 1_000,
  }));
  const gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      logging: { level: 'warn' },
      timeouts: { heartbeat_first_ms: 60, heartbeat_ms: 60, shutdown_ms_max: 2_000, ...options.timeouts },
      providers: Object.fromEntries(rows),
      models: { 'wire/model': { context_length: 100_000, endpoints } },
      ledger: { journal_sync: 'os', ...options.ledger },
      ...(options.routing ? { routing: options.routing } : {}),
    }),
  });

  async function makeKey(limit?: number): Promise<string> {
    const made = await fetch(`${gateway.base_url}/keys`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.management_key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'limited', ...(limit === undefined ? {} : { limit }) }),
    });
    expect(made.status).toBe(201);
    return ((await made.json()) as { key: string }).key;
  }
  // With a limit, so that money is held.
  const limited = await makeKey(1_000);

  async function ask(body: object, { key = limited, signal }: { key?: string; signal?: AbortSignal } = {}) {
    return fetch(`${gateway.base_url}/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'x-gateway-experimental-metadata': 'enabled',
      },
      body: JSON.stringify({
        model: 'wire/model',
        messages: [{ role: 'user', content: 'Hello there' }],
        max_tokens: 100,
        ...body,
        provider: { order: names, ...(body as { provider?: object }).provider },
      }),
      ...(signal ? { signal } : {}),
    });
  }

  const site: FailoverSite = {
    gateway,
    scripts,
    exchanges: (provider) => upstream.exchanges.filter((exchange) => providerOf(exchange) === provider),
    sent: (provider) => site.exchanges(provider).map(({ body }) => JSON.parse(body) as Record<string, unknown>),
    ask,
    key: makeKey,
    async stream(body, options) {
      const response = await ask({ ...body, stream: true }, options);
      const text = await response.text();
      if (response.status === 200) checkChatStream(text, { continued: true });
      const events = text.split('\n\n').filter((one) => one.startsWith('data: '));
      const data = events.map((one) => one.slice(6));
      const chunks = data.filter((one) => one !== '[DONE]').map((one) => JSON.parse(one) as StreamChunk);
      return {
        id: response.headers.get('x-generation-id') ?? '',
        status: response.status,
        chunks,
        text: chunks.map(({ choices: [choice] }) => choice?.delta.content ?? '').join(''),
        finishes: chunks.flatMap(({ choices: [choice] }) => choice?.finish_reason ?? []),
        last: chunks.at(-1) as StreamChunk,
        is_done: data.at(-1) === '[DONE]',
      };
    },
    async generation(id, key = limited) {
      const response = await fetch(`${gateway.base_url}/generation?id=${id}`, {
        headers: { authorization: `Bearer ${key}` },
      });
      expect(response.status).toBe(200);
      return ((await response.json()) as { data: Record<string, unknown> & { total_cost: number } }).data;
    },
    async expectSound() {
      await vi.waitFor(
        async () => {
          const text = await (await fetch(`${gateway.url}/metrics`)).text();
          const gaugeOf = (name: string) => Number(new RegExp(`^${name}(?:{.*})? (.+)$`, 'm').exec(text)?.[1]);
          expect(gaugeOf('gateway_ledger_held_usd')).toBe(0);
          expect(gaugeOf('gateway_journal_unflushed_records')).toBe(0);
        },
        { timeout: 60_000 },
      );
      const database = await openDatabase({ data_dir: gateway.data_dir, database_url: undefined });
      const { differences } = await verifyLedger(database.queries);
      expect(differences).toEqual([]);
      const stored = await database.queries
        .selectFrom('ledger_generations')
        .select(['cost', 'charges', 'record'])
        .execute();
      await database.close();
      for (const { cost, charges, record } of stored) {
        for (const [, , amount] of JSON.parse(charges) as [string, string, number][]) expect(amount).toBe(cost);
        const { attempts, cost_nano } = recordOf(record);
        expect(cost_nano).toBe(cost);
        expect(attempts.reduce((sum, attempt) => sum + attempt.cost_nano, 0)).toBe(cost);
      }
    },
    async stop() {
      await gateway.stop();
      await upstream.stop();
    },
  };
  return site;
}
