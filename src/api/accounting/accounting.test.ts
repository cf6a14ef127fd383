import { expect, test } from 'vitest';
import { generation } from '../../../test/generation-fixture.ts';
import { managementServer } from '../../../test/http/management-server.ts';
import { registerNode } from '../../../test/ledger/registered-node.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { toSettle } from '../../ledger/settle.ts';
import { activityStore } from '../../storage/activity.ts';
import { creditStore } from '../../storage/credits.ts';
import { keyStore } from '../../storage/keys.ts';
import { ledgerStore } from '../../storage/ledger.ts';
import { getCredits } from './get-credits.ts';
import { listActivity } from './list-activity.ts';

const NOW = '2026-11-21T10:00:00.000Z';

describeStores('credits and activity', ({ open }) => {
  async function setUp(at = NOW) {
    const database = await open();
    const made = await managementServer(database, at);
    const activity = activityStore(database.queries);
    let flushed = async () => {};
    const credits = creditStore(database.queries);
    const recorder = { flush: () => flushed() };
    getCredits(made.server, { activity, credits, keys: keyStore(database.queries), recorder, now: made.now });
    listActivity(made.server, { activity, now: made.now, recorder });
    const ledger = ledgerStore(database.queries, database.engine);
    const { epoch } = await registerNode(ledger, 'n');
    const { organization_id, default_workspace_id: workspaceId } = made.home;
    let number = 0;
    const settle = async (...over: Parameters<typeof generation>[0][]) => {
      number += 1;
      const records = over.map((one) =>
        generation({ organization_id, workspace_id: workspaceId, cost_nano: 1_000, ...one }),
      );
      const settles = records.map((record) => toSettle(record, []));
      expect(await ledger.settle({ node: 'n', epoch, number, at: 2, settles, windows: [], divisor: 2 })).toMatchObject({
        is: 'applied',
      });
    };
    return {
      ...made,
      database,
      credits,
      settle,
      onFlush(run: () => Promise<void>) {
        flushed = run;
      },
    };
  }

  test('credits: without grants, usage is all spending so far, including unflushed calls', async () => {
    const { call, settle, onFlush } = await setUp();
    expect((await call('GET', '/credits')).body).toEqual({ data: { total_credits: 0, total_usage: 0 } });
    await settle({ id: 'a' }, { id: 'b', created_at: '2020-01-01T00:00:00.000Z' });
    onFlush(() => settle({ id: 'c', is_byok: true, cost_nano: 0, upstream_cost_nano: 5 }, { id: 'd' }));
    expect((await call('GET', '/credits')).body).toEqual({ data: { total_credits: 0, total_usage: 0.000003 } });
    expect((await call('GET', '/credits', undefined, 'foreign')).body['data']).toEqual({
      total_credits: 0,
      total_usage: 0,
    });
  });

  test('credits: grants minus revocations, of this organization only', async () => {
    const { call, credits, home, foreign } = await setUp();
    const grant = (organizationId: string, amountNano: number) =>
      credits.grant({ organization_id: organizationId, amount_nano: amountNano, reason: 'r', at: NOW });
    await grant(home.organization_id, 25_000_000_000);
    await grant(home.organization_id, -500_000_000);
    await grant(foreign.organization_id, 1);
    expect((await call('GET', '/credits')).body).toEqual({ data: { total_credits: 24.5, total_usage: 0 } });
  });

  test('activity: one row for each day, model and endpoint, with sums of requests, tokens and cost', async () => {
    const { call, settle } = await setUp();
    const at = { created_at: '2026-11-20T23:59:59.999Z' };
    const usage = { in_uncached: 10, in_cache_read: 5, out_text: 3, out_reasoning: 4 };
    await settle({ id: 'a', ...at, usage }, { id: 'b', ...at, usage, key_hash: 'other' });
    await settle({ id: 'c', ...at, usage, is_byok: true, upstream_cost_nano: 70 }, { id: 'b', ...at, usage });
    await settle({ id: 'd', ...at, endpoint_id: 'acme|b', usage: null }, { id: 'e' });
    const { body } = await call('GET', '/activity');
    expect(body['data']).toEqual([
      {
        date: '2026-11-20',
        model: 'acme/fast-1',
        model_permaslug: 'acme/fast-1',
        endpoint_id: 'acme|acme/fast-1',
        provider_name: 'Acme AI',
        usage: 0.000003,
        byok_usage_inference: 7e-8,
        requests: 3,
        prompt_tokens: 45,
        completion_tokens: 21,
        reasoning_tokens: 12,
      },
      expect.objectContaining({ endpoint_id: 'acme|b', requests: 1, prompt_tokens: 0 }),
    ]);
    expect((await call('GET', '/activity?date=2026-11-21')).body['data']).toMatchObject([{ requests: 1 }]);
  });

  test('activity: the current day includes unflushed calls, and a completed day is not waited for', async () => {
    const { call, settle, onFlush } = await setUp();
    onFlush(() => settle({ id: 'a' }, { id: 'b', created_at: '2026-11-20T23:59:59.999Z' }));
    expect((await call('GET', '/activity?date=2026-11-20')).body['data']).toEqual([]);
    expect((await call('GET', '/activity?date=2026-11-21')).body['data']).toMatchObject([{ requests: 1 }]);
    onFlush(() => settle({ id: 'c', created_at: '2026-11-20T23:59:59.999Z' }));
    expect((await call('GET', '/activity')).body['data']).toMatchObject([{ requests: 2 }]);
  });

  test('activity: filters by key, member and workspace, over the last 30 completed days', async () => {
    const { call, settle, home } = await setUp();
    const at = { created_at: '2026-11-20T10:00:00.000Z' };
    await settle(
      { id: 'a', ...at, key_hash: 'k1', user_id: 'u1' },
      { id: 'b', ...at, key_hash: 'k2', user_id: 'u2', workspace_id: 'w2' },
      { id: 'c', key_hash: 'k1', created_at: '2026-10-22T00:00:00.000Z' },
      { id: 'd', key_hash: 'k1', created_at: '2026-10-21T23:59:59.000Z' },
    );
    const requests = async (query: string) =>
      ((await call('GET', `/activity?${query}`)).body['data'] as unknown as { requests: number }[]).map(
        (row) => row.requests,
      );
    expect(await requests('')).toEqual([2, 1]);
    expect(await requests('api_key_hash=k2')).toEqual([1]);
    expect(await requests('user_id=u1')).toEqual([1]);
    expect(await requests('workspace_id=w2')).toEqual([1]);
    expect(await requests('workspace_id=%00')).toEqual([]);
    expect(await requests('date=2026-11-20')).toEqual([2]);
    const grouped = (await call('GET', '/activity?group_by=workspace&date=2026-11-20')).body['data'];
    expect(grouped).toMatchObject(
      [home.default_workspace_id, 'w2'].map((workspaceId) =>
        expect.objectContaining({ workspace_id: workspaceId, requests: 1 }),
      ),
    );
    expect((await call('GET', '/activity', undefined, 'foreign')).body).toEqual({ data: [] });
  });

  test.each(['2026-13-01', '2026-02-30', 'yesterday', '2026-10-21', '2026-11-22', ''])(
    '400: %j is not a day of the activity',
    async (date) => {
      const { call } = await setUp();
      expect(await call('GET', `/activity?date=${date}`)).toMatchObject({
        status: 400,
        body: { error: { message: expect.stringMatching(/^date must be/) } },
      });
    },
  );

  test('400: a day that does not exist in its month, even if the next day is allowed', async () => {
    const { call } = await setUp('2026-12-05T10:00:00.000Z');
    expect((await call('GET', '/activity?date=2026-11-31')).status).toBe(400);
    expect((await call('GET', '/activity?date=2026-12-01')).status).toBe(200);
  });

  test('200: an ordinary key sees only its own limit and usage', async () => {
    const { call, credits, addKey, principals, home, settle } = await setUp();
    await credits.grant({ organization_id: home.organization_id, amount_nano: 90e9, reason: 'r', at: NOW });
    const limited = await addKey({ limit_nano: 5e9 });
    const plain = await addKey();
    await settle(
      { id: 'a', key_hash: limited.hash, cost_nano: 2e9 },
      { id: 'b', key_hash: plain.hash, cost_nano: 3e9 },
    );
    const own = async ({ hash }: { hash: string }) => {
      principals.ordinary.key_hash = hash;
      const { status, body, headers } = await call('GET', '/credits', undefined, 'ordinary');
      expect([status, headers['cache-control']]).toEqual([200, 'private, no-store']);
      return body['data'];
    };
    expect(await own(limited)).toEqual({ total_credits: 5, total_usage: 0 });
    expect(await own(plain)).toEqual({ total_credits: 0, total_usage: 3 });
    expect((await call('GET', '/credits')).body['data']).toMatchObject({ total_credits: 90 });
    principals.ordinary.key_hash = 'deleted since';
    expect((await call('GET', '/credits', undefined, 'ordinary')).status).toBe(401);
  });

  test('403: an ordinary key cannot read /activity', async () => {
    const { call } = await setUp();
    expect((await call('GET', '/activity', undefined, 'ordinary')).status).toBe(403);
  });

  test.each([
    ['/credits', 'organization_usage'],
    ['/activity', 'activity_days'],
  ])('401, 500: %s', async (url, table) => {
    const { call, database } = await setUp();
    expect((await call('GET', url, undefined, '')).status).toBe(401);
    await database.queries.schema.dropTable(table).execute();
    expect((await call('GET', url)).status).toBe(500);
  });
});
