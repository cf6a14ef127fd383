/**
 * All operations over all wires of the sandbox, whole and streamed, some with disconnected clients: then all totals are
 * correct.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sandboxModels, sandboxSpeechModels, sandboxVectorModels } from '../sandbox/catalog.ts';
import { recordOf } from '../src/ledger/journal/record-values.ts';
import { amountAtto } from '../src/ledger/prices/charge.ts';
import type { AttemptRecord } from '../src/ledger/records.ts';
import { openDatabase } from '../src/storage/database.ts';
import { gatewayWithCommands } from './command-line.ts';
import { describeStores } from './ledger/store-variants.ts';
import { startSearchEngine } from './search-engine.ts';

const LIMIT_USD = 0.002;
const AT_ONCE = 8;
const inputAudio = {
  data: readFileSync(join(import.meta.dirname, 'audio/speech.wav')).toString('base64'),
  format: 'wav',
};
const messages = [{ role: 'user', content: 'Tell me of the sea, at some length.' }];

/** One request to an operation; `leaves_ms`: its client disconnects after this time. */
interface Ask {
  path: string;
  body: Record<string, unknown>;
  leaves_ms: number;
}

/** The operations of the other client APIs; a list of prompts is as many calls. */
const OTHERS: Pick<Ask, 'path' | 'body'>[] = [
  { path: '/responses', body: { input: 'Tell me of the sea, at some length.', max_output_tokens: 120 } },
  { path: '/messages', body: { messages, max_tokens: 120 } },
  { path: '/completions', body: { prompt: ['Tell me of the sea.', 'And of ships.', 'And of wind.'], max_tokens: 60 } },
];

const SEARCH_USD = 0.0001;
const PAGES = [{ url: 'https://a.example/one', title: 'One', text: 'The first page.' }];
const search = { type: 'gateway:web_search', parameters: { engine: 'exa' } };
const plugins = [{ id: 'web', engine: 'exa' }];

/** The gateway's own searches: by models that call them, and before a call. */
function searchingAsks(): Ask[] {
  const models = Object.keys(sandboxModels).filter((model) => /research|tools/.test(model));
  return models.flatMap((model) =>
    [
      { path: '/chat/completions', body: { messages, max_tokens: 120 } },
      ...OTHERS.filter(({ path }) => path !== '/completions'),
    ].flatMap(({ path, body }, nth): Ask[] => {
      const ask = (stream: boolean, more: object, leavesMs = 20_000): Ask => {
        return { path, body: { model, stream, ...body, ...more }, leaves_ms: leavesMs };
      };
      return [
        ask(nth % 2 === 0, { tools: [search, { type: 'gateway:datetime' }] }),
        ask(nth % 2 === 1, { tools: [search], max_tool_calls: 1 }),
        ask(true, { plugins }),
        ask(true, { tools: [search], plugins }, 60),
      ];
    }),
  );
}

function asks(): Ask[] {
  const chats = Object.keys(sandboxModels).flatMap((model): Ask[] => {
    const never = /hang|stall|slow/.test(model);
    const ask = (stream: boolean, leavesMs: number): Ask => ({
      path: '/chat/completions',
      body: { model, messages, stream, max_tokens: 120 },
      leaves_ms: leavesMs,
    });
    return [ask(true, never ? 300 : 20_000), ask(false, never ? 300 : 20_000), ask(true, 60)];
  });
  // Each model by one of the other client APIs as well.
  const others = Object.keys(sandboxModels).flatMap((model, nth): Ask[] => {
    const never = /hang|stall|slow/.test(model);
    const { path, body } = OTHERS[nth % OTHERS.length]!;
    const ask = (stream: boolean, leavesMs: number): Ask => ({
      path,
      body: { model, stream, ...body },
      leaves_ms: leavesMs,
    });
    return [ask(nth % 2 === 0, never ? 300 : 20_000), ask(true, 60), ask(false, 30)];
  });
  const vectors = Object.keys(sandboxVectorModels).map((model) => ({
    path: '/embeddings',
    body: { model, input: ['one', 'two and three'] },
    leaves_ms: 20_000,
  }));
  const speech = Object.keys(sandboxSpeechModels).map((model) => ({
    path: '/audio/transcriptions',
    body: { model, input_audio: inputAudio },
    leaves_ms: 20_000,
  }));
  return [...chats, ...others, ...vectors, ...speech, ...searchingAsks()];
}

describeStores('a session of everything', ({ freshUrl }) => {
  test('is charged once, never beyond a limit, and all its totals are sums of their parts', async () => {
    const engine = await startSearchEngine(PAGES);
    const engines = { exa: { api_key: 'k', base_url: engine.url, price_per_search_usd: SEARCH_USD } };
    const yaml = JSON.stringify({ plugins: { web: { engines } } });
    const { gateway, run, url } = await gatewayWithCommands({ freshUrl, yaml });
    const database = await openDatabase({ data_dir: gateway.data_dir, database_url: url });
    const manage = async (method: string, path: string, body?: object) => {
      const authorization = `Bearer ${gateway.management_key}`;
      const answer = await gateway.call(method, path, body, { authorization });
      return (await answer.json()) as { key: string; data: { hash: string; usage: number } };
    };
    try {
      const limited = await manage('POST', '/keys', { name: 'limited', limit: LIMIT_USD });
      const answered: string[] = [];
      const send = async ({ path, body, leaves_ms }: Ask, key: string) => {
        const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
        const signal = AbortSignal.timeout(leaves_ms);
        try {
          const init = { method: 'POST', headers, body: JSON.stringify(body), signal };
          const answer = await fetch(gateway.base_url + path, init);
          answered.push(`${path} ${answer.status}`);
          await answer.text();
        } catch {
          // The client has disconnected.
        }
      };
      const queue = [gateway.key, limited.key].flatMap((key) => asks().map((ask) => () => send(ask, key)));
      await Promise.all(
        Array.from({ length: AT_ONCE }, async () => {
          for (let next = queue.shift(); next !== undefined; next = queue.shift()) await next();
        }),
      );
      // Waits for the calls of disconnected clients, whose rest is bounded.
      const rows = () =>
        database.queries.selectFrom('ledger_generations').select(['key_hash', 'cost', 'record']).execute();
      let before = -1;
      await expect
        .poll(
          async () => {
            const now = (await rows()).length;
            const isStill = now === before;
            before = now;
            return isStill;
          },
          { interval: 2_000 },
        )
        .toBe(true);

      const settled = await rows();
      const costs = new Map<string, number>();
      for (const { key_hash, cost, record } of settled) {
        const stored = recordOf(record);
        const parts = [...stored.attempts, ...(stored.fees ?? [])];
        expect(stored.cost_nano).toBe(parts.reduce((sum, part) => sum + part.cost_nano, 0));
        expect(cost).toBe(stored.cost_nano);
        for (const { charges, cost_nano, estimated } of parts as AttemptRecord[]) {
          if (charges === undefined || estimated) continue;
          const atto = charges.reduce((sum, line) => sum + amountAtto(line), 0n);
          expect(cost_nano).toBe(Number((atto + 999_999_999n) / 1_000_000_000n));
        }
        costs.set(key_hash, (costs.get(key_hash) ?? 0) + cost);
      }
      const used = async (hash: string) => Math.round((await manage('GET', `/keys/${hash}`)).data.usage * 1e9);
      for (const hash of [gateway.key_hash, limited.data.hash]) expect(await used(hash)).toBe(costs.get(hash));
      expect(costs.get(limited.data.hash)).toBeLessThanOrEqual(LIMIT_USD * 1e9);
      const searched = settled.flatMap(({ record }) => recordOf(record).fees ?? []);
      expect(searched.filter(({ cost_nano }) => cost_nano === SEARCH_USD * 1e9).length).toBeGreaterThan(20);
      // The session contains answers of each operation, refusals for want of money, and failures.
      const others = OTHERS.map(({ path }) => path);
      const operations = ['/chat/completions', ...others, '/embeddings', '/audio/transcriptions'];
      const refusals = ['/chat/completions', ...others].map((path) => `${path} 402`);
      expect(answered).toEqual(
        expect.arrayContaining([...operations.map((path) => `${path} 200`), ...refusals, '/chat/completions 502']),
      );
      expect(gateway.log_lines.filter((line) => /cost more than was reserved/.test(line))).toEqual([]);
      expect(await run('ledger', 'verify')).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(new RegExp(`^${settled.length} generations, \\d+ windows: no differences\\n$`)),
      });
      const { stdout } = await run('ledger', 'status');
      expect(stdout).toMatch(/in doubt: \$0\.00\n$/);
    } finally {
      await database.close();
      await gateway.stop();
      await engine.stop();
    }
  }, 180_000);
});
