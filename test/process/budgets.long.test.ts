/**
 * Spend limits over several gateways on one store, as real processes: the rules that `src/ledger/leases/leases.test.ts`
 * tests for nodes in one process, with everything between a client and the provider.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { describeStores } from '../ledger/store-variants.ts';
import { chat, until } from './gateway-process.ts';
import { CLIENTS, type MoneySite, moneySite, type Recorded, TOKEN_NANO, UNIT_NANO } from './money-site.ts';

const LIMIT = 500;
const REQUESTS = 5_000;
const OUTPUT_TOKENS = 100;
const LIMIT_WITH_KILLS = 1_800;
const KILLS = 6;
/** The number of served requests between two kills, however slow the machine. */
const SERVED_BETWEEN_KILLS = 60;
/** The longest time from then to the kill. */
const LIFE_MS_MAX = 200;
/** The delay of the upstream, so that many requests are in progress at a kill. */
const DELAY_MS = 60;

/** The answers that clients received. */
interface Answers {
  served: string[];
  by_status: Record<number, number>;
  /**
   * Refused with a retry because the store did not answer in time, as it may on a busy machine. It says nothing about
   * the money.
   */
  retries: number;
  /** Requests without an answer. */
  broken: number;
}

const noAnswers = (): Answers => ({ served: [], by_status: {}, retries: 0, broken: 0 });

/** This number of clients, each with one request after another, until `more` returns false. */
async function hammer(
  site: MoneySite,
  key: string,
  bodyOf: () => object,
  more: (answers: Answers) => boolean,
  answers: Answers = noAnswers(),
): Promise<Answers> {
  const client = async (index: number) => {
    let again = false;
    for (let count = index; !site.ended && (again || more(answers)); count += 1) {
      const gateway = site.gateways[count % site.gateways.length]!;
      try {
        const answer = await gateway.call('POST', '/chat/completions', { key, body: bodyOf() });
        const body = (await answer.json()) as { id: string };
        again = answer.status === 503;
        if (again) answers.retries += 1;
        else answers.by_status[answer.status] = (answers.by_status[answer.status] ?? 0) + 1;
        if (answer.status === 200) answers.served.push(body.id);
      } catch {
        answers.broken += 1;
        again = false;
        // A client without a server must pause, because a tight loop would delay the start of the gateways.
        await sleep(100);
      }
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index)));
  return answers;
}

/** The upstream's view of each generation: how often it was sent, and how often an answer was made, which it bills. */
async function seenUpstream(site: MoneySite, recorded: readonly Recorded[]) {
  const seen: (Recorded & { arrived: number; billed: number })[] = [];
  for (const one of recorded) {
    const answer = await fetch(`${site.sandbox.url}/sandbox/attempts/${one.id}.1`);
    const { data } = (await answer.json()) as { data: { billed: unknown }[] };
    seen.push({ ...one, arrived: data.length, billed: data.filter(({ billed }) => billed !== null).length });
  }
  return seen;
}

const unit = () => chat('money/unit');
const slowUnit = () =>
  chat(Math.random() < 0.5 ? 'money/unit' : 'money/asked', {
    sandbox: { delay_ms: Math.ceil(Math.random() * DELAY_MS) },
  });
const randomTokens = () =>
  chat('money/tokens', {
    max_tokens: OUTPUT_TOKENS,
    sandbox: { tokens: 1 + Math.floor(Math.random() * OUTPUT_TOKENS) },
  });
/** Waits until this number of requests was answered. */
function upTo(requests: number): (answers: Answers) => boolean {
  let sent = 0;
  return () => sent++ < requests;
}

describe.skipIf(process.platform !== 'linux')('spend limits over several nodes', () => {
  describeStores('one key, 64 clients', (variant) => {
    const cleanups: (() => Promise<void>)[] = [];
    afterEach(async () => {
      for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
    });
    const siteOf = () => moneySite(variant, (after) => cleanups.push(after));

    test('exactly as many requests as the limit covers are served and sent, and less than one request is left', {
      timeout: 180_000,
    }, async () => {
      const site = await siteOf();
      const unitLimit = LIMIT * UNIT_NANO;
      const first = site.watch(unitLimit);
      const beganMs = performance.now();
      const answers = await hammer(site, await site.makeKey(unitLimit), unit, upTo(REQUESTS));
      const tookMs = performance.now() - beganMs;
      await first.stop();
      expect(answers.by_status).toEqual({ 200: LIMIT, 402: REQUESTS - LIMIT });
      expect(site.sandbox.requests().requests).toBe(LIMIT);

      const holdNano = OUTPUT_TOKENS * TOKEN_NANO;
      const randomLimit = LIMIT * holdNano;
      const second = site.watch(unitLimit + randomLimit);
      const random = await hammer(site, await site.makeKey(randomLimit), randomTokens, upTo(REQUESTS / 2));
      await second.stop();
      expect(Object.keys(random.by_status)).toEqual(['200', '402']);
      expect(random.served.length).toBeGreaterThan(LIMIT);
      expect(site.sandbox.requests().requests).toBe(LIMIT + random.served.length);

      await site.end();
      const { spent, leased } = await site.spent();
      const left = unitLimit + randomLimit - spent;
      process.stdout.write(
        `${variant.engine}: ${LIMIT} of ${REQUESTS} served in ${Math.round(tookMs)} ms; of random costs ` +
          `${random.served.length}, ${left / holdNano} of a hold left; ${first.samples + second.samples} samples, ` +
          `${answers.retries + random.retries} retries\n`,
      );
      expect([...first.over, ...second.over]).toEqual([]);
      expect(first.samples).toBeGreaterThan(5);
      expect(leased).toBe(0);
      expect(left).toBeGreaterThanOrEqual(0);
      expect(left).toBeLessThan(holdNano);
      const recorded = await site.recorded();
      const costOf = (model: string) => recorded.reduce((sum, one) => (one.model === model ? sum + one.cost : sum), 0);
      expect(costOf('money/unit')).toBe(unitLimit);
      expect(costOf('money/tokens')).toBe(randomLimit - left);
    });

    test(`${KILLS} kills under load: nothing exceeds the limit, nothing is sent twice, nothing is served without being counted`, {
      timeout: 180_000,
    }, async () => {
      const site = await siteOf();
      const limitNano = LIMIT_WITH_KILLS * UNIT_NANO;
      const key = await site.makeKey(limitNano);
      const watched = site.watch(limitNano);
      let killing = true;
      const answers = noAnswers();
      const load = hammer(site, key, slowUnit, () => killing, answers);
      for (let kills = 0; kills < KILLS; ) {
        const before = answers.served.length;
        await until('requests are served', () => answers.served.length >= before + SERVED_BETWEEN_KILLS);
        await sleep(Math.random() * LIFE_MS_MAX);
        if (site.kill()) kills += 1;
        else await sleep(20);
      }
      await site.whole();
      killing = false;
      await load;
      // The rest is spent to the last unit, by whichever node has it.
      const rest = await hammer(site, key, unit, (now) => (now.by_status[402] ?? 0) < 4 * CLIENTS);
      await watched.stop();
      await site.end();

      const seen = await seenUpstream(site, await site.recorded());
      const sum = (some: typeof seen, of: 'arrived' | 'billed' | 'cost') =>
        some.reduce((total, one) => total + one[of], 0);
      const completed = new Set(seen.filter(({ outcome }) => outcome === 'completed').map(({ id }) => id));
      const queried = seen.filter(({ model }) => model === 'money/asked');
      const others = seen.filter(({ model }) => model === 'money/unit');
      const unknown = others.filter(({ estimated }) => estimated);
      const failed = queried.filter(({ outcome }) => outcome === 'failed');
      const served = [...answers.served, ...rest.served];
      process.stdout.write(
        `${variant.engine}: ${served.length} served, ${unknown.length} unknown, ${failed.length} resolved; ` +
          `${sum(seen, 'arrived')} arrived, ${sum(seen, 'billed')} billed; ${JSON.stringify(answers.by_status)} ` +
          `then ${JSON.stringify(rest.by_status)}, ${answers.retries + rest.retries} retries, ${answers.broken} broken connections, ${watched.samples} samples\n`,
      );
      expect(watched.over).toEqual([]);
      expect(served.filter((id) => !completed.has(id))).toEqual([]);
      expect(seen.filter(({ arrived }) => arrived > 1)).toEqual([]);
      expect(site.sandbox.requests().requests).toBe(sum(seen, 'arrived'));
      // The limit is spent to the last unit, and unknown outcomes count with their holds.
      expect(await site.spent()).toEqual({ spent: limitNano, leased: 0 });
      expect(sum(seen, 'cost')).toBe(limitNano);
      expect(sum(seen, 'billed') * UNIT_NANO).toBeLessThanOrEqual(limitNano);
      const isWrong = ({ estimated, billed, cost }: (typeof seen)[number]) =>
        estimated ? cost < billed * UNIT_NANO : cost !== billed * UNIT_NANO;
      expect(others.filter(isWrong)).toEqual([]);
      // If the provider can be queried, its bill is the gateway's.
      expect(queried.filter(({ estimated }) => estimated)).toEqual([]);
      expect(queried.filter(isWrong)).toEqual([]);
      expect(Math.min(unknown.length, failed.length)).toBeGreaterThanOrEqual(KILLS / 2);
      expect(answers.by_status[200]).toBeGreaterThanOrEqual(KILLS * SERVED_BETWEEN_KILLS);
    });
  });
});
