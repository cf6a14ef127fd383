import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';

const yaml = (prompt: number) => `
providers:
  acme: { name: Acme AI, dialect: openai-chat, base_url: "http://127.0.0.1:9/v1", api_key: secret }
models:
  acme/fast: { endpoints: [{ provider: acme, upstream_model: m, pricing: { prompt: ${prompt}, completion: 2 } }] }
`;
const PRICES = '/models/acme/fast/endpoints/prices';

interface Answer {
  data: { tag: string; from: string; until: string | null; changed: string[] | null; pricing: { prompt: string } }[];
  next_cursor: string | null;
}

describeStores('prices over time', ({ freshUrl }) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'prices-test-'));
  let gateway: TestGateway;
  afterEach(async () => {
    await gateway.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const list = async (query = '') => (await (await gateway.call('GET', `${PRICES}${query}`)).json()) as Answer;

  test('a changed price is recorded at the next start, an equal one is not, and pages are complete', async () => {
    const url = await freshUrl();
    const environment = url === undefined ? {} : { DATABASE_URL: url };
    const start = async (prompt: number, count: number) => {
      gateway = await startGateway({ yaml: yaml(prompt), data_dir: dataDir, environment });
      await vi.waitFor(async () => expect((await list()).data).toHaveLength(count), { timeout: 100_000 });
    };
    await start(1, 1);
    await gateway.stop();
    await start(1, 1);
    await gateway.stop();
    await start(1.5, 2);
    const { data, next_cursor } = await list();
    expect(next_cursor).toBeNull();
    expect(data).toMatchObject([
      { tag: 'acme', provider_name: 'Acme AI', until: null, changed: ['prompt'], pricing: { prompt: '0.0000015' } },
      { tag: 'acme', until: data[0]?.from, changed: null, pricing: { prompt: '0.000001' }, service_tiers: {} },
    ]);
    const first = await list('?limit=1');
    expect(first.data).toEqual(data.slice(0, 1));
    const second = await list(`?limit=1&cursor=${first.next_cursor}`);
    expect(second).toEqual({ data: data.slice(1), next_cursor: null });
  });
});
