/** Nodes that start together on one new database. */
import { expect, test } from 'vitest';
import { describeStores } from '../ledger/store-variants.ts';
import { freshDir, serve, stop } from './gateway-process.ts';

const KEY = /sk-gw-v1-[0-9a-f]{64}/g;

describeStores('three gateways that start at once on one new store', ({ freshUrl }) => {
  test('create one management key and one default key in all, and one node shows both', {
    timeout: 180_000,
  }, async () => {
    const url = await freshUrl();
    const shared = freshDir();
    const nodes = await Promise.all(
      Array.from({ length: 3 }, () =>
        serve({
          data_dir: url === undefined ? shared : freshDir(),
          environment: { GATEWAY_MANAGEMENT_KEY: '', ...(url === undefined ? {} : { DATABASE_URL: url }) },
        }),
      ),
    );
    const shown = nodes.map((node) => new Set(node.out().match(KEY)));
    expect(shown.map(({ size }) => size).sort()).toEqual([0, 0, 2]);
    const managementKey = /Management key.*?(sk-gw-\S+)/.exec(nodes.map((node) => node.out()).join(''))?.[1] ?? '';
    for (const node of nodes) {
      const answer = await node.call('GET', '/keys', { key: managementKey });
      expect(((await answer.json()) as { data: unknown }).data).toMatchObject([{ name: 'default' }]);
    }
    for (const node of nodes) expect(await stop(node)).toBe(0);
  });
});
