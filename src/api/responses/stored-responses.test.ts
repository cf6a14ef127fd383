import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../../test/harness.ts';
import { array, object } from '../../../test/readings/recordings.ts';
import { askOf, messageOf, startStoring, streamed } from '../../../test/storing-gateway.ts';
import { limits } from '../../limits.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { openDatabase } from '../../storage/database.ts';

describe('without stored responses', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.stop());

  test('storing a response, or continuing one, is a 400 with the setting that enables it', async () => {
    const send = askOf(() => gateway);
    for (const more of [{ store: true }, { previous_response_id: 'gen-1' }]) {
      const { status, answer } = await send('POST', '/responses', { model: 'sandbox/echo', input: 'x', ...more });
      expect(status).toBe(400);
      expect(messageOf(answer)).toContain(Object.keys(more)[0]);
      expect(messageOf(answer)).toContain('responses.store');
    }
    expect((await send('GET', '/responses/gen-1')).status).toBe(404);
    expect((await send('DELETE', '/responses/gen-1')).status).toBe(404);
  });
});

describe('stored responses', () => {
  let gateway: TestGateway;
  const send = askOf(() => gateway);

  const start = (dataDir?: string) => startStoring({ nowMs: Date.now }, { data_dir: dataDir });
  beforeAll(async () => {
    gateway = await start();
  });
  afterAll(() => gateway.stop());

  const echo = { model: 'sandbox/echo', store: true };
  const upstreamInput = async (body: object): Promise<string> => {
    const { events } = await streamed(gateway, { ...body, debug: { echo_upstream_body: true } });
    return JSON.stringify(events.find(({ type }) => type === 'response.debug')?.['debug']);
  };

  test('a conversation continues without its instructions, and each part of it is stored independently', async () => {
    const first = await send('POST', '/responses', { ...echo, input: 'One', instructions: 'Be brief' });
    const { response: second } = await streamed(gateway, {
      ...echo,
      input: [{ role: 'user', content: 'Two' }],
      previous_response_id: first.answer['id'],
    });
    expect(second['previous_response_id']).toBe(first.answer['id']);
    expect((await send('DELETE', `/responses/${first.answer['id']}`)).status).toBe(200);
    const sent = await upstreamInput({
      model: 'sandbox/echo',
      input: 'Three',
      instructions: 'Be kind',
      previous_response_id: second['id'],
    });
    const { messages } = object(JSON.parse(sent)['echo_upstream_body']);
    const texts = array(messages)
      .map(object)
      .map(({ role, content }) => `${role} ${JSON.stringify(content)}`);
    expect(texts[0]).toContain('Be kind');
    expect(sent).not.toContain('Be brief');
    expect(texts.slice(1).map((one) => one.split(' ')[0])).toEqual(['user', 'assistant', 'user', 'assistant', 'user']);
    for (const [at, text] of [
      [1, 'One'],
      [2, 'One'],
      [3, 'Two'],
      [4, 'Two'],
      [5, 'Three'],
    ] as const)
      expect(texts[at]).toContain(text);
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
    'reasoning that is %s is sent upstream unchanged: %s',
    async (shown, _wire, routed, unchanged) => {
      const reasoning = { effort: 'high', exclude: shown === 'hidden' };
      const body = { ...routed, input: 'Hello', store: true, reasoning };
      for (const { answer } of [
        await send('POST', '/responses', body),
        { answer: (await streamed(gateway, body)).response },
      ]) {
        const kinds = array(answer['output']).map((item) => object(item)['type']);
        expect(kinds, JSON.stringify(answer)).toEqual(shown === 'shown' ? ['reasoning', 'message'] : ['message']);
        expect((await send('GET', `/responses/${answer['id']}`)).answer).toEqual(answer);
        const next = { ...body, store: false, input: 'Go on', previous_response_id: answer['id'] };
        expect(await upstreamInput(next)).toMatch(unchanged);
      }
    },
  );

  test('the output of a tool call follows the stored call', async () => {
    const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
    const { answer } = await send('POST', '/responses', { ...echo, model: 'sandbox/tools', input: 'Look', tools });
    const call = array(answer['output'])
      .map(object)
      .find(({ type }) => type === 'function_call')!;
    const input = [{ type: 'function_call_output', call_id: call['call_id'], output: 'a cat' }];
    const next = { model: 'sandbox/tools', input, tools, previous_response_id: answer['id'] };
    const { status, answer: done } = await send('POST', '/responses', next);
    expect(status, JSON.stringify(done)).toBe(200);
    expect(JSON.stringify(done['output'])).toContain('a cat');
  });

  test('if the database refuses the row, the answer is sent and states that it is not stored', async () => {
    const other = await start();
    const database = await openDatabase({ data_dir: other.data_dir });
    try {
      await sql`ALTER TABLE stored_responses RENAME TO elsewhere`.execute(database.queries);
      const body = { ...echo, input: 'Hello' };
      const whole = (await (await other.call('POST', '/responses', body)).json()) as JsonObject;
      const { response } = await streamed(other, body);
      for (const answer of [whole, response]) {
        expect(answer).toMatchObject({ status: 'completed', store: false });
        expect(JSON.stringify(answer['output'])).toContain('Hello');
      }
      expect(other.log_lines.filter((line) => line.includes('could not be stored'))).toHaveLength(2);
    } finally {
      await database.close();
      await other.stop();
    }
  });

  test.each<[string, object]>([
    ['provider.zdr', { provider: { zdr: true } }],
    ['provider.data_collection', { provider: { data_collection: 'deny' } }],
  ])('under %s a stored response is a 400 that names store', async (named, more) => {
    const { status, answer } = await send('POST', '/responses', { ...echo, input: 'x', ...more });
    expect(status).toBe(400);
    expect(messageOf(answer)).toMatch(/^store /);
    expect(messageOf(answer)).toContain(named);
  });

  test('for a key whose guardrail enforces zero data retention, nothing is stored', async () => {
    const management = gateway.management_key;
    const { key, data } = (await send('POST', '/keys', { name: 'strict' }, management)).answer;
    const body = { ...echo, input: 'x' };
    expect((await send('POST', '/responses', body, String(key))).status).toBe(200);
    const made = await send('POST', '/guardrails', { name: 'zdr', enforce_zdr: true }, management);
    const { id } = object(made.answer['data']);
    const assigned = { key_hashes: [object(data)['hash']] };
    expect((await send('POST', `/guardrails/${id}/assignments/keys`, assigned, management)).status).toBeLessThan(300);
    const refused = await send('POST', '/responses', body, String(key));
    expect([refused.status, messageOf(refused.answer)]).toEqual([400, expect.stringMatching(/^store .*guardrail/)]);
    expect((await send('POST', '/responses', { ...body, store: false }, String(key))).status).toBe(200);
  });

  test('an unknown previous response is a 400 that names the field', async () => {
    const { status, answer } = await send('POST', '/responses', { ...echo, input: 'x', previous_response_id: 'gen-0' });
    expect([status, messageOf(answer)]).toEqual([400, expect.stringMatching(/^previous_response_id/)]);
  });

  test('a failed answer is not stored, and states that', async () => {
    const body = { ...echo, model: 'sandbox/fail-late', input: 'Hello' };
    const { response } = await streamed(gateway, body);
    expect(response).toMatchObject({ status: 'failed', store: false });
    expect((await send('GET', `/responses/${response['id']}`)).status).toBe(404);
  });

  test('an answer that is too long to store is sent, and states that it is not stored', async () => {
    const imageUrl = `data:image/png;base64,${'A'.repeat(limits.stored_response_chars_max)}`;
    const content = [{ type: 'input_image', image_url: imageUrl }];
    const body = { ...echo, model: 'sandbox/story', input: [{ role: 'user', content }] };
    const whole = await send('POST', '/responses', body);
    expect(whole.status, messageOf(whole.answer)).toBe(200);
    expect(whole.answer['store']).toBe(false);
    const { response } = await streamed(gateway, body);
    expect(response).toMatchObject({ status: 'completed', store: false });
    expect((await send('GET', `/responses/${response['id']}`)).status).toBe(404);
  });
});
