import { expect, test } from 'vitest';
import { generation, noHold } from '../../test/generation-fixture.ts';
import { recorders } from '../../test/ledger/recorder-fixture.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { limits } from '../limits.ts';
import { ledgerStore } from '../storage/ledger.ts';
import { ledgerOperations } from '../storage/ledger-operations.ts';
import { realClock } from './ledger-clock.ts';

const TICK_MS = 250;

describeStores('a node without calls', ({ open }) => {
  const { start, freshDir } = recorders(open);

  /** A node whose time passes by ticks alone, on a store that has not seen it for long. */
  async function silentNode() {
    const database = await open();
    const store = ledgerStore(database.queries, database.engine);
    let aheadMs = 0;
    const ticks: (() => void)[] = [];
    const real = realClock(() => Date.now() + aheadMs);
    const clock = {
      ...real,
      monotonic: () => performance.now() + aheadMs,
      setInterval: (run: () => void, intervalMs: number) => {
        if (intervalMs === TICK_MS) ticks.push(run);
      },
      clearInterval: () => {},
    };
    const signs: Promise<void>[] = [];
    const keepAlive = (node: string, at: number) => {
      const sign = store.keepAlive(node, at);
      signs.push(sign);
      return sign;
    };
    const recorder = await start({ ...store, keepAlive }, freshDir(), { clock });
    await database.queries
      .updateTable('ledger_nodes')
      .set(({ eb }) => ({ seen_at: eb('seen_at', '-', 2 * limits.node_lost_ms) }))
      .execute();
    const pass = async (ms: number) => {
      for (let passed = 0; passed < ms; passed += TICK_MS) {
        aheadMs += TICK_MS;
        for (const run of ticks) run();
        await Promise.all(signs);
        await new Promise(setImmediate);
      }
    };
    const { listNodes } = ledgerOperations(database.queries, database.engine);
    const unseenMs = async () => (await listNodes(Date.now() + aheadMs))[0]?.unseen_ms;
    return { recorder, pass, signs, unseenMs };
  }

  test('sends signs of life, so that it is not taken for lost, a few in a minute', async () => {
    const { pass, signs, unseenMs } = await silentNode();
    expect(await unseenMs()).toBeGreaterThan(limits.node_lost_ms);
    await pass(30_000);
    expect(await unseenMs()).toBeLessThan(limits.node_lost_ms);
    await pass(90_000);
    expect(signs.length).toBeGreaterThan(3);
    expect(signs.length).toBeLessThan(8);
  });

  test('sends none while its outcomes show that it is alive', async () => {
    const { recorder, pass, signs } = await silentNode();
    for (let seconds = 0; seconds < 120; seconds += 10) {
      await recorder.outcome(generation({ id: `g${seconds}` }), noHold());
      await recorder.flush();
      await pass(10_000);
    }
    expect(signs).toEqual([]);
  });
});
