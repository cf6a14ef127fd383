import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { type ConsoleClient, consoleClient } from '../../../test/http/console-client.ts';
import { openDatabase } from '../../storage/database.ts';

let gateway: TestGateway;
let admin: ConsoleClient;
let member: ConsoleClient;
beforeAll(async () => {
  gateway = await startGateway();
  admin = await consoleClient(gateway);
  member = await consoleClient(gateway, { email: 'member@example.com', role: 'member' });
});
afterAll(() => gateway.stop());

interface Answer {
  // biome-ignore lint/suspicious/noExplicitAny: the assertions check the shape.
  body: any;
  status: number;
}

async function manage(method: string, path: string, body?: object, key = gateway.management_key): Promise<Answer> {
  const answer = await fetch(`${gateway.base_url}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  return { status: answer.status, body: await answer.json() };
}

test.each([
  ['GET', '/setup'],
  ['GET', '/system'],
  ['GET', '/ledger/status'],
  ['POST', '/ledger/verify'],
])('%s %s is for management keys and administrators alone', async (method, path) => {
  expect((await manage(method, path)).status).toBe(200);
  expect((await admin.call(method, path)).status).toBe(200);
  expect((await member.call(method, path)).status).toBe(403);
  expect((await manage(method, path, undefined, gateway.key)).status).toBe(403);
  expect((await fetch(`${gateway.base_url}${path}`, { method })).status).toBe(401);
});

test('a step of the setup is done after it has happened', async () => {
  const steps = async () =>
    Object.fromEntries(
      (await manage('GET', '/setup')).body.data.steps.map(({ step, is_done }: { step: string; is_done: boolean }) => [
        step,
        is_done,
      ]),
    );
  expect(await steps()).toEqual({ provider: false, key: true, first_call: false, limit: false, console: true });
  await (
    await gateway.call('POST', '/chat/completions', {
      model: 'sandbox/echo',
      messages: [{ role: 'user', content: 'hello' }],
    })
  ).text();
  await manage('GET', '/activity');
  await manage('PATCH', `/keys/${gateway.key_hash}`, { limit: 5 });
  expect(await steps()).toMatchObject({ first_call: true, limit: true });
  const { is_demo, warnings } = (await manage('GET', '/setup')).body.data;
  expect(is_demo).toBe(false);
  expect(warnings.map(({ warning }: { warning: string }) => warning)).toEqual(['no_provider']);
});

test('the system shows its version, nodes, migrations and settings, and no secret', async () => {
  const { data } = (await manage('GET', '/system')).body;
  expect(data).toMatchObject({ version: '0.1.0', runtime: process.version, store: 'sqlite' });
  expect(data.nodes.map(({ id }: { id: string }) => id)).toEqual([data.node]);
  expect(data.migrations.at(-1).name).toBe('0001_foundation.sql');
  const management = data.settings.find(({ name }: { name: string }) => name === 'GATEWAY_MANAGEMENT_KEY');
  expect(management).toMatchObject({ value: 'set', source: 'environment', takes_effect: 'at the next start' });
  expect(JSON.stringify(data)).not.toContain(gateway.management_key);
  expect(JSON.stringify(data)).not.toContain(gateway.data_dir);
});

test('the status of the ledger has the sums of the command, and a verification finds no difference', async () => {
  const { data } = (await manage('GET', '/ledger/status')).body;
  expect(data).toMatchObject({ in_doubt: 0, booked: 0, estimated: 0, estimated_count: 0, generations: [], next: null });
  expect(data.held).toBe(data.nodes.reduce((sum: number, { held }: { held: number }) => sum + held, 0));
  const verified = (await manage('POST', '/ledger/verify')).body.data;
  expect(verified).toMatchObject({ generations: 1, differences: [] });
});

test('a generation of estimated cost is listed, and can be resolved once', async () => {
  const database = await openDatabase({ data_dir: gateway.data_dir });
  const { id } = await database.queries.selectFrom('ledger_generations').select('id').executeTakeFirstOrThrow();
  await database.queries.updateTable('ledger_generations').set({ estimated: 1000 }).where('id', '=', id).execute();
  const listed = (await manage('GET', '/ledger/status?limit=1')).body.data;
  expect(listed).toMatchObject({ estimated: 0.000_001, estimated_count: 1, next: null });
  expect(listed.generations).toMatchObject([{ id, model: 'sandbox/echo', estimated: 0.000_001 }]);
  const resolve = (generation: string, cost = 0.5) =>
    manage('POST', '/ledger/resolve', { generation_id: generation, cost });
  expect((await resolve('gen-none')).status).toBe(404);
  // Its record marks no part as an estimate.
  expect((await resolve(id)).status).toBe(409);
  expect((await resolve(id, -1)).status).toBe(400);
  await database.close();
});
