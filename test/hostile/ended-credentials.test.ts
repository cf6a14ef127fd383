/**
 * A request whose head was checked before its key was revoked does nothing once the revocation is answered, however slowly its body arrives;
 * nor does an authorization code that an ended secret requested. See docs/threat-model.md.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { openDatabase } from '../../src/storage/database.ts';
import { describeStores } from '../ledger/store-variants.ts';
import { keyFamily } from './key-family.ts';
import { rawClient } from './raw-http.ts';

const cleanups: (() => Promise<void>)[] = [];
const JSON_TYPE = 'application/json';
const CHAT = { model: 'sandbox/echo', max_tokens: 20, messages: [{ role: 'user', content: 'hello' }] };

/** Sends the head of a request and the first byte of its body; `finish` sends the rest and returns the status. */
async function begin(url: string, secret: string, path: string, body: object, type = JSON_TYPE) {
  const client = await rawClient(url);
  const text = JSON.stringify(body);
  const head = `host: x\r\nauthorization: Bearer ${secret}\r\ncontent-type: ${type}\r\ncontent-length: ${text.length}`;
  client.send(`POST /api/v1${path} HTTP/1.1\r\n${head}\r\n\r\n${text.slice(0, 1)}`);
  return async () => {
    client.send(text.slice(1));
    const [answer] = await client.answers(1);
    client.socket.destroy();
    return answer?.status;
  };
}

describeStores('a credential that ended', ({ freshUrl }) => {
  // Here, so that the gateways stop before their store is gone.
  afterEach(async () => {
    for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
  });

  test('calls no model with a body that arrives after the revocation, on either edge', async () => {
    const { one, makeKey, manage, other } = await keyFamily(freshUrl, cleanups);
    const endings = [
      (hash: string) => manage('PATCH', `/keys/${hash}`, { disabled: true }),
      (hash: string) => manage('DELETE', `/keys/${hash}`),
      (hash: string) => manage('POST', `/keys/${hash}/rotate`, { grace_seconds: 0 }),
    ];
    for (const end of endings) {
      const { secret, hash } = await makeKey();
      const requests = [
        await begin(one.url, secret, '/chat/completions', CHAT),
        // Takes the framework's way.
        await begin(other.url, secret, '/chat/completions', CHAT, 'application/json; charset="utf-8"'),
        await begin(one.url, secret, '/embeddings', { model: 'sandbox/embed', input: 'x' }),
        await begin(other.url, secret, '/auth/keys/code', { callback_url: 'https://app.example/cb' }),
      ];
      await sleep(400);
      await end(hash);
      const statuses = await Promise.all(requests.map((finish) => finish()));
      expect(statuses).toEqual([401, 401, 401, 401]);
    }
  });

  test('changes nothing with a body that arrives after the end, and its codes are void', async () => {
    const { one, other, url, makeKey, manage, code, exchange } = await keyFamily(freshUrl, cleanups);
    const database = await openDatabase({ data_dir: one.data_dir, database_url: url });
    cleanups.push(() => database.close());
    const names = ['workspaces', 'guardrails'] as const;
    for (const ended of [{ disabled: true }, { secret_hash: '0'.repeat(64) }]) {
      const { secret, hash } = await makeKey();
      // The operations of keys make no management key; the command does, as a key whose calls nobody remembers yet.
      const keys = database.queries.updateTable('api_keys').where('hash', '=', hash);
      await keys.set({ is_management: true }).execute();
      const requests = [
        await begin(one.url, secret, '/keys', { name: 'late' }),
        await begin(one.url, secret, '/workspaces', { name: 'late', slug: 'late' }),
        await begin(other.url, secret, '/guardrails', { name: 'late' }),
      ];
      // The heads were checked. Of a change in the store that is not announced, only the transaction of a change knows.
      await sleep(100);
      await keys.set(ended).execute();
      expect(await Promise.all(requests.map((finish) => finish()))).toEqual([401, 401, 401]);
    }
    for (const name of names) {
      const { data } = (await (
        await one.call('GET', `/${name}`, undefined, {
          authorization: `Bearer ${one.management_key}`,
        })
      ).json()) as { data: { name: string }[] };
      expect(data.filter((made) => made.name === 'late')).toEqual([]);
    }
    const { secret, hash } = await makeKey();
    const waiting = await code(secret);
    await manage('POST', `/keys/${hash}/rotate`, { grace_seconds: 3600 });
    const kept = await code(secret);
    expect((await exchange(kept, other)).status).toBe(200);
    await manage('DELETE', `/keys/${hash}/previous-secret`);
    expect((await exchange(waiting, other)).status).toBe(403);
  });
});
