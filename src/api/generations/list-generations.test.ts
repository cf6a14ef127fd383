import { expect, test } from 'vitest';
import { generation } from '../../../test/generation-fixture.ts';
import { managementServer } from '../../../test/http/management-server.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import type { GenerationRecord } from '../../ledger/records.ts';
import { toSettle } from '../../ledger/settle.ts';
import { generationLists } from '../../storage/generation-lists.ts';
import { generationSessions } from '../../storage/generation-sessions.ts';
import { generationStore } from '../../storage/generations.ts';
import { ledgerStore } from '../../storage/ledger.ts';
import { getGeneration } from '../chat/get-generation.ts';
import { listGenerationSessions } from './list-generation-sessions.ts';
import { listGenerations } from './list-generations.ts';

const NOW = '2026-11-21T12:00:00.000Z';
const HOSTILE = `=HYPERLINK("https://evil.example","x")`;

describeStores('GET /generations', ({ open, engine }) => {
  async function setUp() {
    const database = await open();
    const made = await managementServer(database, NOW);
    const lists = generationLists(database.queries);
    const recorder = { flush: async () => undefined };
    listGenerations(made.server, { generationLists: lists, recorder });
    listGenerationSessions(made.server, { generationSessions: generationSessions(database.queries), recorder });
    const records = generationStore(database.queries);
    getGeneration(made.server, {
      generations: { find: (id, { organization_id }) => records.findById({ organization_id, id }) },
    });
    const ledger = ledgerStore(database.queries, engine);
    const registered = await ledger.register({
      node: 'n',
      instance: 'i',
      epoch_seen: 0,
      known: { epoch: 0, batch: 0 },
      at: Date.parse(NOW),
    });
    let number = 0;
    const { organization_id } = made.home;
    const add = async (...all: (Partial<GenerationRecord> & { id: string })[]) => {
      number += 1;
      const settles = all.map((over) => toSettle(generation({ organization_id, ...over }), []));
      const batch = { node: 'n', epoch: registered?.epoch ?? 1, number, at: Date.parse(NOW), windows: [], divisor: 1 };
      expect((await ledger.settle({ ...batch, settles })).is).toBe('applied');
    };
    const ids = async (query: string, credential = 'management') => {
      const { body } = await made.call('GET', `/generations?${query}`, undefined, credential);
      return (body['data'] as unknown as { id: string }[])?.map(({ id }) => id).join('');
    };
    return { ...made, database, lists, add, ids };
  }
  const at = (minute: number) => `2026-11-21T10:${String(minute).padStart(2, '0')}:00.000Z`;
  const failed = (failure: string, endpointId = 'first') =>
    ({ ...generation({ id: 'x' }).attempts[0], status: 429, failure, cost_nano: 0, endpoint_id: endpointId }) as never;

  test('every filter selects exactly its generations, newest first', async () => {
    const { add, ids, call } = await setUp();
    const [ok] = generation({ id: 'x' }).attempts;
    const stage = { type: 'guardrail', name: 'email', guardrail_id: '5b0d', data: {} } as const;
    await add(
      {
        id: 'a',
        created_at: at(1),
        key_hash: 'k1',
        user_id: 'u1',
        workspace_id: 'w1',
        model: 'm/1',
        requested_model: 'latest',
      },
      {
        id: 'b',
        created_at: at(2),
        provider_name: 'Other',
        api_type: 'responses',
        user_id: null,
        session_id: 's1',
        title: null,
        http_referer: 'https://b.example',
      },
      {
        id: 'c',
        created_at: at(3),
        outcome: 'failed',
        finish_reason: 'error',
        attempts: [failed('rate_limited')],
        tags: ['night'],
      },
      {
        id: 'd',
        created_at: at(4),
        attempts: [failed('timeout', 'a%"|b/c'), { ...ok, endpoint_id: 'first' } as never],
        streamed: false,
        cost_nano: 5_000_000_000,
        tags: ['a', 'night'],
      },
      {
        id: 'e',
        created_at: at(5),
        latency: 9_000.4,
        external_user: 'alice',
        routing: { strategy: 'direct', total: 1, plan: [], pipeline: [stage] },
      },
    );
    const { body: sums } = await call('GET', '/generations?failed_endpoint=first&totals=true&fields=id');
    expect(sums['totals']).toMatchObject({ count: 1, is_complete: true });
    for (const [query, expected] of [
      ['', 'edcba'],
      ['order=asc', 'abcde'],
      [`from=${at(2)}&to=${at(4)}`, 'cb'],
      ['from=2026-11-22', ''],
      ['api_key_hash=k1', 'a'],
      ['user_id=u1', 'a'],
      ['workspace_id=w1', 'a'],
      ['model=m/1', 'a'],
      ['requested_model=latest', 'a'],
      ['provider=Other', 'b'],
      ['session_id=s1', 'b'],
      ['app=https://b.example', 'b'],
      ['app=Example App', 'edca'],
      ['outcome=failed', 'c'],
      ['outcome=completed', 'edba'],
      ['failure=timeout', 'd'],
      ['failure=rate_limited', 'c'],
      ['failure=%25', ''],
      ['fell_back=true', 'dc'],
      ['fell_back=true&outcome=completed', 'd'],
      ['fell_back=false', 'eba'],
      ['failed_endpoint=first', 'c'],
      [`failed_endpoint=${encodeURIComponent('a%"|b/c')}`, 'd'],
      ['failed_endpoint=%25', ''],
      ['failed_endpoint=first&fell_back=false', ''],
      ['guardrail=true', 'e'],
      ['guardrail=false', 'dcba'],
      ['finish_reason=error', 'c'],
      ['streamed=false', 'd'],
      ['min_cost=4.5', 'd'],
      ['min_latency=9000', 'e'],
      ['session_id=s1&model=m/1', ''],
      ['model=acme/fast-1&fell_back=true&streamed=false&min_cost=1', 'd'],
      ['model=%00', ''],
      ['tag=night', 'dc'],
      ['tag=nigh', ''],
      ['tag=%25', ''],
      ['tag=a&app=Example App', 'd'],
      ['external_user=alice', 'e'],
      ['external_user=bob%00', ''],
      ['guardrail_id=5b0d', 'e'],
      ['operation=responses', 'b'],
      ['operation=responses&outcome=completed', 'b'],
      ['error=true', 'c'],
      ['error=false', 'edba'],
      ['without=tag', 'eba'],
      ['without=tag,external_user', 'ba'],
      ['without=guardrail&model=m/1', 'a'],
      ['without=user', 'b'],
    ]) {
      expect([query, await ids(String(query))]).toEqual([query, expected]);
    }
  });

  test('400: without accepts known dimensions alone', async () => {
    const { call } = await setUp();
    const { status, body } = await call('GET', '/generations?without=tag,model');
    expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining('has no dimension model')]);
  });

  test('`other` lists exactly the calls whose application or tags are summed as other', async () => {
    const { add, ids, call } = await setUp();
    const many = Array.from({ length: 103 }, (_, index) => ({
      id: `${String(index).padStart(3, '0')} `,
      created_at: at(1),
      title: `app ${index}`,
      tags: [`tag ${index}`],
    }));
    await add(...many);
    for (const name of ['app', 'tag']) {
      expect(await ids(`${name}=other&order=asc`)).toBe('100 101 102 ');
      const { body } = await call('GET', `/generations?${name}=other&totals=true`);
      expect(body['totals']).toMatchObject({ count: 3, is_complete: true });
      expect(await ids(`${name}=${name} 101`)).toBe('101 ');
    }
  });

  test('pages by cursor neither repeat nor miss generations of the same time, and stay stable', async () => {
    const { add, call } = await setUp();
    await add(...['a', 'b', 'c', 'd', 'e'].map((id) => ({ id, created_at: at(1) })));
    const seen: string[] = [];
    let cursor = '';
    for (let page = 0; page < 3; page += 1) {
      const { body } = await call('GET', `/generations?limit=2&fields=id${cursor}`);
      seen.push(...(body['data'] as unknown as { id: string }[]).map(({ id }) => id));
      cursor = `&cursor=${body['next_cursor']}`;
      await add({ id: `z${page}`, created_at: at(2) });
    }
    expect(seen).toEqual(['e', 'd', 'c', 'b', 'a']);
    expect(cursor).toBe('&cursor=null');
  });

  test('a record has the requested fields in their form, and totals sum the filter, with corrections', async () => {
    const { add, call, database } = await setUp();
    await add({ id: 'a', created_at: at(1) }, { id: 'b', created_at: at(2) });
    await database.queries
      .insertInto('ledger_adjustments')
      .values({
        id: 'a:usage',
        generation_id: 'a',
        budget_id: 'u',
        window_start: '',
        amount: 331_000,
        reason: '',
        created_at: NOW,
      })
      .execute();
    const { body } = await call('GET', '/generations?fields=id,total_cost,tokens_per_second&totals=true&limit=1');
    expect(body).toEqual({
      data: [{ id: 'b', total_cost: 0.000669, tokens_per_second: 127.3 }],
      next_cursor: expect.any(String),
      totals: { count: 2, total_cost: 0.001669, is_complete: true },
    });
    const whole = (await call('GET', '/generations?limit=1')).body['data'] as unknown as Record<string, unknown>[];
    expect(whole[0]).toMatchObject({
      api_key_hash: 'a'.repeat(64),
      app: 'Example App',
      status: 200,
      failures: [],
      attempts: 1,
    });
  });

  test('CSV has the same rows; no cell is a formula, and quotes stay inside their cell', async () => {
    const { add, server } = await setUp();
    await add(
      { id: 'a', created_at: at(1), title: HOSTILE, cost_nano: 1 },
      { id: 'b', created_at: at(2), title: '@sum(1)\r\n-2', session_id: '+1', latency: null },
    );
    const url = '/generations?fields=id,app,session_id,total_cost,latency,failures&format=csv';
    const answer = await server.inject({ url, headers: { authorization: 'Bearer management' } });
    expect(answer.headers['content-type']).toBe('text/csv; charset=utf-8');
    expect(answer.body).toBe(
      'id,app,session_id,total_cost,latency,failures\r\n' +
        `b,"'@sum(1)\r\n-2",'+1,0.000669,,\r\n` +
        `a,"'=HYPERLINK(""https://evil.example"",""x"")",,0.000000001,412,\r\n`,
    );
    const accepted = await server.inject({
      url: '/generations?fields=id&limit=1',
      headers: { authorization: 'Bearer management', accept: 'text/csv' },
    });
    expect(accepted.body).toBe('id\r\nb\r\n');
  });

  test('another organization sees nothing, and a member sees its own calls alone, in lists, sessions and by id', async () => {
    const { add, ids, call, home, principals, sessionOf } = await setUp();
    await add(
      { id: 'own', created_at: at(1), user_id: home.owner_user_id, session_id: 's' },
      { id: 'not', created_at: at(2), user_id: 'u2', session_id: 's' },
    );
    expect(await ids('', 'foreign')).toBe('');
    principals['person'] = await sessionOf('member');
    expect(await ids('', 'person')).toBe('own');
    expect(await ids(`user_id=${home.owner_user_id}`, 'person')).toBe('own');
    expect((await call('GET', '/generations?user_id=u2', undefined, 'person')).status).toBe(403);
    expect((await call('GET', '/generations/sessions?user_id=u2', undefined, 'person')).status).toBe(403);
    expect((await call('GET', '/generations/sessions', undefined, 'person')).body['data']).toMatchObject([
      { session_id: 's', count: 1 },
    ]);
    expect((await call('GET', '/generation?id=not', undefined, 'person')).status).toBe(404);
    expect((await call('GET', '/generation?id=own', undefined, 'person')).body['data']).toMatchObject({
      user_id: home.owner_user_id,
    });
    principals['person'] = await sessionOf('admin');
    expect(await ids('', 'person')).toBe('notown');
  });

  test('sessions are listed latest first, with sums of all their calls, in pages by cursor', async () => {
    const { add, call } = await setUp();
    await add(
      { id: 'a', created_at: at(1), session_id: 's1', cost_nano: 1 },
      { id: 'b', created_at: at(2), session_id: 's2' },
      { id: 'c', created_at: at(3), session_id: 's1', cost_nano: 2, model: 'm/2', outcome: 'failed' },
      { id: 'd', created_at: at(4) },
    );
    const { body } = await call('GET', '/generations/sessions?limit=1');
    expect(body['data']).toEqual([
      {
        session_id: 's1',
        count: 2,
        failed: 1,
        first_at: at(1),
        last_at: at(3),
        total_cost: 3e-9,
        models: expect.arrayContaining(['m/2', 'acme/fast-1']),
      },
    ]);
    const next = (await call('GET', `/generations/sessions?limit=1&cursor=${body['next_cursor']}`)).body;
    expect(next['data']).toMatchObject([{ session_id: 's2', count: 1 }]);
    const end = (await call('GET', `/generations/sessions?limit=1&cursor=${next['next_cursor']}`)).body;
    expect(end).toEqual({ data: [], next_cursor: null });
    expect((await call('GET', `/generations/sessions?to=${at(3)}`)).body['data']).toMatchObject([{ session_id: 's2' }]);
  });

  test('rows of older versions are listed after they are filled from their records', async () => {
    const { add, ids, lists, database } = await setUp();
    await add({ id: 'a', session_id: `s${'x'.repeat(300)}\u0000` }, { id: 'b' });
    await database.queries
      .updateTable('ledger_generations')
      .set({ model: null, session_id: null, provider_name: null })
      .execute();
    await database.queries
      .updateTable('ledger_generations')
      .set({ record: JSON.stringify(generation({ id: 'b' })) })
      .where('id', '=', 'b')
      .execute();
    expect(await ids('model=acme/fast-1')).toBe('');
    expect(await lists.fill()).toBe(false);
    expect(await ids('model=acme/fast-1&provider=Acme AI')).toBe('ba');
    expect(await ids(`session_id=s${'x'.repeat(300)}`)).toBe('a');
  });

  test('400, 401, 403, 500', async () => {
    const { call, database } = await setUp();
    for (const query of [
      'limit=0',
      'limit=101',
      'cursor=x',
      'fields=none',
      'from=yesterday',
      'from=2026-11-22&to=2026-11-21',
      'outcome=none',
      'order=up',
    ]) {
      expect([query, (await call('GET', `/generations?${query}`)).status]).toEqual([query, 400]);
    }
    expect((await call('GET', '/generations/sessions?cursor=x')).status).toBe(400);
    expect((await call('GET', '/generations/sessions?from=2026-11-22&to=2026-11-21')).status).toBe(400);
    for (const path of ['/generations', '/generations/sessions']) {
      expect((await call('GET', path, undefined, '')).status).toBe(401);
      expect((await call('GET', path, undefined, 'ordinary')).status).toBe(403);
    }
    await database.queries.schema.dropTable('ledger_generations').execute();
    expect((await call('GET', '/generations')).status).toBe(500);
    expect((await call('GET', '/generations/sessions')).status).toBe(500);
  });
});
