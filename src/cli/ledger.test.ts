import { expect, test } from 'vitest';
import { gatewayWithCommands, runProgram } from '../../test/command-line.ts';
import { spendingNode } from '../../test/ledger/spending.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { limits } from '../limits.ts';
import { openDatabase } from '../storage/database.ts';

describeStores('model-gateway ledger', ({ freshUrl }) => {
  async function setUp() {
    const { gateway, run, url } = await gatewayWithCommands({ freshUrl });
    const manage = (path: string) =>
      gateway.call('GET', path, undefined, { authorization: `Bearer ${gateway.management_key}` });
    return { gateway, run, manage, database: await openDatabase({ data_dir: gateway.data_dir, database_url: url }) };
  }

  test('verifies beside a running gateway, and exits with 1 if there is a difference', async () => {
    const { gateway, run, database } = await setUp();
    try {
      const body = { model: 'sandbox/echo', max_tokens: 20, messages: [{ role: 'user', content: 'hello there' }] };
      for (let n = 0; n < 3; n += 1) expect((await gateway.call('POST', '/chat/completions', body)).status).toBe(200);
      await expect
        .poll(async () => (await database.queries.selectFrom('ledger_generations').select('id').execute()).length)
        .toBe(3);
      expect(await run('ledger', 'verify')).toMatchObject({
        code: 0,
        stdout: '3 generations, 0 windows: no differences\n',
      });
      await database.queries.updateTable('usage_days').set({ usage_nano: 5_000 }).execute();
      expect(await run('ledger', 'verify')).toMatchObject({
        code: 1,
        stdout: expect.stringMatching(
          /^usage {2}key:[0-9a-f]{64} \S+ {2}expected 4200 {2}found 5000 {2}\(800\)\n3 generations, 0 windows: 1 differences\n$/,
        ),
      });
    } finally {
      await database.close();
      await gateway.stop();
    }
  });

  test('shows leases of nodes, and releases those of a lost node but not those of a live one', async () => {
    const { gateway, run, database, manage } = await setUp();
    try {
      const lost = {
        id: 'lost-node',
        epoch: 3,
        instance: 'i',
        batch: 7,
        seen_at: Date.now() - limits.node_lost_ms * 2,
        charges_leases: 1,
      };
      await database.queries.insertInto('ledger_nodes').values(lost).execute();
      const window = { budget_id: 'b', window_start: '' };
      const sums = { opening: 0, spent: 0, leased: 1_500_000_000, granted: 0, free: null };
      const unclaimed = { wanted: 0, wanted_by: '', wanted_at: 0, settled_elsewhere: 0, scarce: 0 };
      await database.queries
        .insertInto('ledger_windows')
        .values({ ...window, ...sums, ...unclaimed })
        .execute();
      await database.queries
        .insertInto('ledger_leases')
        .values({ node_id: lost.id, ...window, amount: 1_500_000_000, settled: 0 })
        .execute();
      const { stdout } = await run('ledger', 'status');
      expect(stdout).toMatch(/^\S+ {2}seen \d+ s ago {2}reserved \$0\.00 in 0 windows$/m);
      expect(stdout).toMatch(/^lost-node {2}seen 1\d\d s ago {2}reserved \$1\.50 in 1 windows {2}in doubt$/m);
      expect(stdout).toMatch(/\nReserved: \$1\.50, of which in doubt: \$1\.50\n$/);
      const live = stdout.split(' ', 1)[0] ?? '';
      expect(await run('ledger', 'release', live)).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/sent a sign of life/),
      });
      expect(await run('ledger', 'release', 'nobody')).toMatchObject({ code: 1, stderr: 'There is no node nobody.\n' });
      expect(await run('ledger', 'release', 'lost-node')).toMatchObject({
        code: 0,
        stdout: 'Released $1.50 in 1 windows\n',
      });
      expect((await run('ledger', 'status')).stdout).toMatch(/in doubt: \$0\.00\n$/);
      expect(await run('ledger', 'verify')).toMatchObject({ code: 0, stderr: '' });
      expect(await (await manage('/audit?resource_type=ledger_node')).json()).toMatchObject({
        data: [{ actor: 'command', resource_id: 'lost-node', before: { leased: 1.5 }, after: { leased: 0 } }],
      });
    } finally {
      await database.close();
      await gateway.stop();
    }
  });

  test('corrects the cost of a generation with an unknown outcome, once', async () => {
    const { gateway, run, database, manage } = await setUp();
    try {
      const settle = await spendingNode(database);
      const { organization_id } = await database.queries
        .selectFrom('api_keys')
        .select('organization_id')
        .where('hash', '=', gateway.key_hash)
        .executeTakeFirstOrThrow();
      const payer = { organization_id, key_hash: gateway.key_hash };
      await settle({ id: 'gen-unknown', ...payer, outcome: 'unknown', cost_nano: 2_000_000_000 });
      await settle({ id: 'gen-known', ...payer, cost_nano: 1_000_000_000 });
      expect(await run('ledger', 'resolve', 'gen-known', '1')).toMatchObject({
        code: 1,
        stderr: 'The cost of gen-known is known: $1.00.\n',
      });
      expect(await run('ledger', 'resolve', 'gen-nobody', '1')).toMatchObject({
        code: 1,
        stderr: 'The store has no generation gen-nobody.\n',
      });
      expect(await run('ledger', 'resolve', 'gen-unknown', '0.5', '--reason', 'their invoice')).toMatchObject({
        code: 0,
        stdout: 'gen-unknown: $2.00 -> $0.50 in 0 windows\n',
      });
      expect(await run('ledger', 'resolve', 'gen-unknown', '0.4')).toMatchObject({
        code: 1,
        stderr: 'gen-unknown is already resolved.\n',
      });
      expect((await run('ledger', 'verify')).stdout).toBe('2 generations, 0 windows: no differences\n');
      expect(await (await manage(`/keys/${gateway.key_hash}`)).json()).toMatchObject({ data: { usage: 1.5 } });
      expect(await (await manage('/audit?resource_type=generation')).json()).toMatchObject({
        data: [{ resource_id: 'gen-unknown', before: { cost: 2 }, after: { cost: 0.5, reason: 'their invoice' } }],
      });
    } finally {
      await database.close();
      await gateway.stop();
    }
  });

  test.each([
    [['ledger'], 2, /Usage: model-gateway ledger/],
    [['ledger', 'release'], 2, /Usage: model-gateway ledger/],
    [['ledger', 'resolve', 'g'], 2, /Usage: model-gateway ledger/],
    [['ledger', 'resolve', 'g', '-1'], 2, /There is no option -1/],
    [['ledger', 'resolve', 'g', '1e3'], 2, /USD must be an amount/],
    [['ledger', 'resolve', 'g', '9007200'], 2, /USD must be an amount/],
    [['credits'], 2, /Usage: model-gateway credits/],
    [['credits', 'grant', '5'], 2, /--reason must be/],
    [['credits', 'grant', '0', '--reason', 'r'], 2, /USD must be an amount/],
    [['credits', 'grant', 'five', '--reason', 'r'], 2, /USD must be an amount/],
  ])('%j is refused', async (args, code, message) => {
    expect(await runProgram(args)).toMatchObject({ code, stderr: expect.stringMatching(message) });
  });
});
