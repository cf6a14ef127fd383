import { expect, test } from 'vitest';
import { workspacesServer } from '../../../test/http/workspaces-server.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';

const NOW = '2026-11-21T10:00:00.000Z';
type Data = Record<string, unknown>;

describeStores('budgets of workspaces', ({ open }) => {
  const setUp = async () => workspacesServer(await open(), NOW);

  test('budgets of shorter intervals must be smaller, and a violation names both', async () => {
    const { create, ask } = await setUp();
    await create();
    const put = (interval: string, limitUsd: number) =>
      ask('PUT', `/workspaces/research/budgets/${interval}`, { limit_usd: limitUsd });
    const { status, data } = await put('monthly', 500);
    expect([status, data]).toEqual([
      200,
      {
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        workspace_id: expect.any(String),
        limit_usd: 500,
        reset_interval: 'monthly',
        created_at: NOW,
        updated_at: NOW,
      },
    ]);
    expect(await put('daily', 500)).toMatchObject({
      status: 400,
      message: 'limit_usd: the daily budget ($500) must be less than the monthly budget ($500)',
    });
    expect(await put('lifetime', 400)).toMatchObject({
      status: 400,
      message: 'limit_usd: the lifetime budget ($400) must be more than the monthly budget ($500)',
    });
    expect((await put('daily', 50)).status).toBe(200);
    expect((await put('weekly', 50)).status).toBe(400);
    expect((await put('weekly', 100)).status).toBe(200);
    expect((await put('lifetime', 5000)).data).toMatchObject({ reset_interval: null });
    expect((await put('monthly', 600)).data).toMatchObject({ id: data['id'], limit_usd: 600, updated_at: NOW });
    const listed = await ask('GET', '/workspaces/research/budgets');
    expect((listed.data as unknown as Data[]).map((budget) => budget['limit_usd'])).toEqual([5000, 600, 100, 50]);
    for (const limitUsd of [0, -1, 9_007_200, 1e-10, '5', null]) {
      expect((await ask('PUT', '/workspaces/research/budgets/daily', { limit_usd: limitUsd })).status).toBe(400);
    }
    expect((await put('yearly', 5)).status).toBe(400);
  });

  test('of two concurrent budgets that contradict each other, one is refused', async () => {
    const { create, ask } = await setUp();
    for (let round = 0; round < 10; round += 1) {
      await create({ slug: `w${round}` });
      const answers = await Promise.all([
        ask('PUT', `/workspaces/w${round}/budgets/monthly`, { limit_usd: 10 }),
        ask('PUT', `/workspaces/w${round}/budgets/daily`, { limit_usd: 20 }),
      ]);
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 400]);
    }
  });

  test('every budget shows whether BYOK is included, and deleting one is idempotent', async () => {
    const { create, ask } = await setUp();
    await create();
    expect(await ask('GET', '/workspaces/research/budgets')).toMatchObject({
      data: [],
      include_byok_in_budgets: false,
    });
    const body = { limit_usd: 5, include_byok_in_budgets: true };
    expect(await ask('PUT', '/workspaces/research/budgets/daily', body)).toMatchObject({
      include_byok_in_budgets: true,
    });
    expect(await ask('PUT', '/workspaces/research/budgets/weekly', { limit_usd: 9 })).toMatchObject({
      include_byok_in_budgets: true,
    });
    expect(await ask('GET', '/workspaces/research/budgets/daily')).toMatchObject({
      data: { limit_usd: 5 },
      include_byok_in_budgets: true,
    });
    for (let times = 0; times < 2; times += 1) {
      expect(await ask('DELETE', '/workspaces/research/budgets/daily')).toMatchObject({ status: 200, deleted: true });
    }
    expect((await ask('GET', '/workspaces/research/budgets/daily')).status).toBe(404);
    expect((await ask('GET', '/workspaces/research/budgets/yearly')).status).toBe(400);
  });
});
