import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { authPagesServer, ENVIRONMENT_KEY } from '../../../test/http/auth-pages-server.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { hashCode } from '../../accounts/authorization-code.ts';
import type { Queries } from '../../storage/database.ts';
import { identityStore } from '../../storage/identities.ts';
import { memberStore } from '../../storage/members.ts';
import { sessionStore } from '../../storage/sessions.ts';
import { exchangeAuthorizationCode } from './exchange-authorization-code.ts';

const NOW = '2026-11-21T10:00:00.000Z';
// RFC 7636, appendix B.
const codeVerifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
const PARAMETERS = {
  callback_url: 'https://app.example/cb?t=1',
  code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  code_challenge_method: 'S256',
  key_label: 'My app',
  state: 'st&te',
};
const consentUrl = (parameters: Record<string, string> = PARAMETERS) => `/auth?${new URLSearchParams(parameters)}`;
const HEADLESS = { code_challenge: PARAMETERS.code_challenge, code_challenge_method: 'S256' };

describeStores('the consent page', ({ open }) => {
  async function setUp() {
    const made = await authPagesServer(await open(), NOW);
    exchangeAuthorizationCode(made.server, {
      ...made,
      queries: made.database.queries,
      limitExchanges: (_request, _reply, done) => done(),
      mayKeysMakeCodes: () => false,
    });
    const browser = made.browser();
    const signIn = () => browser.post('/sign-in', { management_key: ENVIRONMENT_KEY });
    const codes = () => made.database.queries.selectFrom('authorization_codes').selectAll().execute();
    return { ...made, visitor: browser, signIn, codes };
  }

  test('leads a visitor without a session to the sign-in page, and back from there', async () => {
    const { visitor } = await setUp();
    const sent = await visitor.get(consentUrl());
    expect(sent.status).toBe(303);
    expect(sent.location).toMatch(/^\/sign-in\?return_to=/);
    const form = await visitor.get(sent.location ?? '');
    const back = await visitor.post('/sign-in', { ...form.hidden, management_key: ENVIRONMENT_KEY });
    expect(back.status).toBe(303);
    expect((await visitor.get(back.location ?? '')).body).toContain('app.example</bdi> asks for an API key');
  });

  test('shows the application, key name, workspace and user, with every text escaped', async () => {
    const { visitor, signIn } = await setUp();
    await signIn();
    const evil = '<script>alert("1")</script>';
    const { status, body, headers } = await visitor.get(consentUrl({ ...PARAMETERS, key_label: evil, state: evil }));
    expect(status).toBe(200);
    for (const shown of ['app.example', 'Default', 'Owner', '&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;']) {
      expect(body).toContain(`<bdi>${shown}</bdi>`);
    }
    expect(body).not.toContain('<script');
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'content-type': 'text/html; charset=utf-8',
    });
    expect(headers['content-security-policy']).toMatch(
      /^default-src 'none'; style-src 'sha256-[\w+/=]+'; form-action 'self' https:\/\/app\.example; frame-ancestors 'none'; base-uri 'none'$/,
    );
  });

  test('Approve sends the browser back with a code and the state, and the code becomes a key of the user', async () => {
    const { visitor, signIn, codes, call, home, audit } = await setUp();
    await signIn();
    const { hidden } = await visitor.get(consentUrl());
    const { status, location } = await visitor.post('/auth', { ...hidden, decision: 'approve' });
    expect(status).toBe(303);
    const [, code = ''] = /^https:\/\/app\.example\/cb\?t=1&code=([\w-]{43})&state=st%26te$/.exec(location ?? '') ?? [];
    expect(await codes()).toMatchObject([
      {
        code_hash: hashCode(code),
        callback_url: PARAMETERS.callback_url,
        code_challenge_method: 'S256',
        key_label: 'My app',
        user_id: home.owner_user_id,
        workspace_id: home.default_workspace_id,
        limit_nano: null,
      },
    ]);
    const exchanged = await call('POST', '/auth/keys', { code, code_verifier: codeVerifier }, '');
    expect(exchanged).toMatchObject({ status: 200, body: { user_id: home.owner_user_id } });
    const events = await audit();
    expect(events.find(({ resource_type }) => resource_type === 'authorization_code')).toMatchObject({
      action: 'create',
      actor: 'page',
      actor_user_id: home.owner_user_id,
    });
    expect(JSON.stringify(events)).not.toContain(code);
  });

  test('a code is invalid after the key of its session is deleted', async () => {
    const { visitor, codes, call, storeKey, database } = await setUp();
    const { secret, hash } = await storeKey();
    await visitor.post('/sign-in', { management_key: secret });
    const { hidden } = await visitor.get(consentUrl());
    const sent = await visitor.post('/auth', { ...hidden, decision: 'approve' });
    const code = new URL(sent.location ?? '').searchParams.get('code');
    expect(await codes()).toMatchObject([{ asker_key_hash: hash }]);
    await database.queries.deleteFrom('api_keys').where('hash', '=', hash).execute();
    expect((await call('POST', '/auth/keys', { code, code_verifier: codeVerifier }, '')).status).toBe(403);
  });

  test('Deny sends the browser back with an error and the state, and creates nothing', async () => {
    const { visitor, signIn, codes } = await setUp();
    await signIn();
    const { hidden } = await visitor.get(consentUrl());
    const { status, location } = await visitor.post('/auth', { ...hidden, decision: 'deny' });
    expect(status).toBe(303);
    expect(location).toBe('https://app.example/cb?t=1&error=access_denied&state=st%26te');
    expect(await codes()).toEqual([]);
  });

  test('without a callback the code is shown, and becomes a key', async () => {
    const { visitor, signIn, codes, call } = await setUp();
    await signIn();
    const { hidden, headers } = await visitor.get(consentUrl(HEADLESS));
    expect(headers['content-security-policy']).toContain("form-action 'self';");
    const { status, body, location } = await visitor.post('/auth', { ...hidden, decision: 'approve' });
    expect({ status, location }).toEqual({ status: 200, location: undefined });
    const [, code = ''] = /<code>([\w-]{43})<\/code>/.exec(body) ?? [];
    expect(await codes()).toMatchObject([{ code_hash: hashCode(code), app_id: null, callback_url: null }]);
    expect((await call('POST', '/auth/keys', { code, code_verifier: codeVerifier }, '')).status).toBe(200);
    const denied = await visitor.post('/auth', {
      ...(await visitor.get(consentUrl(HEADLESS))).hidden,
      decision: 'deny',
    });
    expect(denied).toMatchObject({ status: 200, location: undefined });
    expect(denied.body).toContain('Denied');
  });

  test.each([
    ['no callback and no challenge', {}, 'code_challenge'],
    [
      'a callback by http',
      { ...PARAMETERS, callback_url: 'http://app.example/' },
      'callback_url must start with https',
    ],
    ['a callback with the scheme javascript', { ...PARAMETERS, callback_url: 'javascript:alert(1)' }, 'callback_url'],
    [
      'a callback on another port',
      { ...PARAMETERS, callback_url: 'https://app.example:8443/' },
      'callback_url must be on port',
    ],
    [
      'a host with characters of a security policy',
      { ...PARAMETERS, callback_url: 'https://a;script-src/' },
      'callback_url must name',
    ],
    ['a callback with a code', { ...PARAMETERS, callback_url: 'https://app.example/?code=a' }, 'must not have code'],
    ['an invalid challenge', { ...PARAMETERS, code_challenge: 'short' }, 'code_challenge must'],
    ['an unknown method', { ...PARAMETERS, code_challenge_method: 'S512' }, 'code_challenge_method must'],
    [
      'a method alone',
      { callback_url: PARAMETERS.callback_url, code_challenge_method: 'S256' },
      'requires a code_challenge',
    ],
    ['a long label', { ...PARAMETERS, key_label: 'n'.repeat(101) }, 'key_label'],
    ['a label with NUL', { ...PARAMETERS, key_label: 'a\u0000' }, 'key_label'],
    ['a long state', { ...PARAMETERS, state: 's'.repeat(1025) }, 'state'],
    ['two states', { ...PARAMETERS, callback_url: 'https://app.example/?state=a' }, 'state occurs twice'],
  ])('an invalid request is a page with the reason, without a redirect: %s', async (_reason, parameters, message) => {
    const { visitor, signIn, codes } = await setUp();
    expect(await visitor.get(consentUrl(parameters))).toMatchObject({ status: 400, location: undefined });
    await signIn();
    const { hidden } = await visitor.get(consentUrl());
    const shown = await visitor.get(consentUrl(parameters));
    expect(shown).toMatchObject({ status: 400, location: undefined });
    expect(shown.headers['content-type']).toMatch(/^text\/html/);
    expect(shown.body).toContain(message);
    const form = { ...parameters, form_token: hidden['form_token'] ?? '' };
    for (const decision of ['approve', 'deny']) {
      expect(await visitor.post('/auth', { ...form, decision })).toMatchObject({ status: 400, location: undefined });
    }
    expect(await codes()).toEqual([]);
  });

  test('a repeated parameter is refused', async () => {
    const { visitor, signIn } = await setUp();
    await signIn();
    const twice = `${consentUrl()}&callback_url=https://evil.example/`;
    expect(await visitor.get(twice)).toMatchObject({ status: 400, location: undefined });
  });

  test('403: a form of another site, or without the token of its session', async () => {
    const { visitor, signIn, codes, browser } = await setUp();
    await signIn();
    const { hidden } = await visitor.get(consentUrl());
    const form = { ...hidden, decision: 'approve' };
    const { form_token: _, ...tokenless } = form as Record<string, string>;
    const stranger = browser();
    await stranger.post('/sign-in', { management_key: ENVIRONMENT_KEY });
    const refused = [
      await visitor.post('/auth', form, { origin: 'https://evil.example' }),
      await visitor.post('/auth', form, { origin: 'null' }),
      await visitor.post('/auth', form, { 'sec-fetch-site': 'cross-site' }),
      await visitor.post('/auth', tokenless),
      await visitor.post('/auth', { ...tokenless, decision: 'deny' }),
      await visitor.post('/auth', { ...form, form_token: 'a'.repeat(43) }),
      await stranger.post('/auth', form),
      await browser().post('/auth', form),
    ];
    expect(refused.map(({ status, location }) => [status, location])).toEqual(Array(8).fill([403, undefined]));
    expect(await codes()).toEqual([]);
    expect((await visitor.post('/auth', form)).status).toBe(303);
  });

  test('400: a form without a decision, and a body that is not a form', async () => {
    const { visitor, signIn, codes } = await setUp();
    await signIn();
    const { hidden } = await visitor.get(consentUrl());
    expect((await visitor.post('/auth', hidden)).status).toBe(400);
    expect((await visitor.post('/auth', JSON.stringify(hidden), { 'content-type': 'application/json' })).status).toBe(
      400,
    );
    expect(await codes()).toEqual([]);
  });

  test('409: a challenge with a pending code', async () => {
    const { visitor, signIn, codes } = await setUp();
    await signIn();
    const { hidden } = await visitor.get(consentUrl());
    await visitor.post('/auth', { ...hidden, decision: 'approve' });
    const second = await visitor.post('/auth', { ...hidden, decision: 'approve' });
    expect(second).toMatchObject({ status: 409, location: undefined });
    expect(await codes()).toHaveLength(1);
  });

  test('413: a form that is too large', async () => {
    const { visitor } = await setUp();
    expect((await visitor.post('/auth', { state: 's'.repeat(17_000) })).status).toBe(413);
  });

  test('500: a failing store is a page without the reason', async () => {
    const { visitor, signIn, database } = await setUp();
    await signIn();
    const { hidden } = await visitor.get(consentUrl());
    await database.queries.schema.dropTable('authorization_codes').execute();
    const shown = await visitor.post('/auth', { ...hidden, decision: 'approve' });
    expect(shown).toMatchObject({ status: 500, location: undefined });
    expect(shown.body).toContain('Something went wrong');
    expect(shown.body).not.toContain('authorization_codes');
  });

  test('another origin cannot read a page', async () => {
    const { visitor } = await setUp();
    const { headers } = await visitor.get('/sign-in', { origin: 'https://evil.example' });
    expect(headers).not.toHaveProperty('access-control-allow-origin');
  });

  test('403: an approval creates no code if its session or member is removed meanwhile', async () => {
    const { visitor, signIn, codes, change, home, database } = await setUp();
    const { organization_id, owner_user_id: userId } = home;
    const { queries } = database;
    const actor = { organization_id, actor: 'command', key_hash: null, user_id: null, request_id: null } as const;
    const names = { email: null, first_name: null, last_name: null, issuer: null, subject: null };
    const eve = { name: 'Eve', ...names };
    await queries
      .transaction()
      .execute((tx) => identityStore(tx).insertMember(eve, { organization_id, role: 'admin', at: NOW }));
    const ends: ((tx: Queries) => Promise<unknown>)[] = [
      (tx) => sessionStore(tx).deleteOf({ organization_id, user_id: userId }),
      (tx) => memberStore(tx).deleteFromOrganization({ organization_id, user_id: userId }),
    ];
    for (const end of ends) {
      await signIn();
      const { hidden } = await visitor.get(consentUrl());
      const approved = await change(actor, async ({ tx, audit }) => {
        await end(tx);
        await audit({ action: 'delete', resource_type: 'user', resource_id: userId, before: null, after: null });
        // Not awaited: it ends after this.
        const answer = visitor.post('/auth', { ...hidden, decision: 'approve' });
        await sleep(300);
        return { answer };
      });
      expect((await approved.answer).status).toBe(403);
      expect(await codes()).toEqual([]);
    }
  });
});
