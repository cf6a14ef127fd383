import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { managementServer } from '../../../test/http/management-server.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { hashCode } from '../../accounts/authorization-code.ts';
import { limits } from '../../limits.ts';
import { AUTHORIZATION_CODE_KEEP_MS, authorizationCodeStore } from '../../storage/authorization-codes.ts';
import { createChange } from '../change.ts';
import { createAuthorizationCode } from './create-authorization-code.ts';

const NOW = '2026-11-21T10:00:00.000Z';
const PATH = '/auth/keys/code';
const callbackUrl = 'https://app.example/callback';
const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');
const codeChallenge = challengeOf('v');
const PLAIN = 'a'.repeat(43);
const codeOf = (body: Record<string, unknown>) => (body['data'] as { id: string }).id;

describeStores('POST /auth/keys/code', ({ open }) => {
  async function setUp() {
    const database = await open();
    const made = await managementServer(database, NOW);
    let moment = Date.parse(NOW);
    const change = createChange({ database, changes: made.changes, now: () => moment });
    createAuthorizationCode(made.server, { change, mayKeysMakeCodes: () => true });
    const pass = (ms: number) => {
      moment += ms;
    };
    const codes = () => database.queries.selectFrom('authorization_codes').selectAll().execute();
    return { ...made, database, codes, pass };
  }

  test('200: a callback alone is enough; the record follows the contract, and only the SHA-256 of the code is stored', async () => {
    const { call, codes, home } = await setUp();
    const { status, body, headers } = await call('POST', PATH, { callback_url: callbackUrl });
    expect(status).toBe(200);
    expect(body).toEqual({ data: { id: expect.stringMatching(/^[\w-]{43}$/), app_id: 1, created_at: NOW } });
    expect(headers['cache-control']).toBe('no-store');
    const id = codeOf(body);
    const stored = await codes();
    expect(stored).toEqual([
      {
        code_hash: hashCode(id),
        organization_id: home.organization_id,
        workspace_id: home.default_workspace_id,
        user_id: home.owner_user_id,
        asker_key_hash: null,
        asker_secret_hash: null,
        app_id: 1,
        callback_url: callbackUrl,
        code_challenge: null,
        code_challenge_method: null,
        key_label: 'app.example',
        limit_nano: null,
        limit_reset: null,
        key_expires_at: null,
        failures: 0,
        created_at: NOW,
        expires_at: '2026-11-21T10:10:00.000Z',
        used_at: null,
        made_by: 'key',
      },
    ]);
    expect(JSON.stringify(stored)).not.toContain(id);
  });

  test('200: every field is stored, and the limit to the nearest nano-USD', async () => {
    const { call, codes } = await setUp();
    const settings = {
      callback_url: 'https://app.example:3000/cb?tenant=a%20b',
      code_challenge: codeChallenge,
      code_challenge_method: 'S256',
      key_label: 'My app',
      limit: 0.1234567894,
      usage_limit_type: 'weekly',
      expires_at: '2027-01-31T00:00:00+00:00',
    };
    expect((await call('POST', PATH, settings)).status).toBe(200);
    expect(await codes()).toMatchObject([
      {
        callback_url: settings.callback_url,
        code_challenge: codeChallenge,
        code_challenge_method: 'S256',
        key_label: 'My app',
        limit_nano: 123_456_789,
        limit_reset: 'weekly',
        key_expires_at: '2027-01-31T00:00:00.000Z',
      },
    ]);
  });

  test('200: a challenge without a method is plain, a null expiry is none, and the port is in the default label', async () => {
    const { call, codes } = await setUp();
    const url = 'https://app.example:3000/';
    expect((await call('POST', PATH, { callback_url: url, code_challenge: PLAIN, expires_at: null })).status).toBe(200);
    expect(await codes()).toMatchObject([
      { code_challenge_method: 'plain', key_expires_at: null, key_label: 'app.example:3000' },
    ]);
  });

  test('200: an ordinary key creates codes for its own user and workspace, a management key for the default ones', async () => {
    const { call, codes, home, database, principals, addKey } = await setUp();
    const { queries } = database;
    const { hash: askerKeyHash } = await addKey();
    principals.ordinary.key_hash = askerKeyHash;
    const pattern = await queries
      .selectFrom('workspaces')
      .selectAll()
      .where('id', '=', home.default_workspace_id)
      .executeTakeFirstOrThrow();
    await queries.updateTable('workspaces').set({ is_default: false }).where('id', '=', pattern.id).execute();
    await queries
      .insertInto('workspaces')
      .values({ ...pattern, id: 'other', slug: 'other', is_default: true, io_logging_api_key_ids: null, seq: 77 })
      .execute();
    expect((await call('POST', PATH, { callback_url: callbackUrl }, 'ordinary')).status).toBe(200);
    const ofCaller = { user_id: home.owner_user_id, asker_key_hash: askerKeyHash };
    expect(await codes()).toMatchObject([{ ...ofCaller, workspace_id: home.default_workspace_id }]);
    await queries.deleteFrom('authorization_codes').execute();
    expect((await call('POST', PATH, { callback_url: callbackUrl })).status).toBe(200);
    expect(await codes()).toMatchObject([{ user_id: home.owner_user_id, workspace_id: 'other' }]);
  });

  test('200: one origin is one application of an organization, and other origins have numbers of their own', async () => {
    const { call } = await setUp();
    const appOf = async (url: string, credential?: string) =>
      ((await call('POST', PATH, { callback_url: url }, credential)).body['data'] as unknown as { app_id: number })
        .app_id;
    const first = await appOf('https://app.example/a');
    expect(await appOf('https://APP.example:443/b')).toBe(first);
    expect(await appOf('https://app.example:3000/a')).not.toBe(first);
    expect(await appOf('https://app.example/a', 'foreign')).not.toBe(first);
  });

  test('200: twenty concurrent codes for a new origin have one application', async () => {
    const { call, database } = await setUp();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => call('POST', PATH, { callback_url: callbackUrl })),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
    const ids = answers.map(({ body }) => (body['data'] as unknown as { app_id: number }).app_id);
    expect(new Set(ids).size).toBe(1);
    expect(await database.queries.selectFrom('apps').selectAll().execute()).toHaveLength(1);
  });

  test('applications without pending codes are deleted for new ones, and those with pending codes stay', async () => {
    const { call, database, home, codes } = await setUp();
    const { organization_id } = home;
    expect((await call('POST', PATH, { callback_url: callbackUrl })).status).toBe(200);
    const apps = Array.from({ length: limits.apps_max - 1 }, (_, index) => ({
      id: index + 2,
      organization_id,
      origin: `https://${index}.example`,
      created_at: NOW,
    }));
    for (let at = 0; at < apps.length; at += 1_000) {
      await database.queries
        .insertInto('apps')
        .values(apps.slice(at, at + 1_000))
        .execute();
    }
    await database.queries.updateTable('counters').set({ value: 20_000 }).where('name', '=', 'apps').execute();
    expect((await call('POST', PATH, { callback_url: 'https://new.example' })).status).toBe(200);
    const origins = () => database.queries.selectFrom('apps').select('origin').orderBy('id').execute();
    const left = (await origins()).map(({ origin }) => origin);
    expect(left).toHaveLength(limits.apps_max - limits.sweep_rows_max + 1);
    expect(left).toContain('https://app.example');
    expect(left).not.toContain('https://0.example');

    const [waiting] = await codes();
    await database.queries
      .deleteFrom('apps')
      .where('origin', 'not in', ['https://app.example', 'https://new.example'])
      .execute();
    // Expired, and still stored so that a late exchange is refused with the reason.
    const store = authorizationCodeStore(database.queries);
    await store.sweepApps({ organization_id, at: NOW });
    expect(await origins()).toHaveLength(2);
    await store.sweepApps({ organization_id, at: waiting?.expires_at ?? '' });
    expect(await origins()).toEqual([]);
    expect(await codes()).toMatchObject([{ app_id: null }, { app_id: null }]);
  });

  test('200: the audit names the creator and the application, but not the code', async () => {
    const { call, database, home } = await setUp();
    const { body } = await call('POST', PATH, { callback_url: `${callbackUrl}?secret=1`, limit: 2 });
    const [event, ...rest] = await database.queries.selectFrom('audit_events').selectAll().execute();
    expect(rest).toEqual([]);
    expect(event).toMatchObject({
      action: 'create',
      resource_type: 'authorization_code',
      actor: 'environment',
      actor_user_id: home.owner_user_id,
      state_before: null,
      state_after: { callback_origin: 'https://app.example', limit: 2, key_label: 'app.example' },
    });
    expect(JSON.stringify(event)).not.toContain(codeOf(body));
    expect(JSON.stringify(event)).not.toContain('secret=1');
  });

  test.each([
    ['no callback', {}, /^callback_url is required/],
    ['a callback that is not a URL', { callback_url: 'app.example' }, /^callback_url must be an absolute URL/],
    ['a callback by http', { callback_url: 'http://app.example/' }, /^callback_url must start with https/],
    ['a callback with another scheme', { callback_url: 'javascript:alert(1)' }, /^callback_url must start with https/],
    ['another port', { callback_url: 'https://app.example:8443/' }, /^callback_url must be on port 443 or 3000/],
    ['a user in the callback', { callback_url: 'https://a@app.example/' }, /^callback_url must not contain cred/],
    ['a password in the callback', { callback_url: 'https://a:b@app.example/' }, /^callback_url must not contain cred/],
    ['a fragment', { callback_url: 'https://app.example/#a' }, /^callback_url must not have a fragment/],
    ['an empty fragment', { callback_url: 'https://app.example/#' }, /^callback_url must not have a fragment/],
    ['white space', { callback_url: ' https://app.example/' }, /^callback_url must be an absolute URL/],
    ['a line break', { callback_url: 'https://app.exam\nple/' }, /^callback_url must be an absolute URL/],
    ['NUL', { callback_url: 'https://app.example/\u0000' }, /^callback_url must be an absolute URL/],
    [
      'a host with characters of a security policy',
      { callback_url: 'https://a;script-src/' },
      /^callback_url must name a host/,
    ],
    ['a host of asterisks', { callback_url: 'https://*.example/' }, /^callback_url must name a host/],
    ['a code in the callback', { callback_url: 'https://app.example/?code=1' }, /^callback_url must not have code/],
    [
      'an error in the callback',
      { callback_url: 'https://app.example/?a&error=1' },
      /^callback_url must not have error/,
    ],
    ['a long callback', { callback_url: `https://app.example/${'a'.repeat(2048)}` }, /^callback_url .*2048/],
    [
      'a method without a challenge',
      { callback_url: callbackUrl, code_challenge_method: 'S256' },
      /^code_challenge_method requires/,
    ],
    [
      'an unknown method',
      { callback_url: callbackUrl, code_challenge: codeChallenge, code_challenge_method: 'S512' },
      /^code_challenge_method /,
    ],
    [
      'a challenge that is not a SHA-256',
      { callback_url: callbackUrl, code_challenge: 'a', code_challenge_method: 'S256' },
      /^code_c/,
    ],
    [
      'a padded challenge',
      { callback_url: callbackUrl, code_challenge: `${codeChallenge}=`, code_challenge_method: 'S256' },
      /^code_challenge /,
    ],
    [
      'bits that a SHA-256 cannot have',
      { callback_url: callbackUrl, code_challenge: `${'a'.repeat(42)}B`, code_challenge_method: 'S256' },
      /^code_challenge /,
    ],
    [
      'a plain challenge of 42 characters',
      { callback_url: callbackUrl, code_challenge: 'a'.repeat(42) },
      /^code_challenge /,
    ],
    [
      'a plain challenge of 129 characters',
      { callback_url: callbackUrl, code_challenge: 'a'.repeat(129) },
      /^code_challenge /,
    ],
    [
      'a plain challenge with a space',
      { callback_url: callbackUrl, code_challenge: `${'a'.repeat(43)} ` },
      /^code_challenge /,
    ],
    ['an empty label', { callback_url: callbackUrl, key_label: '' }, /^key_label /],
    ['a label of 101 characters', { callback_url: callbackUrl, key_label: 'n'.repeat(101) }, /^key_label .*100/],
    ['a label with NUL', { callback_url: callbackUrl, key_label: 'a\u0000' }, /^key_label .*NUL/],
    ['a limit below zero', { callback_url: callbackUrl, limit: -0.01 }, /^limit /],
    ['null for a limit', { callback_url: callbackUrl, limit: null }, /^limit /],
    ['a limit above the exact range', { callback_url: callbackUrl, limit: 9_007_199.01 }, /^limit /],
    ['an unknown reset', { callback_url: callbackUrl, usage_limit_type: 'yearly' }, /^usage_limit_type .*daily/],
    [
      'an expiry in another zone',
      { callback_url: callbackUrl, expires_at: '2027-01-31T00:00:00+01:00' },
      /^expires_at .*UTC/,
    ],
    ['an expiry in the past', { callback_url: callbackUrl, expires_at: NOW }, /^expires_at .*future/],
    ['an unknown field', { callback_url: callbackUrl, limits: 1 }, /^limits is not a known field/],
    ['a body that is not an object', [], /body/],
  ])('400: %s', async (_reason, body, message) => {
    const { call, codes } = await setUp();
    expect(await call('POST', PATH, body)).toMatchObject({
      status: 400,
      body: { error: { code: 400, message: expect.stringMatching(message) } },
    });
    expect(await codes()).toEqual([]);
  });

  test.each([
    ['no credential', ''],
    ['a wrong credential', 'wrong'],
  ])('401: %s', async (_reason, credential) => {
    const { call } = await setUp();
    expect((await call('POST', PATH, { callback_url: callbackUrl }, credential)).status).toBe(401);
  });

  test('409: a code with the same challenge is pending, also for another application, but not another organization', async () => {
    const { call } = await setUp();
    const body = { callback_url: callbackUrl, code_challenge: codeChallenge, code_challenge_method: 'S256' };
    expect((await call('POST', PATH, body)).status).toBe(200);
    const second = await call('POST', PATH, { ...body, callback_url: 'https://other.example/' });
    expect(second).toMatchObject({ status: 409, body: { error: { code: 409, message: /code_challenge/ } } });
    expect((await call('POST', PATH, body, 'foreign')).status).toBe(200);
  });

  test('409: of twenty concurrent codes with one challenge, one is created', async () => {
    const { call, codes } = await setUp();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        call('POST', PATH, { callback_url: `https://app${n % 4}.example/`, code_challenge: PLAIN }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(409)]);
    expect(await codes()).toHaveLength(1);
  });

  test('a challenge may be reused when its code is expired, used or revoked', async () => {
    const { call, database, pass } = await setUp();
    const body = { callback_url: callbackUrl, code_challenge: PLAIN };
    const again = async () => (await call('POST', PATH, body)).status;
    const set = (values: object) => database.queries.updateTable('authorization_codes').set(values).execute();
    expect(await again()).toBe(200);
    pass(limits.authorization_code_ms_max - 1);
    expect(await again()).toBe(409);
    pass(1);
    expect(await again()).toBe(200);
    await set({ failures: 5 });
    expect(await again()).toBe(200);
    await set({ used_at: NOW });
    expect(await again()).toBe(200);
  });

  test('409: a user has a bounded number of pending codes, until they expire', async () => {
    const { call, database, codes, pass } = await setUp();
    await call('POST', PATH, { callback_url: callbackUrl });
    const [one] = await codes();
    if (!one) throw new Error('no code was stored');
    for (let n = 1; n < limits.authorization_codes_waiting_max; n += 100) {
      const count = Math.min(100, limits.authorization_codes_waiting_max - n);
      const rows = Array.from({ length: count }, (_, index) => ({ ...one, code_hash: `${n}-${index}` }));
      await database.queries.insertInto('authorization_codes').values(rows).execute();
    }
    expect((await call('POST', PATH, { callback_url: callbackUrl })).status).toBe(409);
    expect((await call('POST', PATH, { callback_url: callbackUrl }, 'foreign')).status).toBe(200);
    pass(limits.authorization_code_ms_max);
    expect((await call('POST', PATH, { callback_url: callbackUrl })).status).toBe(200);
  });

  test('old codes are deleted in portions, and recently expired ones are kept', async () => {
    const { call, codes, pass } = await setUp();
    await call('POST', PATH, { callback_url: callbackUrl });
    pass(limits.authorization_code_ms_max + AUTHORIZATION_CODE_KEEP_MS - 1);
    await call('POST', PATH, { callback_url: callbackUrl });
    expect(await codes()).toHaveLength(2);
    pass(1);
    await call('POST', PATH, { callback_url: callbackUrl });
    expect(await codes()).toHaveLength(2);
  });

  test('500: a store failure, without its reason', async () => {
    const { call, database } = await setUp();
    await database.queries.schema.dropTable('authorization_codes').execute();
    expect(await call('POST', PATH, { callback_url: callbackUrl })).toMatchObject({
      status: 500,
      body: { error: { code: 500, message: 'Internal Server Error' } },
    });
  });
});
