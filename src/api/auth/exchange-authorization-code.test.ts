import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { managementServer } from '../../../test/http/management-server.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { createSecret, hashSecret } from '../../accounts/key.ts';
import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { keyStore } from '../../storage/keys.ts';
import { createChange } from '../change.ts';
import { createAuthorizationCode } from './create-authorization-code.ts';
import { exchangeAuthorizationCode } from './exchange-authorization-code.ts';

const NOW = '2026-11-21T10:00:00.000Z';
const PATH = '/auth/keys';
const callbackUrl = 'https://app.example/callback';
// RFC 7636, appendix B.
const codeVerifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
const codeChallenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';
const S256 = { code_challenge: codeChallenge, code_challenge_method: 'S256' };
const WRONG = { status: 403, body: { error: { code: 403, message: 'Invalid code or code_verifier' } } };

describeStores('POST /auth/keys', ({ open }) => {
  async function setUp() {
    const database = await open();
    const made = await managementServer(database, NOW);
    let moment = Date.parse(NOW);
    const change = createChange({ database, changes: made.changes, now: () => moment });
    let budget = Number.POSITIVE_INFINITY;
    let codesByApiKey = true;
    const mayKeysMakeCodes = () => codesByApiKey;
    createAuthorizationCode(made.server, { change, mayKeysMakeCodes });
    exchangeAuthorizationCode(made.server, {
      queries: database.queries,
      change,
      mayKeysMakeCodes,
      limitExchanges: (_request, _reply, done) => {
        budget -= 1;
        done(budget < 0 ? new GatewayError(429, 'too many', { headers: { 'retry-after': '1' } }) : undefined);
      },
    });
    const issue = async (body: object = {}, credential = 'management') => {
      const answer = await made.call('POST', '/auth/keys/code', { callback_url: callbackUrl, ...body }, credential);
      expect(answer.status).toBe(200);
      return String((answer.body['data'] as unknown as { id: string }).id);
    };
    const exchange = (body: unknown) => made.call('POST', PATH, body, '');
    const keys = () => database.queries.selectFrom('api_keys').selectAll().execute();
    /** Stores a key and authenticates `ordinary` with it. */
    const storeAsker = async () => {
      const { secret, ...asker } = createSecret();
      made.principals.ordinary.key_hash = asker.hash;
      return keyStore(database.queries).insert({
        ...asker,
        organization_id: made.home.organization_id,
        workspace_id: made.home.default_workspace_id,
        creator_user_id: made.home.owner_user_id,
        name: 'leaked',
        is_management: false,
        disabled: false,
        limit_nano: null,
        limit_reset: null,
        include_byok_in_limit: false,
        expires_at: null,
        created_at: NOW,
        updated_at: null,
      });
    };
    return {
      ...made,
      storeAsker,
      database,
      issue,
      exchange,
      keys,
      pass: (ms: number) => {
        moment += ms;
      },
      switchOff: () => {
        codesByApiKey = false;
      },
      allow: (exchanges: number) => {
        budget = exchanges;
      },
    };
  }

  test('200: a code becomes a key of its user, with the requested settings', async () => {
    const { issue, exchange, keys, home } = await setUp();
    const code = await issue({
      ...S256,
      key_label: 'My app',
      limit: 2.5,
      usage_limit_type: 'monthly',
      expires_at: '2027-01-31T00:00:00Z',
    });
    const { status, body, headers } = await exchange({
      code,
      code_verifier: codeVerifier,
      code_challenge_method: 'S256',
    });
    expect(status).toBe(200);
    expect(body).toEqual({ key: expect.stringMatching(/^sk-gw-v1-[0-9a-f]{64}$/), user_id: home.owner_user_id });
    expect(headers['cache-control']).toBe('no-store');
    expect(await keys()).toMatchObject([
      {
        hash: hashSecret(String(body['key'])),
        name: 'My app',
        organization_id: home.organization_id,
        workspace_id: home.default_workspace_id,
        creator_user_id: home.owner_user_id,
        is_management: false,
        disabled: false,
        limit_nano: 2_500_000_000,
        limit_reset: 'monthly',
        expires_at: '2027-01-31T00:00:00.000Z',
      },
    ]);
  });

  test('200: a plain verifier, a code without a challenge, and no stated method', async () => {
    const { issue, exchange } = await setUp();
    const plain = await issue({ code_challenge: codeVerifier });
    expect((await exchange({ code: plain, code_verifier: codeVerifier, code_challenge_method: 'plain' })).status).toBe(
      200,
    );
    expect((await exchange({ code: await issue(S256), code_verifier: codeVerifier })).status).toBe(200);
    expect(
      (await exchange({ code: await issue(S256), code_verifier: codeVerifier, code_challenge_method: null })).status,
    ).toBe(200);
    expect((await exchange({ code: await issue() })).status).toBe(200);
    const nulls = { code_verifier: null, code_challenge_method: null };
    expect((await exchange({ code: await issue(), ...nulls })).status).toBe(200);
  });

  test('of a hundred concurrent exchanges of one code, one creates a key and ninety-nine are refused', async () => {
    const { issue, exchange, keys } = await setUp();
    const code = await issue(S256);
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => exchange({ code, code_verifier: codeVerifier })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(99).fill(403)]);
    expect(await keys()).toHaveLength(1);
  });

  test('403: a used code has the same message as an unknown one', async () => {
    const { issue, exchange, keys } = await setUp();
    const code = await issue();
    expect((await exchange({ code })).status).toBe(200);
    expect(await exchange({ code })).toMatchObject(WRONG);
    expect(await exchange({ code: 'never-made' })).toMatchObject(WRONG);
    expect(await keys()).toHaveLength(1);
  });

  test('403: four wrong verifiers leave a code valid, and five invalidate it', async () => {
    const { issue, exchange, keys } = await setUp();
    const wrong = { code_verifier: `${codeVerifier}x` };
    const spared = await issue(S256);
    for (let tries = 1; tries < 5; tries += 1) {
      expect(await exchange({ code: spared, ...wrong })).toMatchObject(WRONG);
    }
    expect((await exchange({ code: spared, code_verifier: codeVerifier })).status).toBe(200);
    const voided = await issue(S256);
    for (let tries = 1; tries <= 5; tries += 1) {
      expect(await exchange({ code: voided, ...wrong })).toMatchObject(WRONG);
    }
    expect(await exchange({ code: voided, code_verifier: codeVerifier })).toMatchObject(WRONG);
    expect(await keys()).toHaveLength(1);
  });

  test('concurrent wrong verifiers are counted one by one', async () => {
    const { issue, exchange, database } = await setUp();
    const code = await issue(S256);
    await Promise.all(Array.from({ length: 4 }, () => exchange({ code, code_verifier: 'wrong' })));
    const { failures } = await database.queries
      .selectFrom('authorization_codes')
      .select('failures')
      .executeTakeFirstOrThrow();
    expect(failures).toBe(4);
    await Promise.all(Array.from({ length: 10 }, () => exchange({ code, code_verifier: 'wrong' })));
    expect(await exchange({ code, code_verifier: codeVerifier })).toMatchObject(WRONG);
  });

  test('403: a code with a challenge requires its verifier, and a code without one refuses any', async () => {
    const { issue, exchange, keys } = await setUp();
    expect(await exchange({ code: await issue(S256) })).toMatchObject(WRONG);
    expect(await exchange({ code: await issue(), code_verifier: codeVerifier })).toMatchObject(WRONG);
    expect(await exchange({ code: await issue({ code_challenge: codeVerifier }), code_verifier: '' })).toMatchObject(
      WRONG,
    );
    expect(await keys()).toEqual([]);
  });

  test('403: the challenge itself is not a verifier of S256', async () => {
    const { issue, exchange } = await setUp();
    expect(await exchange({ code: await issue(S256), code_verifier: codeChallenge })).toMatchObject(WRONG);
  });

  test('403: a code expires after ten minutes, or with its key if that is earlier', async () => {
    const { issue, exchange, keys, pass } = await setUp();
    const expired = { status: 403, body: { error: { code: 403, message: 'Authorization code expired' } } };
    const code = await issue();
    const short = await issue({ expires_at: '2026-11-21T10:00:30Z' });
    pass(30_000);
    expect(await exchange({ code: short })).toMatchObject(expired);
    pass(limits.authorization_code_ms_max - 30_000);
    expect(await exchange({ code })).toMatchObject(expired);
    expect(await keys()).toEqual([]);
  });

  test('200: up to the last millisecond of the ten minutes', async () => {
    const { issue, exchange, pass } = await setUp();
    const code = await issue();
    pass(limits.authorization_code_ms_max - 1);
    expect((await exchange({ code })).status).toBe(200);
  });

  test('403: a user who left the organization gets no key', async () => {
    const { issue, exchange, database, home } = await setUp();
    const code = await issue();
    await database.queries.deleteFrom('organization_members').where('user_id', '=', home.owner_user_id).execute();
    expect(await exchange({ code })).toMatchObject(WRONG);
  });

  test.each([
    ['disabled', { disabled: true }],
    ['expired', { expires_at: NOW }],
    ['deleted', undefined],
  ])('403: a code is invalid after the key that requested it is %s', async (_how, values) => {
    const { issue, exchange, keys, database, storeAsker } = await setUp();
    const { queries } = database;
    const asker = await storeAsker();
    const [before, after] = [await issue({}, 'ordinary'), await issue({}, 'ordinary')];
    if (values === undefined) await queries.deleteFrom('api_keys').where('hash', '=', asker.hash).execute();
    else expect((await exchange({ code: before })).status).toBe(200);
    if (values !== undefined)
      await queries.updateTable('api_keys').set(values).where('hash', '=', asker.hash).execute();
    const made = await keys();
    expect(await exchange({ code: after })).toMatchObject(WRONG);
    expect(await keys()).toEqual(made);
  });

  test('an exchange waits for a concurrent revocation', async () => {
    const { issue, exchange, database, storeAsker } = await setUp();
    const { organization_id, hash } = await storeAsker();
    const code = await issue({}, 'ordinary');
    const exchanged = await database.queries.transaction().execute(async (tx) => {
      await keyStore(tx).update({ organization_id, hash }, { disabled: true, updated_at: NOW });
      // Not awaited: it ends after the revocation.
      const answer = exchange({ code });
      await sleep(300);
      return { answer };
    });
    expect(await exchanged.answer).toMatchObject(WRONG);
  });

  test('a code is invalid after its workspace is deleted', async () => {
    const { issue, exchange, database, home } = await setUp();
    const code = await issue({}, 'foreign');
    await database.queries.deleteFrom('workspaces').where('id', '!=', home.default_workspace_id).execute();
    expect(await exchange({ code })).toMatchObject(WRONG);
  });

  test.each([
    ['another method than the code’s', { code_challenge_method: 'plain', code_verifier: codeVerifier }],
    ['an unknown method', { code_challenge_method: 'S512', code_verifier: codeVerifier }],
  ])('400: %s, and the code stays valid', async (_reason, body) => {
    const { issue, exchange } = await setUp();
    const code = await issue(S256);
    expect(await exchange({ code, ...body })).toMatchObject({
      status: 400,
      body: { error: { code: 400, message: 'Invalid code_challenge_method' } },
    });
    expect((await exchange({ code, code_verifier: codeVerifier })).status).toBe(200);
  });

  test.each([
    ['no code', {}, /^code is required/],
    ['an empty code', { code: '' }, /^code must not be empty/],
    ['a code that is a number', { code: 5 }, /^code must be a string/],
    ['an unknown field', { code: 'a', verifier: 'b' }, /^verifier is not a known field/],
    ['a verifier that is too long', { code: 'a', code_verifier: 'b'.repeat(513) }, /^code_verifier .*512/],
    ['a body that is not an object', [], /body/],
    ['a body that is not JSON', '{', /JSON/],
  ])('400: %s', async (_reason, body, message) => {
    const { exchange } = await setUp();
    expect(await exchange(body)).toMatchObject({
      status: 400,
      body: { error: { code: 400, message: expect.stringMatching(message) } },
    });
  });

  test('413: the size of an unauthenticated body is limited to that of an exchange', async () => {
    const { issue, exchange } = await setUp();
    const code = await issue();
    const padded = (bytes: number) => `${JSON.stringify({ code })}${' '.repeat(bytes)}`;
    expect((await exchange(padded(limits.form_bytes_max))).status).toBe(413);
    expect((await exchange(padded(1_000))).status).toBe(200);
  });

  test('429: an address that sends too many requests; the code stays valid', async () => {
    const { issue, exchange, allow } = await setUp();
    const code = await issue();
    allow(1);
    expect((await exchange({ code: 'wrong' })).status).toBe(403);
    const answer = await exchange({ code });
    expect(answer.status).toBe(429);
    expect(answer.headers['retry-after']).toBe('1');
    allow(1);
    expect((await exchange({ code })).status).toBe(200);
  });

  test('500: a store failure', async () => {
    const { issue, exchange, database } = await setUp();
    const code = await issue();
    await database.queries.schema.alterTable('api_keys').renameTo('gone').execute();
    expect(await exchange({ code })).toMatchObject({
      status: 500,
      body: { error: { code: 500, message: 'Internal Server Error' } },
    });
  });

  test('the audit contains the exchange and the key, under the owner of the key', async () => {
    const { issue, exchange, database, home } = await setUp();
    const { body } = await exchange({ code: await issue(S256), code_verifier: codeVerifier });
    const hash = hashSecret(String(body['key']));
    const events = await database.queries.selectFrom('audit_events').selectAll().orderBy('seq').execute();
    const by = { actor: 'callback', actor_key_hash: null, actor_user_id: home.owner_user_id };
    expect(events.slice(1)).toMatchObject([
      { ...by, action: 'exchange', resource_type: 'authorization_code', state_before: { used_at: null } },
      { ...by, action: 'create', resource_type: 'api_key', resource_id: hash, state_before: null },
    ]);
    expect(events[1]?.state_after).toMatchObject({ used_at: NOW, key_hash: hash });
    expect(JSON.stringify(events)).not.toContain(String(body['key']).slice(12, -3));
  });

  test('409: an ordinary key has at most a thousand descendants, at the code and at the exchange', async () => {
    const { issue, exchange, call, storeAsker, database } = await setUp();
    const { queries } = database;
    const asker = await storeAsker();
    const code = await issue({}, 'ordinary');
    const rows = Array.from({ length: limits.key_descendants_max }, (_, index) => {
      return { ...asker, id: 100 + index, hash: `child ${index}`, parent_hash: asker.hash, made_by: 'key' };
    });
    for (const portion of [rows.slice(0, 500), rows.slice(500)]) {
      await queries.insertInto('api_keys').values(portion).execute();
      const ancestors = portion.map(({ hash }) => ({ key_hash: hash, ancestor_hash: asker.hash }));
      await queries.insertInto('api_key_ancestors').values(ancestors).execute();
    }
    expect((await exchange({ code })).status).toBe(409);
    expect((await call('POST', '/auth/keys/code', { callback_url: callbackUrl }, 'ordinary')).status).toBe(409);
    const { organization_id } = asker;
    await keyStore(queries).delete({ organization_id, keys: rows.slice(0, 1) });
    expect((await exchange({ code })).status).toBe(200);
  });

  test('409: a member gets at most a thousand keys by approvals, until one is deleted', async () => {
    const { issue, exchange, storeAsker, database } = await setUp();
    const { queries } = database;
    const code = await issue({});
    await queries.updateTable('authorization_codes').set({ made_by: 'session' }).execute();
    const first = await storeAsker();
    const rows = Array.from({ length: limits.member_keys_max }, (_, index) => {
      return { ...first, id: 100 + index, hash: `key ${index}`, made_by: 'session' };
    });
    for (const portion of [rows.slice(0, 500), rows.slice(500)]) {
      await queries.insertInto('api_keys').values(portion).execute();
    }
    expect(await exchange({ code })).toMatchObject({
      status: 409,
      body: { error: { message: expect.stringMatching(/delete keys/) } },
    });
    await keyStore(queries).delete({ organization_id: first.organization_id, keys: rows.slice(0, 1) });
    expect((await exchange({ code })).status).toBe(200);
  });

  test('403: a code made by an API key is refused once the operator forbids such codes', async () => {
    const { issue, exchange, switchOff } = await setUp();
    const code = await issue();
    switchOff();
    expect(await exchange({ code })).toMatchObject(WRONG);
  });
});
