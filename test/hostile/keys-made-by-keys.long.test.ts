/**
 * Privilege by delegation: what the holder of one ordinary key can get by making keys with it. The recorded parents of
 * each key prevent more; see docs/threat-model.md, "Keys made by other keys, and members who leave".
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import { limits } from '../../src/limits.ts';
import { describeStores } from '../ledger/store-variants.ts';
import { keyFamily } from './key-family.ts';

const cleanups: (() => Promise<void>)[] = [];

describeStores('keys made with a key', ({ freshUrl }) => {
  // Registered here, so that the gateways stop before their store is removed.
  afterEach(async () => {
    for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
  });
  const setUp = (yaml?: string) => keyFamily(freshUrl, cleanups, yaml);

  test('spend together no more than its limit on all nodes, in any number, and the accounts stay correct', async () => {
    const { one, other, makeKey, makeChild, chat, keyOf, verified } = await setUp();
    // One call reserves 0.00004, and costs 0.0000014.
    const limit = 0.0001;
    const parent = await makeKey({ limit, limit_reset: 'daily' });
    const family = [parent];
    for (let count = 0; count < 4; count += 1) family.push(await makeChild(parent.secret, { limit: 1_000 }));
    family.push(await makeChild((await makeChild(parent.secret)).secret));
    const calls = family.flatMap(({ secret }) =>
      Array.from({ length: 12 }, (_, index) => chat(index % 2 === 0 ? one : other, secret)),
    );
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    expect([...new Set(statuses)].sort()).toEqual([200, 402]);
    const served = statuses.filter((status) => status === 200).length;
    const spent = served * 0.0000014;
    expect(spent).toBeLessThanOrEqual(limit);
    // The usage of the child is recorded with the child; the parent's limit counts all of it.
    const usages = async () => {
      const usages = await Promise.all(family.map(async ({ hash }) => Number((await keyOf(hash))['usage'])));
      return Math.round(usages.reduce((sum, usage) => sum + usage, 0) * 1e9);
    };
    await expect.poll(usages).toBe(Math.round(spent * 1e9));
    const { limit_remaining } = await keyOf(parent.hash);
    expect(limit_remaining).toBeCloseTo(limit - spent, 9);
    expect(await verified()).toEqual([]);
  });

  test('get at most its limit, expiry and workspace at the exchange of the code', async () => {
    const { makeKey, makeChild, code, exchange, keyOf, manage } = await setUp();
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const bounds = { limit: 5, limit_reset: 'weekly', include_byok_in_limit: true, expires_at: expiresAt };
    const { id: workspaceId } = (await manage('POST', '/workspaces', { name: 'Lab', slug: 'lab' })) as { id: string };
    const parent = await makeKey({ ...bounds, workspace_id: workspaceId });
    const shared = {
      parent_hash: parent.hash,
      workspace_id: workspaceId,
      include_byok_in_limit: true,
      expires_at: expiresAt,
    };
    const absent = await makeChild(parent.secret);
    expect(await keyOf(absent.hash)).toMatchObject({ ...shared, limit: 5, limit_reset: 'weekly' });
    const above = await makeChild(parent.secret, { limit: 6, expires_at: '2999-01-01T00:00:00Z' });
    expect(await keyOf(above.hash)).toMatchObject({ ...shared, limit: 5, limit_reset: null });
    const sooner = new Date(Date.now() + 60_000).toISOString();
    const below = await makeChild(parent.secret, { limit: 2, usage_limit_type: 'daily', expires_at: sooner });
    expect(await keyOf(below.hash)).toMatchObject({ ...shared, limit: 2, limit_reset: 'daily', expires_at: sooner });
    // The code was made before the key was limited further.
    const early = await code(parent.secret, { limit: 4 });
    await manage('PATCH', `/keys/${parent.hash}`, { limit: 0.5 });
    const late = await exchange(early);
    expect(await keyOf(late.hash)).toMatchObject({ ...shared, limit: 0.5 });
    // A key without a limit below a key with a limit grants as much as that one has.
    await manage('PATCH', `/keys/${absent.hash}`, { limit: null });
    const grandchild = await makeChild(absent.secret, { limit: 3 });
    expect(await keyOf(grandchild.hash)).toMatchObject({ parent_hash: absent.hash, limit: 0.5 });
  });

  test('are refused with it on every node at once, if it is disabled or deleted, and accepted again with it', async () => {
    const { makeKey, makeChild, both, code, exchange, manage, ask, other } = await setUp();
    const parent = await makeKey();
    const child = await makeChild(parent.secret);
    const grandchild = await makeChild(child.secret);
    const own = await makeChild(parent.secret);
    const family = [parent, child, grandchild, own];
    const all = async () => (await Promise.all(family.map(({ secret }) => both(secret)))).flat();
    expect(await all()).toEqual(Array(8).fill(200));
    const waiting = await code(child.secret);
    await manage('PATCH', `/keys/${own.hash}`, { disabled: true });
    await manage('PATCH', `/keys/${parent.hash}`, { disabled: true });
    expect(await all()).toEqual(Array(8).fill(401));
    expect((await exchange(waiting, other)).status).toBe(403);
    await manage('PATCH', `/keys/${parent.hash}`, { disabled: false });
    expect(await all()).toEqual([...Array(6).fill(200), 401, 401]);
    await manage('DELETE', `/keys/${parent.hash}`);
    expect(await all()).toEqual(Array(8).fill(401));
    for (const { hash } of family) {
      expect((await ask(other, other.management_key, 'GET', `/keys/${hash}`)).status).toBe(404);
    }
  });

  test('obey its guardrails, later ones too, and their spend limits', async () => {
    const { makeKey, makeChild, both, manage } = await setUp();
    const parent = await makeKey();
    const child = await makeChild((await makeChild(parent.secret)).secret);
    expect(await both(child.secret)).toEqual([200, 200]);
    const { id: models } = await manage('POST', '/guardrails', { name: 'M', ignored_models: ['sandbox/echo'] });
    await manage('POST', `/guardrails/${models}/assignments/keys`, { key_hashes: [parent.hash] });
    expect(await both(child.secret)).toEqual(await both(parent.secret));
    expect(await both(child.secret)).not.toContain(200);
    const { id: money } = await manage('POST', '/guardrails', { name: 'S', limit_usd: 0.000000001 });
    await manage('POST', `/guardrails/${money}/assignments/keys`, { key_hashes: [parent.hash] });
    expect(await both(child.secret)).toEqual([402, 402]);
  });

  test('may form a chain of at most the bound, checked at the code and at the exchange', async () => {
    const { makeKey, makeChild, code, ask, one } = await setUp();
    let secret = (await makeKey()).secret;
    for (let depth = 0; depth < limits.key_ancestors_max; depth += 1) secret = (await makeChild(secret)).secret;
    expect(await code(secret)).toMatchObject({ status: 403, body: { error: { code: 403 } } });
    expect((await ask(one, secret, 'GET', '/key')).status).toBe(200);
  });

  test('count against its rate limits, and an application cannot choose other ones by a name', async () => {
    const rateLimits = {
      per_key: { requests_per_minute: 3 },
      keys: { trusted: { requests_per_minute: 'unlimited' } },
    };
    const { one, makeKey, makeChild, chat } = await setUp(JSON.stringify({ rate_limits: rateLimits }));
    const parent = await makeKey();
    const children = [await makeChild(parent.secret, { key_label: 'trusted' }), await makeChild(parent.secret)];
    const statuses: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      for (const { secret } of children) statuses.push((await chat(one, secret)).status);
    }
    // A minute may end meanwhile: then the next one has three more.
    expect(statuses.slice(0, 3)).toEqual([200, 200, 200]);
    expect(statuses).toContain(429);
    const trusted = await makeKey({ name: 'trusted' });
    const pretender = await makeChild(trusted.secret, { key_label: 'trusted' });
    const pretended: number[] = [];
    for (let round = 0; round < 7; round += 1) {
      expect((await chat(one, trusted.secret)).status).toBe(200);
      pretended.push((await chat(one, pretender.secret)).status);
    }
    expect(pretended).toContain(429);
  });

  test('are logged if the workspace logs one of their ancestors, and not if it logs another key', async () => {
    const { one, makeKey, makeChild, ask, chat, keyOf, manage } = await setUp();
    const [named, unnamed] = [await makeKey(), await makeKey()];
    const family = [named, await makeChild(named.secret)];
    family.push(await makeChild(family[1]!.secret));
    const stranger = await makeChild(unnamed.secret);
    const { id } = await keyOf(named.hash);
    const [workspace] = (await manage('GET', '/workspaces')) as unknown as { id: string }[];
    await manage('PATCH', `/workspaces/${workspace!.id}`, {
      is_observability_io_logging_enabled: true,
      io_logging_api_key_ids: [id],
    });
    /** Sends a text, and returns the request for its stored content. */
    const say = async ({ secret }: { secret: string }) => {
      const { body } = await chat(one, secret);
      const path = `/generation/content?id=${(body as unknown as { id: string }).id}`;
      return async () => (await ask(one, one.management_key, 'GET', path)).status;
    };
    // The other key first, because both calls are kept once the logged key's call is there.
    const contentOfStranger = await say(stranger);
    const contents = await Promise.all(family.map(say));
    for (const content of contents) await expect.poll(content).toBe(200);
    expect(await contentOfStranger()).toBe(404);
    await sleep(5 * limits.logged_gather_ms);
    expect(await contentOfStranger()).toBe(404);
  });

  test('pay with provider credentials that an ancestor may use, and not with those of another key', async () => {
    const { one, makeKey, makeChild, ask, chat, manage } = await setUp();
    const [named, unnamed] = [await makeKey(), await makeKey()];
    const family = [named, await makeChild(named.secret)];
    family.push(await makeChild(family[1]!.secret));
    const stranger = await makeChild(unnamed.secret);
    await manage('POST', '/byok', {
      provider: 'sandbox',
      key: 'sk-0123456789abcdef',
      allowed_api_key_hashes: [named.hash],
    });
    const paysItself = async ({ secret }: { secret: string }) => {
      const { body } = await chat(one, secret);
      const path = `/generation?id=${(body as unknown as { id: string }).id}`;
      const answer = await ask(one, secret, 'GET', path);
      return answer.body.data?.['is_byok'];
    };
    expect(await Promise.all([...family, stranger].map(paysItself))).toEqual([true, true, true, false]);
  });

  test('cannot be made if the operator disables it, not even with pending codes', async () => {
    const { one, makeKey, code, exchange } = await setUp('auth: { codes_by_api_key: on }');
    const { secret } = await makeKey();
    const waiting = await code(secret);
    expect(waiting.status).toBe(200);
    const configFile = join(one.data_dir, 'other.yaml');
    writeFileSync(configFile, 'auth: { codes_by_api_key: off }');
    const reloaded = one.gateway.replace(loadConfig({}, { config_file: configFile }));
    expect(reloaded).toMatchObject({ settings: ['codes_by_api_key'], needs_restart: [] });
    expect(await code(secret)).toMatchObject({ status: 403, body: { error: { code: 403 } } });
    expect(await exchange(waiting)).toMatchObject({ status: 403 });
    expect((await code(one.management_key)).status).toBe(403);
  });
});
