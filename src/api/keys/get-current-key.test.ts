import { expect, test } from 'vitest';
import { startGateway } from '../../../test/harness.ts';
import { creditStore } from '../../storage/credits.ts';
import { openDatabase } from '../../storage/database.ts';

test('GET /key, and its former path: limits, usage and private cache headers', async () => {
  const gateway = await startGateway();
  try {
    const manage = { authorization: `Bearer ${gateway.management_key}` };
    const body = { name: 'k', limit: 5, limit_reset: 'daily', expires_at: '2999-01-01T00:00:00Z' };
    const made = await (await gateway.call('POST', '/keys', body, manage)).json();
    const { key, data } = made as { key: string; data: Record<string, unknown> };
    const ownLimit = {
      scope: 'key_limit',
      guardrail_id: null,
      budget_id: null,
      limit_usd: 5,
      spend_usd: 0,
      remaining_usd: 5,
      include_byok: false,
      reset_interval: 'daily',
      resets_at: expect.stringMatching(/T00:00:00\.000Z$/),
    };
    for (const path of ['/key', '/auth/key']) {
      const answer = await gateway.call('GET', path, undefined, { authorization: `Bearer ${key}` });
      expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'private, no-store']);
      expect(await answer.json()).toEqual({
        data: {
          label: data['label'],
          workspace_id: data['workspace_id'],
          creator_user_id: data['creator_user_id'],
          expires_at: '2999-01-01T00:00:00.000Z',
          limit: 5,
          limit_remaining: 5,
          limit_reset: 'daily',
          include_byok_in_limit: false,
          usage: 0,
          usage_daily: 0,
          usage_weekly: 0,
          usage_monthly: 0,
          byok_usage: 0,
          byok_usage_daily: 0,
          byok_usage_weekly: 0,
          byok_usage_monthly: 0,
          organization_id: expect.any(String),
          budgets: [ownLimit],
          effective_budget: ownLimit,
          allowed_data_regions: ['global'],
          free_model_daily_requests: { limit: 2_147_483_647, used: 0, remaining: 2_147_483_647 },
          is_free_tier: false,
          is_management_key: false,
          is_provisioning_key: false,
          rate_limit: { requests: -1, interval: '10s', note: expect.any(String) },
        },
      });
    }
    const own = await gateway.call('GET', '/key', undefined, manage);
    expect(await own.json()).toMatchObject({
      data: { is_management_key: true, is_provisioning_key: true, limit: null },
    });
  } finally {
    await gateway.stop();
  }
});

test('GET /key: the credits of the organization are the effective budget if they are the smallest', async () => {
  const gateway = await startGateway();
  try {
    const shown = async () => {
      const { data } = (await (await gateway.call('GET', '/key')).json()) as {
        data: { organization_id: string; budgets: object[]; effective_budget: object | null };
      };
      return data;
    };
    const { organization_id, effective_budget } = await shown();
    expect(effective_budget).toBeNull();
    const database = await openDatabase({ data_dir: gateway.data_dir });
    const grant = { organization_id, amount_nano: 2_000_000_000, reason: 'test', at: new Date().toISOString() };
    await creditStore(database.queries).grant(grant);
    await database.close();
    expect(await shown()).toMatchObject({
      budgets: [],
      effective_budget: {
        scope: 'organization',
        limit_usd: 2,
        remaining_usd: 2,
        reset_interval: null,
        resets_at: null,
      },
    });
  } finally {
    await gateway.stop();
  }
});

test('GET /key: 401 without a key and with a wrong one, 500 when the store fails', async () => {
  const gateway = await startGateway();
  try {
    expect((await fetch(`${gateway.base_url}/key`)).status).toBe(401);
    const wrong = { authorization: 'Bearer sk-gw-v1-0' };
    expect((await gateway.call('GET', '/key', undefined, wrong)).status).toBe(401);
    expect((await gateway.call('GET', '/key')).status).toBe(200);
    const database = await openDatabase({ data_dir: gateway.data_dir });
    await database.queries.schema.dropTable('usage_days').execute();
    await database.close();
    const broken = await gateway.call('GET', '/key');
    expect([broken.status, broken.headers.get('cache-control')]).toEqual([500, 'private, no-store']);
  } finally {
    await gateway.stop();
  }
});
