/**
 * Spend limits over several gateways on one store, as real processes: what `src/ledger/leases.test.ts` shows of nodes in
 * one process, with everything between a client and the provider in it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { describeStores } from '../store-variants.ts';
import { chat, until } from './gateway-process.ts';
import { CLIENTS, type MoneySite, moneySite, TOKEN_NANO, UNIT_NANO } from './money-site.ts';

const LIMIT = 500;
const REQUESTS = 5_000;
const OUTPUT_TOKENS = 100;
const LIMIT_WITH_KILLS = 2_000;
const KILLS = 12;
/** What is served between two kills at least, however slow the machine. */
const SERVED_BETWEEN_KILLS = 60;
/** A kill comes this long after that, at most. */
const LIFE_MS_MAX = 200;
/** How long the upstream takes, so that a kill meets many requests under way. */
const DELAY_MS = 60;

/** What clients were told. */
interface Told {
  served: string[];
  by_status: Record<number, number>;
  /** Requests that came to no answer. */
  broken: number;
}

/** So many clients, each one request after another, until `more` says that it is enough. */
async function hammer(
  site: MoneySite,
  key: string,
  bodyOf: () => object,
  more: (told: Told) => boolean,
  told: Told = { served: [], by_status: {}, broken: 0 },
): Promise<Told> {
  const client = async (index: number) => {
    for (let count = index; more(told); count += 1) {
      const gateway = site.gateways[count % site.gateways.length]!;
      try {
        const answer = await gateway.call('POST', '/chat/completions', { key, body: bodyOf() });
        const body = (await answer.json()) as { id: string };
        told.by_status[answer.status] = (told.by_status[answer.status] ?? 0) + 1;
        if (answer.status === 200) told.served.push(body.id);
      } catch {
        told.broken += 1;
        await sleep(10);
      }
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index)));
  return told;
}

/** How often the upstream was sent each generation. */
async function sentUpstream(site: MoneySite, ids: readonly string[]): Promise<Map<string, number>> {
  const sent = new Map<string, number>();
  for (const id of ids) {
    const answer = await fetch(`${site.sandbox.url}/sandbox/attempts/${id}`);
    const { data } = (await answer.json()) as { data: unknown[] };
    sent.set(id, data.length);
  }
  return sent;
}

const unit = () => chat('money/unit');
const slowUnit = () => chat('money/unit', { sandbox: { delay_ms: Math.ceil(Math.random() * DELAY_MS) } });
const random = () =>
  chat('money/tokens', {
    max_tokens: OUTPUT_TOKENS,
    sandbox: { tokens: 1 + Math.floor(Math.random() * OUTPUT_TOKENS) },
  });
/** Until so many requests were answered. */
function upTo(requests: number): (told: Told) => boolean {
  let asked = 0;
  return () => asked++ < requests;
}

describe.skipIf(process.platform !== 'linux')('spend limits over several nodes', () => {
  describeStores('one key, 64 clients', (variant) => {
    const cleanups: (() => Promise<void>)[] = [];
    afterEach(async () => {
      for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
    });
    const siteOf = (provider?: Parameters<typeof moneySite>[2]) =>
      moneySite(variant, (after) => cleanups.push(after), provider);

    test('of 5,000 requests exactly the 500 that the limit pays for are served, and no other is sent', {
      timeout: 60_000,
    }, async () => {
      const site = await siteOf();
      const limit_nano = LIMIT * UNIT_NANO;
      const key = await site.makeKey(limit_nano);
      const watched = site.watch(limit_nano);
      const began_ms = performance.now();
      const told = await hammer(site, key, unit, upTo(REQUESTS));
      const took_ms = performance.now() - began_ms;
      await watched.stop();
      expect(told.by_status).toEqual({ 200: LIMIT, 402: REQUESTS - LIMIT });
      expect(site.sandbox.requests().requests).toBe(LIMIT);
      await site.end();
      expect(await site.spent()).toEqual({ spent: limit_nano, leased: 0 });
      expect(watched.over).toEqual([]);
      expect(watched.samples).toBeGreaterThan(5);
      process.stdout.write(
        `${variant.engine}: ${LIMIT} of ${REQUESTS} served in ${Math.round(took_ms)} ms, ${watched.samples} samples\n`,
      );
    });

    test('what costs less than was set aside for it is paid for out of the rest, until that is less than a request', {
      timeout: 60_000,
    }, async () => {
      const site = await siteOf();
      const hold_nano = OUTPUT_TOKENS * TOKEN_NANO;
      const limit_nano = LIMIT * hold_nano;
      const key = await site.makeKey(limit_nano);
      const watched = site.watch(limit_nano);
      const told = await hammer(site, key, random, upTo(REQUESTS));
      await watched.stop();
      expect(Object.keys(told.by_status)).toEqual(['200', '402']);
      expect(told.served.length).toBeGreaterThan(LIMIT);
      expect(site.sandbox.requests().requests).toBe(told.served.length);
      await site.end();
      const { spent } = await site.spent();
      expect(spent).toBeLessThanOrEqual(limit_nano);
      expect(limit_nano - spent).toBeLessThan(hold_nano);
      const recorded = await site.recorded();
      expect(recorded.reduce((sum, { cost }) => sum + cost, 0)).toBe(spent);
      expect(watched.over).toEqual([]);
      process.stdout.write(
        `${variant.engine}: ${told.served.length} served, ${(100 * spent) / limit_nano} % of the limit spent\n`,
      );
    });

    test(`${KILLS} kills under load: nothing over the limit, nothing sent twice, nothing served that is not counted`, {
      timeout: 120_000,
    }, async () => {
      const site = await siteOf();
      const limit_nano = LIMIT_WITH_KILLS * UNIT_NANO;
      const key = await site.makeKey(limit_nano);
      const watched = site.watch(limit_nano);
      let killing = true;
      const told: Told = { served: [], by_status: {}, broken: 0 };
      const load = hammer(site, key, slowUnit, () => killing, told);
      for (let kills = 0; kills < KILLS; ) {
        const before = told.served.length;
        await until('requests are served', () => told.served.length >= before + SERVED_BETWEEN_KILLS);
        await sleep(Math.random() * LIFE_MS_MAX);
        if (site.kill()) kills += 1;
      }
      const served_before_last = told.served.length;
      await site.whole();
      killing = false;
      await load;
      // What is left is spent to the last unit, by whatever node has it.
      const rest = await hammer(site, key, unit, (now) => (now.by_status[402] ?? 0) < 4 * CLIENTS);
      await watched.stop();
      await site.end();

      const recorded = await site.recorded();
      const unknown = recorded.filter(({ estimated }) => estimated);
      const served = [...told.served, ...rest.served];
      const known = new Set(recorded.filter(({ outcome }) => outcome === 'completed').map(({ id }) => id));
      const sent = await sentUpstream(
        site,
        recorded.map(({ id }) => id),
      );
      const arrived = [...sent.values()].reduce((sum, times) => sum + times, 0);
      process.stdout.write(
        `${variant.engine}: ${served.length} told, ${recorded.length} recorded, ${unknown.length} of them unknown; ` +
          `${arrived} arrived; ${JSON.stringify(told.by_status)} then ${JSON.stringify(rest.by_status)}, ${told.broken} broken, ` +
          `${served_before_last} told before the last kill, ${watched.samples} samples\n`,
      );
      expect(watched.over).toEqual([]);
      expect(await site.spent()).toEqual({ spent: limit_nano, leased: 0 });
      expect(served.filter((id) => !known.has(id))).toEqual([]);
      expect([...sent].filter(([, times]) => times > 1)).toEqual([]);
      expect(site.sandbox.requests().requests).toBe(arrived);
      expect(arrived).toBeGreaterThanOrEqual(recorded.length - unknown.length);
      expect(arrived).toBeLessThanOrEqual(recorded.length);
      expect(unknown.length).toBeGreaterThan(KILLS);
      expect(served_before_last).toBeLessThan(LIMIT_WITH_KILLS);
    });
  });
});
