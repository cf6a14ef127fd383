import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openDatabase } from '../../src/storage/database.ts';
import { checkChatStream } from '../grammar/chat.ts';
import { describeStores } from '../ledger/store-variants.ts';
import { chat, freePort, freshDir, type GatewayProcess, makeKey, serve, stop, until } from './gateway-process.ts';

const ROUNDS = 20;
/** The number of acknowledgements of a gateway before it may be killed, however slow the machine. */
const ANSWERS_MIN = 24;
const KEYS_MIN = 2;
/** The longest time from then to the kill. */
const LIFE_MS_MAX = 500;
const CLIENTS = 8;

interface Acknowledged {
  id: string;
  key: string;
  usage: { prompt_tokens: number; completion_tokens: number; cost: number };
}

/** The answers that clients of one gateway received before it was killed. */
class Witness {
  readonly answers: Acknowledged[] = [];
  readonly keys: { key: string; hash: string }[] = [];
  /** Answers whose first part arrived, and which no gateway finishes. */
  readonly begun: string[] = [];
  stopped = false;

  /** One request after another until the gateway is gone. */
  async ask(gateway: GatewayProcess, key: string, client: number): Promise<void> {
    for (let count = client; !this.stopped; count += 1) {
      const streamed = count % 2 === 0;
      const body = chat(count % 3 === 0 ? 'sandbox/story' : 'sandbox/echo', {
        sandbox: { tokens: 5 + (count % 40) },
        stream: streamed,
      });
      try {
        const answer = await gateway.call('POST', '/chat/completions', { key, body });
        const text = await answer.text();
        if (answer.status === 200) this.#note(key, text, streamed);
      } catch {
        if (this.stopped) return;
        await sleep(5);
      }
    }
  }

  #note(key: string, text: string, streamed: boolean): void {
    if (!streamed) {
      this.answers.push({ key, ...(JSON.parse(text) as Omit<Acknowledged, 'key'>) });
    } else if (text.endsWith('data: [DONE]\n\n')) {
      const last = checkChatStream(text).at(-1) as unknown as Omit<Acknowledged, 'key'>;
      this.answers.push({ key, id: last.id, usage: last.usage });
    }
  }

  /** One stream that continues until the gateway is gone. */
  async followEndless(gateway: GatewayProcess, key: string): Promise<void> {
    const body = chat('sandbox/slow', { sandbox: { tokens: 1_000_000 }, stream: true });
    try {
      const answer = await gateway.call('POST', '/chat/completions', { key, body });
      let text = '';
      let noted = false;
      for await (const bytes of answer.body ?? []) {
        if (noted) continue;
        text += Buffer.from(bytes).toString();
        const id = /"id":"(gen-[^"]+)"/.exec(text)?.[1];
        if (id === undefined) continue;
        noted = true;
        this.begun.push(id);
      }
    } catch {
      // The gateway was killed, as the test requires.
    }
  }

  async makeKeys(gateway: GatewayProcess): Promise<void> {
    while (!this.stopped) {
      const made = await makeKey(gateway).catch(() => undefined);
      if (made) this.keys.push(made);
      await sleep(20);
    }
  }
}

interface Found {
  data: { tokens_prompt: number; tokens_completion: number; total_cost: number; api_type: string };
}

describeStores('kill -9 of a running gateway', ({ freshUrl }) => {
  test(`after ${ROUNDS} kills under load every answer and every key that a client saw is stored unchanged`, {
    timeout: 900_000,
  }, async () => {
    const dataDir = join(freshDir(), 'data');
    const port = await freePort();
    const databaseUrl = await freshUrl();
    const environment: Record<string, string> = databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl };
    const witness = new Witness();
    for (let round = 0; round < ROUNDS; round += 1) {
      const gateway = await serve({ data_dir: dataDir, port, environment });
      witness.stopped = false;
      if (witness.keys.length === 0) witness.keys.push(await makeKey(gateway));
      const { key } = witness.keys[round % witness.keys.length] as { key: string };
      const clients = Array.from({ length: CLIENTS }, (_, client) => witness.ask(gateway, key, client));
      clients.push(witness.makeKeys(gateway), witness.followEndless(gateway, key));
      const before = { answers: witness.answers.length, keys: witness.keys.length };
      const worked = () =>
        witness.answers.length >= before.answers + ANSWERS_MIN &&
        witness.keys.length >= before.keys + KEYS_MIN &&
        witness.begun.length > round;
      await until('the gateway has finished and unfinished calls', worked, 60_000);
      await sleep(Math.random() * LIFE_MS_MAX);
      witness.stopped = true;
      gateway.child.kill('SIGKILL');
      expect(await gateway.ended).toBe('SIGKILL');
      await Promise.all(clients);
    }
    const gateway = await serve({ data_dir: dataDir, port, environment });
    for (const { key, id, usage } of witness.answers) {
      const answer = await gateway.call('GET', `/generation?id=${id}`, { key });
      expect(answer.status, id).toBe(200);
      const { data } = (await answer.json()) as Found;
      expect(data).toMatchObject({
        id,
        tokens_prompt: usage.prompt_tokens,
        tokens_completion: usage.completion_tokens,
        total_cost: usage.cost,
        cancelled: false,
      });
    }
    for (const { key } of witness.keys) {
      const answer = await gateway.call('POST', '/chat/completions', { key, body: chat('sandbox/echo') });
      expect(answer.status).toBe(200);
      await answer.text();
    }
    const usages = new Map<string, number>();
    for (const { hash } of witness.keys) {
      const answer = await gateway.call('GET', `/keys/${hash}`);
      expect(answer.status).toBe(200);
      const { data } = (await answer.json()) as { data: { usage: number } };
      usages.set(hash, Math.round(data.usage * 1e9));
    }
    expect(await stop(gateway)).toBe(0);
    const database = await openDatabase({ data_dir: dataDir, database_url: databaseUrl });
    const rows = await database.queries
      .selectFrom('ledger_generations')
      .select(['id', 'key_hash', 'cost', 'outcome'])
      .execute();
    await database.close();
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
    for (const [hash, usage] of usages) {
      const own = rows.filter(({ key_hash }) => key_hash === hash);
      expect(usage).toBe(own.reduce((sum, { cost }) => sum + cost, 0));
    }
    // Calls that were killed before their end are reported as such.
    const outcomes = new Map(rows.map(({ id, outcome }) => [id, outcome]));
    expect(witness.begun.map((id) => outcomes.get(id))).toEqual(Array(ROUNDS).fill('unknown'));
    expect(witness.answers.length).toBeGreaterThanOrEqual(ROUNDS * ANSWERS_MIN);
    expect(witness.keys.length).toBeGreaterThanOrEqual(ROUNDS * KEYS_MIN);
    process.stdout.write(
      `${witness.answers.length} answers and ${witness.keys.length} keys acknowledged; ` +
        `${rows.filter(({ outcome }) => outcome === 'unknown').length} attempts interrupted\n`,
    );
  });
});
