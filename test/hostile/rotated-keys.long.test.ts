/**
 * What an older secret of a rotated key can do on two running nodes: nothing after its time, whatever a node has
 * cached, and never more than the key. See docs/threat-model.md.
 */
import { createHash } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { openDatabase } from '../../src/storage/database.ts';
import { describeStores } from '../ledger/store-variants.ts';
import { keyFamily } from './key-family.ts';

const cleanups: (() => Promise<void>)[] = [];

describeStores('an older secret of a rotated key', ({ freshUrl }) => {
  // Registered here, so that the gateways stop before their store is removed.
  afterEach(async () => {
    for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
  });
  async function setUp() {
    const made = await keyFamily(freshUrl, cleanups);
    const rotate = async (hash: string, body: object = {}) => {
      const path = `/keys/${hash}/rotate`;
      const { status, body: answer } = await made.ask(made.one, made.one.management_key, 'POST', path, body);
      return { status, secret: answer.key ?? '', data: answer.data ?? {} };
    };
    /** The answers of both nodes to a secret. A node whose store is slow answers 503 for the moment. */
    const both = async (secret: string) => {
      for (;;) {
        const statuses = await made.both(secret);
        if (!statuses.includes(503)) return statuses;
      }
    };
    return { ...made, rotate, both };
  }

  test('is refused on every node that knows it, as soon as a rotation without a grace is answered', async () => {
    const { makeKey, rotate, both } = await setUp();
    const { secret, hash } = await makeKey();
    expect(await both(secret)).toEqual([200, 200]);
    let last = secret;
    for (let times = 0; times < 3; times += 1) {
      const { secret: next } = await rotate(hash, { grace_seconds: 0 });
      expect(await both(last)).toEqual([401, 401]);
      expect(await both(next)).toEqual([200, 200]);
      last = next;
    }
  }, 300_000);

  test('ends with its grace period on a node that caches it, without any notification', async () => {
    const { makeKey, rotate, both, other, chat } = await setUp();
    const { secret, hash } = await makeKey();
    const { secret: next, data } = await rotate(hash, { grace_seconds: 4 });
    const end = Date.parse(String(data['previous_secret_expires_at']));
    expect(await both(secret)).toEqual([200, 200]);
    await expect.poll(async () => (await chat(other, secret)).status).toBe(401);
    expect(Date.now()).toBeGreaterThan(end - 1_000);
    expect(await both(secret)).toEqual([401, 401]);
    expect(await both(next)).toEqual([200, 200]);
  }, 300_000);

  test('ends early on every node, and ends with the key if that is disabled or deleted', async () => {
    const { makeKey, rotate, both, manage } = await setUp();
    const { secret, hash } = await makeKey();
    const { secret: next } = await rotate(hash);
    const states: number[][] = [await both(secret), await both(next)];
    await manage('PATCH', `/keys/${hash}`, { disabled: true });
    states.push(await both(secret), await both(next));
    await manage('PATCH', `/keys/${hash}`, { disabled: false });
    states.push(await both(secret), await both(next));
    await manage('DELETE', `/keys/${hash}/previous-secret`);
    states.push(await both(secret), await both(next));
    await manage('DELETE', `/keys/${hash}`);
    states.push(await both(secret), await both(next));
    expect(states.map(([status]) => status)).toEqual([200, 200, 401, 401, 200, 200, 401, 200, 401, 401]);
    expect(states.every(([here, there]) => here === there)).toBe(true);
  }, 300_000);

  test('spends from the same limit as the new one, which counts what was spent before', async () => {
    const { makeKey, rotate, one, other, chat, keyOf, verified } = await setUp();
    // One call reserves 0.00004, and costs 0.0000014.
    const { secret, hash } = await makeKey({ limit: 0.0001 });
    const statuses = [(await chat(one, secret)).status];
    const { secret: next } = await rotate(hash);
    const calls = Array.from({ length: 120 }, (_, index) =>
      chat(index % 2 === 0 ? one : other, index % 3 === 0 ? secret : next),
    );
    statuses.push(...(await Promise.all(calls)).map(({ status }) => status));
    const served = statuses.filter((status) => status === 200).length;
    const spent = Math.round(served * 1_400);
    expect(spent).toBeLessThanOrEqual(100_000);
    const usage = async () => Math.round(Number((await keyOf(hash))['usage']) * 1e9);
    await expect.poll(usage).toBe(spent);
    expect(await verified()).toEqual([]);
  }, 300_000);

  test('makes and changes no key, and keys made with it stay unchanged', async () => {
    const { makeKey, makeChild, rotate, code, both, ask, one, keyOf } = await setUp();
    const { secret, hash } = await makeKey({ limit: 5 });
    const child = await makeChild(secret);
    const pending = await code(secret);
    const { secret: next } = await rotate(hash, { grace_seconds: 0 });
    expect(await both(child.secret)).toEqual([200, 200]);
    expect(await keyOf(child.hash)).toMatchObject({ parent_hash: hash });
    expect((await code(secret)).status).toBe(401);
    for (const own of [next, child.secret]) {
      expect((await ask(one, own, 'POST', `/keys/${hash}/rotate`, {})).status).toBe(403);
      expect((await ask(one, own, 'DELETE', `/keys/${hash}/previous-secret`)).status).toBe(403);
    }
    expect(pending.status).toBe(200);
    expect(await keyOf((await makeChild(next)).hash)).toMatchObject({ parent_hash: hash });
  }, 300_000);

  test('is at most one: rotations on two nodes at once leave one current and at most one older secret', async () => {
    const { makeKey, ask, one, other, both } = await setUp();
    for (const body of [{}, { grace_seconds: 0 }, { grace_seconds: 60, keep: 'current' }]) {
      const { secret, hash } = await makeKey();
      const answers = await Promise.all(
        [one, other, one, other].map((gateway) =>
          ask(gateway, one.management_key, 'POST', `/keys/${hash}/rotate`, body),
        ),
      );
      const secrets = [secret, ...answers.flatMap(({ body: { key } }) => key ?? [])];
      const accepted = (await Promise.all(secrets.map(both))).map((statuses) => statuses.join(' '));
      const count = accepted.filter((statuses) => statuses === '200 200').length;
      expect(count).toBe('grace_seconds' in body && body.grace_seconds === 0 ? 1 : 2);
      expect(accepted.filter((statuses) => statuses === '401 401')).toHaveLength(secrets.length - count);
      expect([...new Set(answers.map(({ status }) => status))].every((status) => [200, 409].includes(status))).toBe(
        true,
      );
    }
  }, 300_000);

  test('is stored only as a digest, and records of calls name the key for either secret', async () => {
    const { makeKey, rotate, chat, one, manage, url } = await setUp();
    const { secret, hash } = await makeKey();
    const { secret: next } = await rotate(hash);
    for (const own of [secret, next]) expect((await chat(one, own)).status).toBe(200);
    const calls = async () => manage('GET', `/generations?api_key_hash=${hash}`);
    await expect.poll(calls).toMatchObject([{ api_key_hash: hash }, { api_key_hash: hash }]);
    const database = await openDatabase({ data_dir: one.data_dir, database_url: url });
    cleanups.push(() => database.close());
    const stored = JSON.stringify([
      await database.queries.selectFrom('api_keys').selectAll().execute(),
      await database.queries.selectFrom('audit_events').selectAll().execute(),
    ]);
    const digest = createHash('sha256').update(next).digest('hex');
    expect([stored.includes(secret), stored.includes(next), stored.includes(digest)]).toEqual([false, false, true]);
    expect(one.log_lines.join('')).not.toContain(next);
  }, 300_000);
});
