import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../../../test/harness.ts';
import { object } from '../../../test/readings/recordings.ts';
import { askOf, startStoring, streamed } from '../../../test/storing-gateway.ts';
import { openDatabase } from '../../storage/database.ts';

describe('getting a stored response', () => {
  let gateway: TestGateway;
  let nowMs = Date.parse('2026-01-01T00:00:00Z');
  const send = askOf(() => gateway);

  const start = (dataDir?: string) => startStoring({ nowMs: () => nowMs }, { data_dir: dataDir });
  const open = () => openDatabase({ data_dir: gateway.data_dir });
  beforeAll(async () => {
    gateway = await start();
  });
  afterAll(() => gateway.stop());

  const echo = { model: 'sandbox/echo', store: true };

  test('a whole answer is stored as it was sent, for its workspace only, until it is deleted', async () => {
    const { status, answer } = await send('POST', '/responses', { ...echo, input: 'Hello' });
    expect(status).toBe(200);
    expect(answer).toMatchObject({ status: 'completed', store: true });
    const path = `/responses/${answer['id']}`;
    expect(await send('GET', path)).toEqual({ status: 200, answer });
    const management = gateway.management_key;
    const made = await send(
      'POST',
      '/workspaces',
      { name: 'Other', slug: `o${randomBytes(4).toString('hex')}` },
      management,
    );
    const workspaceId = object(made.answer['data'])['id'];
    const { key } = (await send('POST', '/keys', { name: 'k', workspace_id: workspaceId }, management)).answer;
    for (const method of ['GET', 'DELETE']) {
      const refused = await send(method, path, undefined, String(key));
      expect([refused.status, object(refused.answer['error'])['code']]).toEqual([404, 404]);
    }
    const stranger = { ...echo, input: 'Go on', previous_response_id: answer['id'] };
    expect((await send('POST', '/responses', stranger, String(key))).status).toBe(400);
    const deleted = await send('DELETE', path);
    expect(deleted).toEqual({ status: 200, answer: { id: answer['id'], object: 'response.deleted', deleted: true } });
    expect((await send('GET', path)).status).toBe(404);
    expect((await send('DELETE', path)).status).toBe(404);
  });

  test('a stored response is sent whole: a request for its events is refused', async () => {
    const { answer } = await send('POST', '/responses', { ...echo, input: 'Hello' });
    const path = `/responses/${answer['id']}`;
    expect(await send('GET', `${path}?stream=true`)).toMatchObject({
      status: 400,
      answer: { error: { message: 'stream must be "false"', param: 'stream' } },
    });
    expect(await send('GET', `${path}?stream=false&include[]=reasoning.encrypted_content`)).toEqual({
      status: 200,
      answer,
    });
  });

  test('a streamed answer is stored before its last event is sent', async () => {
    const { response } = await streamed(gateway, { ...echo, input: 'Hello' });
    expect(response).toMatchObject({ status: 'completed', store: true });
    expect((await send('GET', `/responses/${response['id']}`)).answer).toEqual(response);
  });

  test('a stored response is sent whole: stream is refused, not ignored', async () => {
    const { answer } = await send('POST', '/responses', { ...echo, input: 'Hello' });
    const refused = await send('GET', `/responses/${answer['id']}?stream=true`);
    expect(refused.status).toBe(400);
    expect(refused.answer['error']).toMatchObject({ param: 'stream' });
    expect((await send('GET', `/responses/${answer['id']}?stream=false`)).answer).toEqual(answer);
  });

  test('a response is stored only if requested', async () => {
    const { answer } = await send('POST', '/responses', { model: 'sandbox/echo', input: 'Hello' });
    expect(answer['store']).toBe(false);
    expect((await send('GET', `/responses/${answer['id']}`)).status).toBe(404);
  });

  test('the database does not reveal it, and a row can be decrypted only in its own place', async () => {
    const word = `Secret${randomBytes(6).toString('hex')}`;
    const [one, two] = [
      (await send('POST', '/responses', { ...echo, input: word })).answer,
      (await send('POST', '/responses', { ...echo, input: 'Other' })).answer,
    ];
    const database = await open();
    try {
      const rows = await database.queries.selectFrom('stored_responses').selectAll().execute();
      expect(JSON.stringify(rows)).not.toContain(word);
      expect(JSON.stringify(rows)).not.toContain(Buffer.from(word).toString('base64').slice(0, 12));
      const sealed = rows.find(({ id }) => id === one['id'])!.sealed;
      await database.queries
        .updateTable('stored_responses')
        .set({ sealed })
        .where('id', '=', String(two['id']))
        .execute();
    } finally {
      await database.close();
    }
    expect((await send('GET', `/responses/${two['id']}`)).status).toBe(404);
    expect((await send('GET', `/responses/${one['id']}`)).status).toBe(200);
  });

  test('it is available after a restart, and not after its retention', async () => {
    const { answer } = await send('POST', '/responses', { ...echo, input: 'Hello' });
    const path = `/responses/${answer['id']}`;
    const again = await start(gateway.data_dir);
    try {
      const read = await again.call('GET', path);
      expect([read.status, await read.json()]).toEqual([200, answer]);
    } finally {
      await again.stop();
    }
    nowMs += 2 * 86_400_000;
    expect((await send('GET', path)).status).toBe(404);
    const next = await send('POST', '/responses', { ...echo, input: 'x', previous_response_id: answer['id'] });
    expect(next.status).toBe(400);
  });
});
