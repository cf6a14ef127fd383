import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../../../test/harness.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { object } from '../../../test/readings/recordings.ts';
import { askOf, startStoring, streamed } from '../../../test/storing-gateway.ts';
import { openDatabase } from '../../storage/database.ts';

describe('deleting stored responses', () => {
  let gateway: TestGateway;
  const send = askOf(() => gateway);

  const start = (dataDir?: string) => startStoring({ nowMs: Date.now }, { data_dir: dataDir });
  const open = () => openDatabase({ data_dir: gateway.data_dir });
  beforeAll(async () => {
    gateway = await start();
  });
  afterAll(() => gateway.stop());

  const echo = { model: 'sandbox/echo', store: true };

  test('it is deleted with its workspace', async () => {
    const management = gateway.management_key;
    const made = await send(
      'POST',
      '/workspaces',
      { name: 'Gone', slug: `g${randomBytes(4).toString('hex')}` },
      management,
    );
    const workspaceId = String(object(made.answer['data'])['id']);
    const { key, data } = (await send('POST', '/keys', { name: 'k', workspace_id: workspaceId }, management)).answer;
    expect((await send('POST', '/responses', { ...echo, input: 'x' }, String(key))).answer['store']).toBe(true);
    await send('DELETE', `/keys/${object(data)['hash']}`, undefined, management);
    expect((await send('DELETE', `/workspaces/${workspaceId}`, undefined, management)).status).toBe(200);
    const database = await open();
    try {
      const rows = await database.queries.selectFrom('stored_responses').select('workspace_id').execute();
      expect(rows.map((row) => row.workspace_id)).not.toContain(workspaceId);
    } finally {
      await database.close();
    }
  });
});

describeStores('a stored conversation', ({ freshUrl }) => {
  test('can be read, continued and deleted', async () => {
    const databaseUrl = await freshUrl();
    const gateway = await startStoring({ nowMs: Date.now }, { database_url: databaseUrl });
    try {
      const send = askOf(() => gateway);
      const body = { model: 'sandbox/echo', store: true, input: 'Hello' };
      const { answer } = await send('POST', '/responses', body);
      expect(answer['store']).toBe(true);
      const { response } = await streamed(gateway, { ...body, previous_response_id: answer['id'] });
      for (const odd of ['a%00b', '%F0%9F%98%80', 'x'.repeat(101)]) {
        for (const method of ['GET', 'DELETE']) {
          const { status } = await send(method, `/responses/${odd}`);
          expect(status).toBe(odd.length > 100 ? 400 : 404);
        }
      }
      const odd = await send('POST', '/responses', { ...body, previous_response_id: 'a\u0000\ud800' });
      expect(odd.status).toBe(400);
      for (const one of [answer, response]) {
        expect(await send('GET', `/responses/${one['id']}`)).toEqual({ status: 200, answer: one });
        expect((await send('DELETE', `/responses/${one['id']}`)).status).toBe(200);
        expect((await send('GET', `/responses/${one['id']}`)).status).toBe(404);
      }
    } finally {
      await gateway.stop();
    }
  });
});
