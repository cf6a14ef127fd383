import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { describeStores } from '../ledger/store-variants.ts';
import {
  freePort,
  freshDir,
  type GatewayProcess,
  MANAGEMENT_KEY,
  makeKey,
  serve,
  stop,
  until,
} from './gateway-process.ts';

const CLIENTS = 8;
/** Calls that were answered this long before a kill are stored, also on a slow machine. */
const WRITTEN_MS = 3_000;

describeStores('contents of calls, when their gateway is killed', ({ freshUrl }) => {
  test('are stored completely except for the last, and in no file unencrypted', async () => {
    const url = await freshUrl();
    const options = {
      data_dir: freshDir(),
      port: await freePort(),
      environment: {
        GATEWAY_SECRET: 'a-secret-of-thirty-two-characters',
        ...(url === undefined ? {} : { DATABASE_URL: url }),
      },
    };
    const first = await serve(options);
    const patched = await first.call('PATCH', '/workspaces/default', {
      key: MANAGEMENT_KEY,
      body: { is_observability_io_logging_enabled: true },
    });
    expect(patched.status).toBe(200);
    const { key } = await makeKey(first);
    const answered: { id: string; word: string; at_ms: number }[] = [];
    let isOver = false;
    const client = async (index: number) => {
      for (let count = 0; !isOver; count += 1) {
        const word = `clear-word-${index}-${count}-`;
        const body = { model: 'sandbox/echo', messages: [{ role: 'user', content: word }], stream: count % 2 === 0 };
        try {
          const answer = await first.call('POST', '/chat/completions', { key, body });
          await answer.text();
          const id = answer.headers.get('x-generation-id');
          if (answer.status === 200 && id !== null) answered.push({ id, word, at_ms: Date.now() });
        } catch {
          return;
        }
      }
    };
    const clients = Array.from({ length: CLIENTS }, (_, index) => client(index));
    await until('some were answered', () => answered.length >= 50);
    await sleep(WRITTEN_MS + 500);
    const killedMs = Date.now();
    first.child.kill('SIGKILL');
    await first.ended;
    isOver = true;
    await Promise.all(clients);

    const again = await serve(options);
    const read = async (gateway: GatewayProcess, id: string) => {
      const answer = await gateway.call('GET', `/generation/content?id=${id}`, { key });
      return { status: answer.status, body: (await answer.json()) as { data?: { output: { completion: string } } } };
    };
    const old = answered.filter(({ at_ms }) => at_ms < killedMs - WRITTEN_MS);
    expect(old.length).toBeGreaterThan(20);
    let lost = 0;
    for (const { id, word, at_ms } of answered) {
      const { status, body } = await read(again, id);
      if (status === 404) {
        lost += 1;
        expect(at_ms).toBeGreaterThanOrEqual(killedMs - WRITTEN_MS);
      } else expect(body.data?.output.completion).toBe(word);
    }
    expect(lost).toBeLessThan(answered.length - old.length + 1);
    expect(await stop(again)).toBe(0);
    const files = readdirSync(options.data_dir, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
    for (const file of files) {
      expect(readFileSync(join(file.parentPath, file.name), 'latin1').includes('clear-word-'), file.name).toBe(false);
    }
  });
});
