import { expect, test } from 'vitest';
import { managementServer } from '../../../test/http/management-server.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { getSetup } from './get-setup.ts';
import { getSystem } from './get-system.ts';
import type { SystemFacts } from './system-facts.ts';

const NOW = '2026-11-21T10:00:00.000Z';
const facts: SystemFacts = {
  version: '1.2.3',
  runtime: 'v24.0.0',
  started_at: 1_790_000_000,
  settings: [],
  retention: {},
  providers: [{ name: 'Acme AI' }],
  models: [{ id: 'acme/old', expiration_date: '2026-11-25' }],
  host: '0.0.0.0',
  public_origin: undefined,
  has_own_secret: false,
};

describeStores('GET /setup and GET /system', ({ open }) => {
  test('warnings follow from settings and store, and other organizations cannot read /system', async () => {
    const database = await open();
    const { server, call, home, now } = await managementServer(database, NOW);
    const catalog = () => ({ models: () => [] }) as never;
    getSetup(server, { database, catalog, now, system: () => facts });
    const recorder = { state: () => ({ node: 'n' }) as never };
    getSystem(server, { database, recorder, home, now, system: () => facts });
    const setup = await call('GET', '/setup');
    const { steps, warnings } = setup.body['data'] as unknown as {
      steps: { step: string; is_done: boolean }[];
      warnings: { warning: string }[];
    };
    const expected = database.engine === 'postgres' ? ['no_tls', 'secret_per_node'] : ['no_tls'];
    expect(warnings.map(({ warning }) => warning)).toEqual([...expected, 'model_expires']);
    // The step of the console is not done: nobody has signed in.
    expect(steps.filter(({ is_done }) => is_done).map(({ step }) => step)).toEqual(['provider']);
    const system = await call('GET', '/system');
    expect(system).toMatchObject({ status: 200, body: { data: { version: '1.2.3', store: database.engine } } });
    expect((await call('GET', '/system', undefined, 'foreign')).status).toBe(403);
    expect((await call('GET', '/system', undefined, 'ordinary')).status).toBe(403);
    expect((await call('GET', '/setup', undefined, 'ordinary')).status).toBe(403);
  });
});
