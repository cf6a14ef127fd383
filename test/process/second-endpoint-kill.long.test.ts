import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { recordOf } from '../../src/ledger/journal/record-values.ts';
import { limits } from '../../src/limits.ts';
import { PERCENTILE_CALLS_MIN } from '../../src/routing/endpoint-windows.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { verifyLedger } from '../../src/storage/verify-ledger.ts';
import { describeStores } from '../ledger/store-variants.ts';
import { windowSums } from '../ledger/window-sums.ts';
import { wire } from '../routing/failover-site.ts';
import { type Step, startWireServer } from '../wires/wire-server.ts';
import { freePort, freshDir, serve, stop, until } from './gateway-process.ts';

/**
 * Input is free, and each of at most a hundred tokens costs a thousandth of a USD at one endpoint, two at the other.
 */
const TOKENS = 100;

/**
 * What the first endpoint does until the kill, its charge, and the number of tokens that was then requested from the
 * second.
 */
const MOMENTS: [string, Step[], { failure: string; tokens: number; left: number }][] = [
  ['two endpoints are requested', [{ wait: 60_000 }], { failure: 'gateway_gone', tokens: TOKENS, left: TOKENS }],
  [
    'a second endpoint is to continue the answer',
    [wire.head, wire.text(' one', ' river', ' house', ' stone'), { wait: 5 }, 'RESET'],
    { failure: 'unavailable', tokens: 4, left: TOKENS - 4 },
  ],
];

describeStores('kill -9 of a stream', ({ freshUrl }) => {
  test.each(MOMENTS)(
    'while %s: both attempts are charged what they may have cost, once, and no hold remains',
    async (_when, steps, first) => {
      let script: (provider: string) => Step[] = () => [wire.head, wire.text('Yes'), wire.end(1, 0), 'END'];
      const upstream = await startWireServer(({ path }) => script(path.split('/')[2] ?? ''));
      onTestFinished(() => upstream.stop());
      const provider = (name: string) => ({
        name,
        dialect: 'openai-chat',
        base_url: `${upstream.url}/${name}`,
        quirks: { prefill: true },
      });
      const endpoint = (name: string, completion: number) => ({
        provider: name,
        upstream_model: 'scripted',
        pricing: { prompt: 0, completion },
        max_completion_tokens: TOKENS,
      });
      const yaml = JSON.stringify({
        bundled_catalog: false,
        logging: { level: 'warn' },
        routing: { hedge: true, hedge_share: 1, continuation: true },
        providers: { a: provider('a'), b: provider('b') },
        models: { 'wire/model': { context_length: 100_000, endpoints: [endpoint('a', 1000), endpoint('b', 2000)] } },
      });
      const databaseUrl = await freshUrl();
      const environment: Record<string, string> = databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl };
      const options = { data_dir: freshDir(), port: await freePort(), yaml, environment };
      const gateway = await serve(options);
      const made = await gateway.call('POST', '/keys', { body: { name: 'limited', limit: 10 } });
      const { key, data } = (await made.json()) as { key: string; data: { hash: string } };
      const ask = async (only?: string[]) => {
        const body = {
          model: 'wire/model',
          messages: [{ role: 'user', content: 'Hello' }],
          stream: true,
          max_tokens: TOKENS,
          provider: { order: ['a', 'b'], ...(only ? { only } : {}) },
        };
        return (await gateway.call('POST', '/chat/completions', { key, body })).text();
      };
      // Enough calls that the gateway knows when the endpoint is late.
      for (let calls = 0; calls < PERCENTILE_CALLS_MIN; calls += 1) expect(await ask(['a'])).toContain('Yes');
      await sleep(limits.performance_fresh_ms);
      script = (name) => (name === 'a' ? steps : [{ wait: 60_000 }]);
      const before = upstream.exchanges.length;
      const cut = ask().catch(() => undefined);
      await until('both endpoints have a request', () => upstream.exchanges.length === before + 2);
      gateway.child.kill('SIGKILL');
      await Promise.all([gateway.ended, cut]);

      const again = await serve(options);
      const usageOf = async () => {
        const answer = await again.call('GET', `/keys/${data.hash}`);
        return ((await answer.json()) as { data: { usage: number } }).data.usage;
      };
      await expect.poll(usageOf).toBeCloseTo((PERCENTILE_CALLS_MIN + first.tokens + first.left * 2) / 1000, 9);
      expect(await stop(again)).toBe(0);
      const database = await openDatabase({ data_dir: options.data_dir, database_url: databaseUrl });
      const { differences } = await verifyLedger(database.queries);
      const [cutOff] = await database.queries
        .selectFrom('ledger_generations')
        .select(['cost', 'record'])
        .where('outcome', '=', 'unknown')
        .execute();
      const windows = await windowSums(database.queries).execute();
      await database.close();
      expect(differences).toEqual([]);
      expect(windows.reduce((sum, { leased }) => sum + leased, 0)).toBe(0);
      const spent = windows.map((window) => window.spent).filter((amount) => amount > 0);
      expect(new Set(spent)).toEqual(new Set([(PERCENTILE_CALLS_MIN + first.tokens + first.left * 2) * 1_000_000]));
      expect(cutOff?.cost).toBe((first.tokens + first.left * 2) * 1_000_000);
      expect(recordOf(cutOff?.record ?? '{}')).toMatchObject({
        provider_name: 'b',
        attempts: [
          { provider_name: 'a', failure: first.failure, estimated: true, cost_nano: first.tokens * 1_000_000 },
        ],
      });
    },
    120_000,
  );
});
