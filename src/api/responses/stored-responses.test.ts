import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { array, object } from '../../../test/readings/recordings.ts';
import { describeStores } from '../../../test/store-variants.ts';
import { limits } from '../../limits.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { openDatabase } from '../../storage/database.ts';

type Ask = (
  method: string,
  path: string,
  body?: object,
  key?: string,
) => Promise<{ status: number; answer: JsonObject }>;

function askOf(gateway: () => TestGateway): Ask {
  return async (method, path, body, key = gateway().key) => {
    const response = await gateway().call(method, path, body, { authorization: `Bearer ${key}` });
    return { status: response.status, answer: (await response.json()) as JsonObject };
  };
}

const messageOf = (answer: JsonObject) => String(object(answer['error'])['message']);

/** The events of a stream, and the response that its last one tells. */
async function streamed(gateway: TestGateway, body: object) {
  const text = await (await gateway.call('POST', '/responses', { ...body, stream: true })).text();
  const events = text
    .split('\n\n')
    .flatMap((event) => /^data: (\{.*)$/m.exec(event)?.[1] ?? [])
    .map((json) => JSON.parse(json) as JsonObject);
  expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  return { events, response: object(events.at(-1)?.['response']) };
}

/** A gateway that stores responses for two days. */
function startStoring(
  clock: { now_ms: () => number },
  { data_dir, database_url }: { data_dir?: string | undefined; database_url?: string | undefined } = {},
): Promise<TestGateway> {
  return startGateway({
    yaml: JSON.stringify({ responses: { store: true, retention_days: 2 } }),
    clock: { ...clock, monotonic_ms: () => performance.now() },
    environment: {
      GATEWAY_SECRET: 'a-secret-of-the-test-long-enough-to-be-one',
      ...(database_url === undefined ? {} : { DATABASE_URL: database_url }),
    },
    ...(data_dir === undefined ? {} : { data_dir }),
  });
}

describe('where responses are not stored', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.stop());

  test('storing one, and going on from one, are 400s that say how it is turned on', async () => {
    const ask = askOf(() => gateway);
    for (const more of [{ store: true }, { previous_response_id: 'gen-1' }]) {
      const { status, answer } = await ask('POST', '/responses', { model: 'sandbox/echo', input: 'x', ...more });
      expect(status).toBe(400);
      expect(messageOf(answer)).toContain(Object.keys(more)[0]);
      expect(messageOf(answer)).toContain('responses.store');
    }
    expect((await ask('GET', '/responses/gen-1')).status).toBe(404);
    expect((await ask('DELETE', '/responses/gen-1')).status).toBe(404);
  });
});

describe('stored responses', () => {
  let gateway: TestGateway;
  let now_ms = Date.parse('2026-01-01T00:00:00Z');
  const ask = askOf(() => gateway);

  const start = (data_dir?: string) => startStoring({ now_ms: () => now_ms }, { data_dir });
  const open = () => openDatabase({ data_dir: gateway.data_dir });
  beforeAll(async () => {
    gateway = await start();
  });
  afterAll(() => gateway.stop());

  const echo = { model: 'sandbox/echo', store: true };
  const upstreamInput = async (body: object): Promise<string> => {
    const { events } = await streamed(gateway, { ...body, debug: { echo_upstream_body: true } });
    return JSON.stringify(events.find(({ type }) => type === 'response.debug')?.['debug']);
  };

  test('a whole answer is found as it was told, by its workspace alone, until it is deleted', async () => {
    const { status, answer } = await ask('POST', '/responses', { ...echo, input: 'Hello' });
    expect(status).toBe(200);
    expect(answer).toMatchObject({ status: 'completed', store: true });
    const path = `/responses/${answer['id']}`;
    expect(await ask('GET', path)).toEqual({ status: 200, answer });
    const management = gateway.management_key;
    const made = await ask(
      'POST',
      '/workspaces',
      { name: 'Other', slug: `o${randomBytes(4).toString('hex')}` },
      management,
    );
    const workspace_id = object(made.answer['data'])['id'];
    const { key } = (await ask('POST', '/keys', { name: 'k', workspace_id }, management)).answer;
    for (const method of ['GET', 'DELETE']) {
      const refused = await ask(method, path, undefined, String(key));
      expect([refused.status, object(refused.answer['error'])['code']]).toEqual([404, 404]);
    }
    const stranger = { ...echo, input: 'Go on', previous_response_id: answer['id'] };
    expect((await ask('POST', '/responses', stranger, String(key))).status).toBe(400);
    const deleted = await ask('DELETE', path);
    expect(deleted).toEqual({ status: 200, answer: { id: answer['id'], object: 'response.deleted', deleted: true } });
    expect((await ask('GET', path)).status).toBe(404);
    expect((await ask('DELETE', path)).status).toBe(404);
  });

  test('a streamed answer is stored when its last event is told', async () => {
    const { response } = await streamed(gateway, { ...echo, input: 'Hello' });
    expect(response).toMatchObject({ status: 'completed', store: true });
    expect((await ask('GET', `/responses/${response['id']}`)).answer).toEqual(response);
  });

  test('what is not asked for is not stored', async () => {
    const { answer } = await ask('POST', '/responses', { model: 'sandbox/echo', input: 'Hello' });
    expect(answer['store']).toBe(false);
    expect((await ask('GET', `/responses/${answer['id']}`)).status).toBe(404);
  });

  test('a conversation goes on, without its instructions, and each part of it stands alone', async () => {
    const first = await ask('POST', '/responses', { ...echo, input: 'One', instructions: 'Be brief' });
    const { response: second } = await streamed(gateway, {
      ...echo,
      input: [{ role: 'user', content: 'Two' }],
      previous_response_id: first.answer['id'],
    });
    expect(second['previous_response_id']).toBe(first.answer['id']);
    expect((await ask('DELETE', `/responses/${first.answer['id']}`)).status).toBe(200);
    const sent = await upstreamInput({
      model: 'sandbox/echo',
      input: 'Three',
      instructions: 'Be kind',
      previous_response_id: second['id'],
    });
    const { messages } = object(JSON.parse(sent)['echo_upstream_body']);
    const said = array(messages)
      .map(object)
      .map(({ role, content }) => `${role} ${JSON.stringify(content)}`);
    expect(said[0]).toContain('Be kind');
    expect(sent).not.toContain('Be brief');
    expect(said.slice(1).map((one) => one.split(' ')[0])).toEqual(['user', 'assistant', 'user', 'assistant', 'user']);
    for (const [at, text] of [
      [1, 'One'],
      [2, 'One'],
      [3, 'Two'],
      [4, 'Two'],
      [5, 'Three'],
    ] as const)
      expect(said[at]).toContain(text);
  });

  const wires: [string, object, RegExp][] = [
    [
      'messages',
      { model: 'sandbox/think', provider: { only: ['sandbox-anthropic'] } },
      /"type":"thinking","thinking":"[^"]+","signature":"[^"]+"/,
    ],
    ['responses', { model: 'sandbox/responses-think' }, /"encrypted_content":"[^"]+"/],
  ];
  test.each(wires.flatMap((wire) => [['shown', ...wire] as const, ['hidden', ...wire] as const]))(
    'reasoning that is %s goes back upstream as it came: %s',
    async (shown, _wire, routed, as_it_came) => {
      const reasoning = { effort: 'high', exclude: shown === 'hidden' };
      const body = { ...routed, input: 'Hello', store: true, reasoning };
      for (const { answer } of [
        await ask('POST', '/responses', body),
        { answer: (await streamed(gateway, body)).response },
      ]) {
        const kinds = array(answer['output']).map((item) => object(item)['type']);
        expect(kinds, JSON.stringify(answer)).toEqual(shown === 'shown' ? ['reasoning', 'message'] : ['message']);
        expect((await ask('GET', `/responses/${answer['id']}`)).answer).toEqual(answer);
        const next = { ...body, store: false, input: 'Go on', previous_response_id: answer['id'] };
        expect(await upstreamInput(next)).toMatch(as_it_came);
      }
    },
  );

  test('tools: the output of a call follows the call that was stored', async () => {
    const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
    const { answer } = await ask('POST', '/responses', { ...echo, model: 'sandbox/tools', input: 'Look', tools });
    const call = array(answer['output'])
      .map(object)
      .find(({ type }) => type === 'function_call')!;
    const input = [{ type: 'function_call_output', call_id: call['call_id'], output: 'a cat' }];
    const next = { model: 'sandbox/tools', input, tools, previous_response_id: answer['id'] };
    const { status, answer: done } = await ask('POST', '/responses', next);
    expect(status, JSON.stringify(done)).toBe(200);
    expect(JSON.stringify(done['output'])).toContain('a cat');
  });

  test.each<[string, object]>([
    ['provider.zdr', { provider: { zdr: true } }],
    ['provider.data_collection', { provider: { data_collection: 'deny' } }],
  ])('nothing is stored under %s: a 400 that names store', async (named, more) => {
    const { status, answer } = await ask('POST', '/responses', { ...echo, input: 'x', ...more });
    expect(status).toBe(400);
    expect(messageOf(answer)).toMatch(/^store /);
    expect(messageOf(answer)).toContain(named);
  });

  test('nothing is stored for a key whose guardrail enforces zero data retention', async () => {
    const management = gateway.management_key;
    const { key, data } = (await ask('POST', '/keys', { name: 'strict' }, management)).answer;
    const body = { ...echo, input: 'x' };
    expect((await ask('POST', '/responses', body, String(key))).status).toBe(200);
    const made = await ask('POST', '/guardrails', { name: 'zdr', enforce_zdr: true }, management);
    const { id } = object(made.answer['data']);
    const assigned = { key_hashes: [object(data)['hash']] };
    expect((await ask('POST', `/guardrails/${id}/assignments/keys`, assigned, management)).status).toBeLessThan(300);
    const refused = await ask('POST', '/responses', body, String(key));
    expect([refused.status, messageOf(refused.answer)]).toEqual([400, expect.stringMatching(/^store .*guardrail/)]);
    expect((await ask('POST', '/responses', { ...body, store: false }, String(key))).status).toBe(200);
  });

  test('an unknown response to go on from is a 400 that names the field', async () => {
    const { status, answer } = await ask('POST', '/responses', { ...echo, input: 'x', previous_response_id: 'gen-0' });
    expect([status, messageOf(answer)]).toEqual([400, expect.stringMatching(/^previous_response_id/)]);
  });

  test('a failed answer is not stored, and says so', async () => {
    const body = { ...echo, model: 'sandbox/fail-late', input: 'Hello' };
    const { response } = await streamed(gateway, body);
    expect(response).toMatchObject({ status: 'failed', store: false });
    expect((await ask('GET', `/responses/${response['id']}`)).status).toBe(404);
  });

  test('what is too long to store is answered, and says that it is not stored', async () => {
    const image_url = `data:image/png;base64,${'A'.repeat(limits.stored_response_chars_max)}`;
    const content = [{ type: 'input_image', image_url }];
    const body = { ...echo, model: 'sandbox/story', input: [{ role: 'user', content }] };
    const whole = await ask('POST', '/responses', body);
    expect(whole.status, messageOf(whole.answer)).toBe(200);
    expect(whole.answer['store']).toBe(false);
    const { response } = await streamed(gateway, body);
    expect(response).toMatchObject({ status: 'completed', store: false });
    expect((await ask('GET', `/responses/${response['id']}`)).status).toBe(404);
  });

  test('nothing of it can be read in the store, and a row opens in its own place alone', async () => {
    const word = `Secret${randomBytes(6).toString('hex')}`;
    const [one, two] = [
      (await ask('POST', '/responses', { ...echo, input: word })).answer,
      (await ask('POST', '/responses', { ...echo, input: 'Other' })).answer,
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
    expect((await ask('GET', `/responses/${two['id']}`)).status).toBe(404);
    expect((await ask('GET', `/responses/${one['id']}`)).status).toBe(200);
  });

  test('it goes with its workspace', async () => {
    const management = gateway.management_key;
    const made = await ask(
      'POST',
      '/workspaces',
      { name: 'Gone', slug: `g${randomBytes(4).toString('hex')}` },
      management,
    );
    const workspace_id = String(object(made.answer['data'])['id']);
    const { key, data } = (await ask('POST', '/keys', { name: 'k', workspace_id }, management)).answer;
    expect((await ask('POST', '/responses', { ...echo, input: 'x' }, String(key))).answer['store']).toBe(true);
    await ask('DELETE', `/keys/${object(data)['hash']}`, undefined, management);
    expect((await ask('DELETE', `/workspaces/${workspace_id}`, undefined, management)).status).toBe(200);
    const database = await open();
    try {
      const rows = await database.queries.selectFrom('stored_responses').select('workspace_id').execute();
      expect(rows.map((row) => row.workspace_id)).not.toContain(workspace_id);
    } finally {
      await database.close();
    }
  });

  test('a restart finds it; after the retention nothing does', async () => {
    const { answer } = await ask('POST', '/responses', { ...echo, input: 'Hello' });
    const path = `/responses/${answer['id']}`;
    const again = await start(gateway.data_dir);
    try {
      const read = await again.call('GET', path);
      expect([read.status, await read.json()]).toEqual([200, answer]);
    } finally {
      await again.stop();
    }
    now_ms += 2 * 86_400_000;
    expect((await ask('GET', path)).status).toBe(404);
    const next = await ask('POST', '/responses', { ...echo, input: 'x', previous_response_id: answer['id'] });
    expect(next.status).toBe(400);
  });
});

describeStores('a stored conversation', ({ freshUrl }) => {
  test('is found, goes on and is deleted', async () => {
    const database_url = await freshUrl();
    const gateway = await startStoring({ now_ms: Date.now }, { database_url });
    try {
      const ask = askOf(() => gateway);
      const body = { model: 'sandbox/echo', store: true, input: 'Hello' };
      const { answer } = await ask('POST', '/responses', body);
      expect(answer['store']).toBe(true);
      const { response } = await streamed(gateway, { ...body, previous_response_id: answer['id'] });
      for (const one of [answer, response]) {
        expect(await ask('GET', `/responses/${one['id']}`)).toEqual({ status: 200, answer: one });
        expect((await ask('DELETE', `/responses/${one['id']}`)).status).toBe(200);
        expect((await ask('GET', `/responses/${one['id']}`)).status).toBe(404);
      }
    } finally {
      await gateway.stop();
    }
  });
});
