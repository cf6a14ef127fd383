/**
 * A node whose disk is full while its outcomes wait for the store is killed: the charges of its next start stay within
 * the limit.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { startSandbox } from '../../sandbox/server.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { mountVolume, unmountable } from '../bounded-disk.ts';
import { noOwnPostgres, startOwnPostgres } from '../own-postgres.ts';
import { chat, freePort, serve, stop, until } from '../process/gateway-process.ts';
import { moneyConfiguration, TOKEN_NANO } from '../process/money-site.ts';

const MB = 1024 * 1024;
const OUTPUT_TOKENS = 100;
const HOLD_NANO = OUTPUT_TOKENS * TOKEN_NANO;
const CALLS = 4;
const skipped = unmountable ?? noOwnPostgres;

/** A call that costs one token, answered this number of milliseconds after it was sent. */
const call = (delayMs: number) =>
  chat('money/tokens', { max_tokens: OUTPUT_TOKENS, sandbox: { tokens: 1, delay_ms: delayMs } });

test.skipIf(skipped !== undefined)(
  `money of outcomes that neither disk nor store took is not charged twice after a kill${skipped === undefined ? '' : ` (skipped: ${skipped})`}`,
  { timeout: 300_000 },
  async () => {
    const postgres = await startOwnPostgres();
    onTestFinished(() => postgres.remove());
    const sandbox = await startSandbox();
    onTestFinished(() => sandbox.stop());
    const volume = mountVolume(8 * MB);
    const yaml = JSON.stringify({
      ...JSON.parse(moneyConfiguration(sandbox.url)),
      ledger: { on_store_outage: { serve_for: 300 } },
    });
    const environment = { DATABASE_URL: postgres.url };
    const dataDir = join(volume, 'data');
    const options = { yaml, environment, data_dir: dataDir };
    const node = await serve({ ...options, port: await freePort() });
    const limitNano = (CALLS + 1) * HOLD_NANO;
    const made = await node.call('POST', '/keys', { body: { name: 'spender', limit: limitNano / 1e9 } });
    const { key } = (await made.json()) as { key: string };
    const send = (delayMs: number) => node.call('POST', '/chat/completions', { key, body: call(delayMs) });
    /** Retries while the store is too busy to answer in time. */
    const serveOne = async (delayMs: number): Promise<string> => {
      for (;;) {
        const answer = await send(delayMs);
        const text = await answer.text();
        if (answer.status !== 503) return text;
        await sleep(100);
      }
    };
    const serveAll = (delayMs: number) => Promise.all(Array.from({ length: CALLS }, () => serveOne(delayMs)));

    // The node has cached the key, and has a lease of nearly all money.
    expect(await serveAll(0)).toEqual(Array(CALLS).fill(expect.stringContaining('"choices"')));
    let arrived = sandbox.requests().requests;
    const running = serveAll(4_000);
    await until('they are at the provider', () => sandbox.requests().requests === arrived + CALLS);

    postgres.stop();
    const ballast = join(volume, 'ballast');
    try {
      writeFileSync(ballast, Buffer.alloc(8 * MB));
    } catch (error) {
      expect(error).toMatchObject({ code: 'ENOSPC' });
    }
    expect(await running).toEqual(Array(CALLS).fill(expect.stringContaining('"choices"')));
    rmSync(ballast);
    // Money freed by the first calls is reserved for these, which are in progress when the node is killed.
    arrived = sandbox.requests().requests;
    const later: Promise<unknown>[] = [];
    await until('others are at the provider', () => {
      later.push(send(120_000).catch(() => {}));
      return sandbox.requests().requests - arrived >= CALLS - 1;
    });
    node.child.kill('SIGKILL');
    await node.ended;
    await Promise.all(later);
    const counted = sandbox.requests().requests - arrived;

    postgres.start();
    const next = await serve({ ...options, port: await freePort() });
    const database = await openDatabase({ database_url: postgres.url });
    onTestFinished(() => database.close());
    const generations = () => database.queries.selectFrom('ledger_generations').select(['outcome', 'cost']).execute();
    await until('all outcomes are in the store', async () => (await generations()).length >= 2 * CALLS + counted);
    const rows = await generations();
    const [window] = await database.queries.selectFrom('ledger_windows').select(['spent', 'leased']).execute();
    expect(window!.spent + window!.leased).toBeLessThanOrEqual(limitNano);
    expect(rows.filter(({ outcome }) => outcome === 'completed')).toHaveLength(2 * CALLS);
    expect(window!.spent).toBe(rows.reduce((sum, { cost }) => sum + cost, 0));
    expect(await stop(next)).toBe(0);
  },
);
