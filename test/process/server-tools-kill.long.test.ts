import { expect, onTestFinished, test } from 'vitest';
import { recordOf } from '../../src/ledger/journal/record-values.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { verifyLedger } from '../../src/storage/verify-ledger.ts';
import { describeStores } from '../ledger/store-variants.ts';
import { windowSums } from '../ledger/window-sums.ts';
import { startSearchEngine } from '../search-engine.ts';
import { startScriptedModel, TURN_USAGE } from '../wires/scripted-model.ts';
import { freePort, freshDir, serve, stop, until } from './gateway-process.ts';

/** Input is free, each of at most a hundred tokens costs a thousandth of a USD, and a search a hundredth. */
const TOKENS = 100;
const TURN_NANO = TURN_USAGE.completion_tokens * 1_000_000;
const SEARCH_NANO = 10_000_000;
const NEVER = new Promise<never>(() => {});

/** The work in progress at the kill, and the charge of the call. */
const MOMENTS: [string, { searches: boolean; cost_nano: number; fees: number }][] = [
  ['a tool runs', { searches: false, cost_nano: TURN_NANO + SEARCH_NANO, fees: 0 }],
  ['the next step is requested', { searches: true, cost_nano: TURN_NANO + SEARCH_NANO + TOKENS * 1_000_000, fees: 1 }],
];

describeStores('kill -9 between the steps of an answer with tools', ({ freshUrl }) => {
  test.each(MOMENTS)(
    'while %s: journaled attempts and fees are charged, once, and no hold remains',
    async (_when, { searches, cost_nano, fees }) => {
      const model = await startScriptedModel();
      const engine = await startSearchEngine([{ url: 'https://a.example', title: 'A', text: 'A page' }]);
      onTestFinished(async () => {
        await model.stop();
        await engine.stop();
      });
      model.script = (_request, nth) =>
        nth === 0 ? { calls: [{ name: 'web_search', args: { query: 'news' } }] } : NEVER;
      if (!searches) engine.before = () => NEVER;
      const yaml = JSON.stringify({
        bundled_catalog: false,
        logging: { level: 'warn' },
        plugins: { web: { engines: { exa: { api_key: 'k', base_url: engine.url, price_per_search_usd: 0.01 } } } },
        providers: { a: { name: 'A', dialect: 'openai-chat', base_url: model.url } },
        models: {
          'wire/model': {
            context_length: 100_000,
            endpoints: [
              {
                provider: 'a',
                upstream_model: 'scripted',
                pricing: { prompt: 0, completion: 1000 },
                max_completion_tokens: TOKENS,
              },
            ],
          },
        },
      });
      const databaseUrl = await freshUrl();
      const environment: Record<string, string> = databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl };
      const options = { data_dir: freshDir(), port: await freePort(), yaml, environment };
      const gateway = await serve(options);
      const made = await gateway.call('POST', '/keys', { body: { name: 'limited', limit: 10 } });
      const { key, data } = (await made.json()) as { key: string; data: { hash: string } };
      const body = {
        model: 'wire/model',
        messages: [{ role: 'user', content: 'Hello' }],
        stream: true,
        max_tokens: TOKENS,
        tools: [{ type: 'gateway:web_search' }],
      };
      const cut = gateway
        .call('POST', '/chat/completions', { key, body })
        .then((response) => response.text())
        .catch(() => undefined);
      await until('the call is in progress', () =>
        searches ? model.requests.length === 2 : engine.searches.length === 1,
      );
      gateway.child.kill('SIGKILL');
      await Promise.all([gateway.ended, cut]);

      const again = await serve(options);
      const usageOf = async () => {
        const answer = await again.call('GET', `/keys/${data.hash}`);
        return ((await answer.json()) as { data: { usage: number } }).data.usage;
      };
      await expect.poll(usageOf).toBeCloseTo(cost_nano / 1e9, 9);
      expect(await stop(again)).toBe(0);
      const database = await openDatabase({ data_dir: options.data_dir, database_url: databaseUrl });
      const { differences } = await verifyLedger(database.queries);
      const rows = await database.queries
        .selectFrom('ledger_generations')
        .select(['cost', 'record', 'outcome'])
        .execute();
      const windows = await windowSums(database.queries).execute();
      await database.close();
      expect(differences).toEqual([]);
      expect(windows.reduce((sum, { leased }) => sum + leased, 0)).toBe(0);
      expect(new Set(windows.map(({ spent }) => spent).filter((amount) => amount > 0))).toEqual(new Set([cost_nano]));
      expect(rows).toMatchObject([{ cost: cost_nano, outcome: 'unknown' }]);
      const record = recordOf(rows[0]!.record);
      expect(record).toMatchObject({ attempts: [{ cost_nano: TURN_NANO }] });
      expect(record.fees ?? []).toHaveLength(fees);
    },
    120_000,
  );
});
