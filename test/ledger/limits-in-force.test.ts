import { afterEach, expect, test } from 'vitest';
import { openDatabase } from '../../src/storage/database.ts';
import { verifyLedger } from '../../src/storage/verify-ledger.ts';
import { runProgram } from '../command-line.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { describeStores } from './store-variants.ts';

const cleanups: (() => Promise<void>)[] = [];
interface Outcome {
  status: number;
  message: string | undefined;
}

describeStores('a limit is in force on every node once its change is answered', ({ freshUrl }) => {
  // Registered here, so that the gateways stop before their store is removed.
  afterEach(async () => {
    for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
  });

  /** Two gateways on one store, with the requests of a client and of an administrator. */
  async function setUp() {
    const url = await freshUrl();
    const environment: Record<string, string> = url === undefined ? {} : { DATABASE_URL: url };
    const one = await startGateway({ environment });
    cleanups.push(() => one.stop());
    const other = await startGateway({ environment, ...(url === undefined ? { data_dir: one.data_dir } : {}) });
    cleanups.push(() => other.stop());
    const manage = async (method: string, path: string, body?: unknown) => {
      const answer = await one.call(method, path, body, { authorization: `Bearer ${one.management_key}` });
      expect([method, path, answer.status]).toEqual([method, path, method === 'POST' ? expect.any(Number) : 200]);
      expect(answer.ok).toBe(true);
      return ((await answer.json()) as { data: Record<string, unknown> }).data;
    };
    const chat = async (gateway: TestGateway): Promise<Outcome> => {
      const messages = [{ role: 'user', content: 'hello there' }];
      const body = { model: 'sandbox/echo', max_tokens: 20, messages };
      const answer = await gateway.call('POST', '/chat/completions', body, { authorization: `Bearer ${one.key}` });
      const { error } = (await answer.json()) as { error?: { message: string } };
      return { status: answer.status, message: error?.message };
    };
    /** The answers of both nodes to a request. */
    const both = async () => [await chat(one), await chat(other)];
    const served = [{ status: 200 }, { status: 200 }];
    const refused = (label: string) => Array(2).fill({ status: 402, message: expect.stringContaining(label) });
    /** A node returns the rest of its lease of a limit that was lowered; until then it may spend that. */
    const lowered = (label: string) => expect.poll(both).toMatchObject(refused(label));
    const run = (...args: string[]) =>
      runProgram(args, { env: { ...environment, GATEWAY_DATA_DIR: one.data_dir }, cwd: one.data_dir });
    const verified = async () => {
      const database = await openDatabase({ data_dir: one.data_dir, database_url: url });
      try {
        return (await verifyLedger(database.queries)).differences;
      } finally {
        await database.close();
      }
    };
    return { one, other, manage, chat, both, served, refused, lowered, run, verified };
  }

  test('of a key', async () => {
    const { one, manage, both, served, refused, lowered, verified } = await setUp();
    const path = `/keys/${one.key_hash}`;
    /** Both nodes have written to the store. */
    const used = (usd: number) => expect.poll(async () => (await manage('GET', path))['usage']).toBe(usd);
    expect(await both()).toMatchObject(served);
    await manage('PATCH', path, { limit: 0 });
    expect(await both()).toMatchObject(refused('the limit of this API key ($0.00 in all)'));
    await used(0.0000028);
    await manage('PATCH', path, { limit: 0.5, limit_reset: 'daily' });
    expect(await both()).toMatchObject(served);
    // Includes what was spent before it.
    await used(0.0000056);
    expect((await manage('GET', path))['limit_remaining']).toBe(0.4999944);
    await manage('PATCH', path, { limit: 0.000001 });
    await lowered('the limit of this API key ($0.000001 a day)');
    await manage('PATCH', path, { limit: null });
    expect(await both()).toMatchObject(served);
    expect(await verified()).toEqual([]);
  });

  test('of a guardrail, for a key and for its owner', async () => {
    const { one, manage, both, served, refused, lowered, verified } = await setUp();
    const owner = (await manage('GET', `/keys/${one.key_hash}`))['creator_user_id'];
    expect(await both()).toMatchObject(served);
    const { id } = await manage('POST', '/guardrails', { name: 'thrift', limit_usd: 0, reset_interval: 'weekly' });
    expect(await both()).toMatchObject(served);
    const assignments = `/guardrails/${id}/assignments`;
    await manage('POST', `${assignments}/keys`, { key_hashes: [one.key_hash] });
    expect(await both()).toMatchObject(refused('the limit of the guardrail "thrift" for this API key ($0.00 a week)'));
    await manage('POST', `${assignments}/keys/remove`, { key_hashes: [one.key_hash] });
    expect(await both()).toMatchObject(served);
    await manage('POST', `${assignments}/members`, { member_user_ids: [owner] });
    expect(await both()).toMatchObject(refused('the limit of the guardrail "thrift" for the owner of this API key'));
    await manage('PATCH', `/guardrails/${id}`, { limit_usd: 1 });
    expect(await both()).toMatchObject(served);
    await manage('PATCH', `/guardrails/${id}`, { limit_usd: 0, name: 'nothing' });
    await lowered('the limit of the guardrail "nothing" for the owner');
    await manage('DELETE', `/guardrails/${id}`);
    expect(await both()).toMatchObject(served);
    expect(await verified()).toEqual([]);
  });

  test('of a workspace', async () => {
    const { manage, both, served, refused, verified } = await setUp();
    const budgets = '/workspaces/default/budgets';
    expect(await both()).toMatchObject(served);
    await manage('PUT', `${budgets}/monthly`, { limit_usd: 0.000001 });
    expect(await both()).toMatchObject(refused('the monthly budget of the workspace "default" ($0.000001 a month)'));
    await manage('PATCH', '/workspaces/default', { slug: 'main' });
    expect(await both()).toMatchObject(refused('the monthly budget of the workspace "main"'));
    await manage('PUT', '/workspaces/main/budgets/monthly', { limit_usd: 1 });
    expect(await both()).toMatchObject(served);
    await manage('PUT', '/workspaces/main/budgets/daily', { limit_usd: 0.000001 });
    expect(await both()).toMatchObject(refused('the daily budget of the workspace "main"'));
    await manage('DELETE', '/workspaces/main/budgets/daily');
    expect(await both()).toMatchObject(served);
    expect(await verified()).toEqual([]);
  });

  test('of the credits of the organization, granted and revoked by a command', async () => {
    const { one, manage, both, served, refused, lowered, run, verified } = await setUp();
    expect(await run('credits', 'show')).toMatchObject({
      code: 0,
      stdout: 'No credits were granted: spending is not limited by credits. Spent: $0.00\n',
    });
    expect(await both()).toMatchObject(served);
    expect(await run('credits', 'grant', '0.0000028', '--reason', 'to begin with')).toMatchObject({ code: 0 });
    expect(await both()).toMatchObject(refused('the credits of the organization ($0.0000028 in all)'));
    expect(await run('credits', 'grant', '5', '--reason', 'more')).toMatchObject({ code: 0 });
    expect(await both()).toMatchObject(served);
    expect(await manage('GET', '/credits')).toMatchObject({ total_credits: 5.0000028 });
    expect(await run('credits', 'revoke', '6', '--reason', 'too much')).toMatchObject({
      code: 1,
      stderr: 'Only $5.0000028 were granted.\n',
    });
    expect(await run('credits', 'revoke', '5', '--reason', 'a mistake')).toMatchObject({ code: 0 });
    await lowered('the credits of the organization');
    expect(await run('credits', 'show')).toMatchObject({
      stdout: expect.stringMatching(
        /^\S+Z {2}\$0\.0000028 {2}to begin with\n\S+Z {2}\$5\.00 {2}more\n\S+Z {2}-\$5\.00 {2}a mistake\nGranted: \$0\.0000028 {2}Spent: \$0\.\d+ {2}Left: -\$0\.\d+\n$/,
      ),
    });
    const { data } = (await (
      await one.call('GET', '/audit?resource_type=credits', undefined, {
        authorization: `Bearer ${one.management_key}`,
      })
    ).json()) as { data: unknown[] };
    expect(data).toMatchObject([
      { actor: 'command', after: { amount: -5, reason: 'a mistake' } },
      { before: { total_credits: 0.0000028 }, after: { total_credits: 5.0000028 } },
      { before: { total_credits: null }, after: { total_credits: 0.0000028, reason: 'to begin with' } },
    ]);
    expect(await verified()).toEqual([]);
  });
});
