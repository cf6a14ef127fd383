import { afterEach, expect, test } from 'vitest';
import { authPagesServer } from '../../../test/http/auth-pages-server.ts';
import { type IssuerFaults, startOidcIssuer } from '../../../test/http/oidc-issuer.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { limits } from '../../limits.ts';
import { removeMember } from '../organization/remove-member.ts';
import type { AuthPagesDependencies } from './auth-pages.ts';

const NOW = '2026-11-21T10:00:00.000Z';
const SITE = 'https://gateway.example';
const CLIENT = { id: 'gateway', secret: 'client-secret +%:' };
const ADA = { sub: 'ada-1', name: 'Ada Lovelace', given_name: 'Ada', email: 'Ada@example.com', email_verified: true };

type Issuer = Awaited<ReturnType<typeof startOidcIssuer>>;
const started: Issuer[] = [];
afterEach(async () => {
  for (const issuer of started.splice(0)) await issuer.stop();
});

describeStores('signing in at an OpenID Connect issuer', ({ open }) => {
  async function setUp(
    rules: Partial<NonNullable<AuthPagesDependencies['issuer']>> = {},
    secret: string | undefined = CLIENT.secret,
  ) {
    const issuer = await startOidcIssuer({ id: CLIENT.id, secret });
    started.push(issuer);
    const made = await authPagesServer(await open(), NOW, {
      public_origin: SITE,
      issuer: {
        issuer: issuer.url,
        client_id: CLIENT.id,
        client_secret: secret,
        scopes: ['openid', 'profile', 'email'],
        provision: 'member',
        allowed_email_domains: undefined,
        ...rules,
      },
    });
    issuer.be(ADA);
    const visitor = made.browser();
    /** From the sign-in button to the gateway's response to the issuer's answer. */
    const signIn = async (who = visitor, returnTo?: string) => {
      const begun = await who.get(
        `/sign-in/issuer${returnTo === undefined ? '' : `?return_to=${encodeURIComponent(returnTo)}`}`,
      );
      if (begun.status !== 303) return begun;
      const back = issuer.visit(begun.location ?? '');
      return who.get(back.slice(SITE.length));
    };
    const isSignedIn = async (who = visitor) => (await who.get('/sign-in')).body.includes('You are signed in');
    const users = () => made.database.queries.selectFrom('users').selectAll().orderBy('created_at').execute();
    const newcomers = async () => (await users()).filter(({ subject }) => subject !== null);
    const members = () => made.database.queries.selectFrom('organization_members').selectAll().execute();
    return { ...made, issuer, visitor, signIn, isSignedIn, users, newcomers, members };
  }

  test('the sign-in link has state, nonce and PKCE, and their secrets are in a protected cookie', async () => {
    const { visitor, issuer } = await setUp();
    const page = await visitor.get('/sign-in?return_to=%2Fauth%3Fstate%3Da');
    expect(page.body).toContain(`Sign in with ${new URL(issuer.url).host}`);
    expect(page.body).toContain('href="sign-in/issuer?return_to=%2Fauth%3Fstate%3Da"');
    expect(issuer.requestedPaths).toEqual([]);
    const { status, location, headers } = await visitor.get('/sign-in/issuer?return_to=%2Fauth');
    expect(status).toBe(303);
    const url = new URL(location ?? '');
    expect(`${url.origin}${url.pathname}`).toBe(`${issuer.url}/authorize`);
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      response_type: 'code',
      client_id: CLIENT.id,
      redirect_uri: `${SITE}/sign-in/issuer/callback`,
      scope: 'openid profile email',
      code_challenge_method: 'S256',
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
    });
    expect(headers['set-cookie']).toMatch(
      /^__Host-gateway-sign-in=v1\.[\w.-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/,
    );
    for (const parameter of ['state', 'nonce']) {
      expect(String(headers['set-cookie'])).not.toContain(url.searchParams.get(parameter));
    }
  });

  test('a new person becomes a user with the configured role, once, with an audit entry', async () => {
    const { signIn, isSignedIn, newcomers, members, audit, home, visitor, browser } = await setUp();
    expect(await signIn(visitor, '/auth?state=a')).toMatchObject({ status: 303, location: '/auth?state=a' });
    expect(await isSignedIn()).toBe(true);
    expect((await visitor.get('/sign-in')).body).toContain('Ada Lovelace (Ada@example.com)');
    const [user] = await newcomers();
    expect(user).toMatchObject({ name: 'Ada Lovelace', email: 'Ada@example.com', first_name: 'Ada', subject: 'ada-1' });
    expect((await members()).find(({ user_id }) => user_id === user?.id)).toMatchObject({
      organization_id: home.organization_id,
      role: 'member',
    });
    expect(await audit()).toMatchObject([
      { action: 'create', resource_type: 'user', resource_id: user?.id, actor: 'page' },
      { action: 'sign-in', resource_type: 'session', actor_user_id: user?.id, state_after: { by: 'issuer' } },
    ]);
    expect((await signIn(browser())).status).toBe(303);
    expect(await newcomers()).toHaveLength(1);
  });

  test('a new person becomes an administrator if configured', async () => {
    const { signIn, newcomers, members } = await setUp({ provision: 'admin' });
    await signIn();
    const [user] = await newcomers();
    expect((await members()).find(({ user_id }) => user_id === user?.id)?.role).toBe('admin');
  });

  test('403: without provisioning no new user is created', async () => {
    const { signIn, isSignedIn, newcomers } = await setUp({ provision: 'none' });
    const shown = await signIn();
    expect(shown.status).toBe(403);
    expect(shown.body).toContain('You are not known here');
    expect(await isSignedIn()).toBe(false);
    expect(await newcomers()).toEqual([]);
  });

  test('a known user is found by a verified address in any case, and by the subject afterwards', async () => {
    const { signIn, isSignedIn, database, home, issuer, newcomers, audit, browser } = await setUp({
      provision: 'none',
    });
    await database.queries
      .updateTable('users')
      .set({ email: 'ADA@EXAMPLE.com' })
      .where('id', '=', home.owner_user_id)
      .execute();
    expect((await signIn()).status).toBe(303);
    expect(await isSignedIn()).toBe(true);
    expect(await newcomers()).toMatchObject([{ id: home.owner_user_id, subject: 'ada-1', issuer: issuer.url }]);
    expect((await audit())[0]).toMatchObject({
      action: 'update',
      resource_type: 'user',
      resource_id: home.owner_user_id,
    });
    issuer.be({ sub: 'ada-1', email: 'other@example.com', email_verified: false });
    expect((await signIn(browser())).status).toBe(303);
  });

  test.each([
    ['an unconfirmed address', { ...ADA, email_verified: false }],
    ['an address that is only claimed to be confirmed', { ...ADA, email_verified: 'true' }],
    ['an address without a confirmation', { sub: 'ada-1', email: ADA.email }],
  ])('%s identifies no user, and is not stored', async (_what, person) => {
    const { signIn, database, home, issuer, newcomers } = await setUp();
    await database.queries
      .updateTable('users')
      .set({ email: ADA.email })
      .where('id', '=', home.owner_user_id)
      .execute();
    issuer.be(person);
    expect((await signIn()).status).toBe(303);
    expect(await newcomers()).toMatchObject([{ subject: 'ada-1', email: null }]);
    expect((await newcomers())[0]?.id).not.toBe(home.owner_user_id);
  });

  // Unicode lower-cases the Kelvin sign to k.
  test.each([
    ['kate@example.com', '\u212Aate@example.com'],
    ['\u212Aate@example.com', 'kate@example.com'],
  ])('%s is not found by %s, which is equal only in lower case', async (email, confirmed) => {
    const { signIn, database, home, issuer, newcomers } = await setUp();
    await database.queries.updateTable('users').set({ email }).where('id', '=', home.owner_user_id).execute();
    issuer.be({ sub: 'kate-2', email: confirmed, email_verified: true });
    expect((await signIn()).status).toBe(303);
    expect((await newcomers())[0]?.id).not.toBe(home.owner_user_id);
  });

  test.each(['', 'a\u0000b', 'x'.repeat(10_000)])(
    '403: an empty subject, or one that cannot be stored',
    async (sub) => {
      const { signIn, issuer, newcomers } = await setUp();
      issuer.be({ sub, email: 'nobody@example.com', email_verified: true });
      expect((await signIn()).status).toBe(403);
      expect(await newcomers()).toEqual([]);
    },
  );

  test('403: an address of several users, in any case, and no new user is created', async () => {
    const { signIn, database, issuer, users } = await setUp();
    const base = { name: 'Ada', first_name: null, last_name: null, issuer: null, subject: null, created_at: NOW };
    for (const [id, email] of [
      ['ada-a', 'ADA@example.com'],
      ['ada-b', 'ada@EXAMPLE.com'],
    ] as const) {
      await database.queries
        .insertInto('users')
        .values({ ...base, id, email })
        .execute();
    }
    const before = (await users()).length;
    issuer.be({ ...ADA, sub: 'ada-9' });
    expect((await signIn()).status).toBe(403);
    expect(await users()).toHaveLength(before);
  });

  test('403: an address whose user has another identity at the issuer, and a user who left', async () => {
    const { signIn, database, home, issuer } = await setUp();
    await database.queries
      .updateTable('users')
      .set({ email: ADA.email, issuer: issuer.url, subject: 'somebody-else' })
      .where('id', '=', home.owner_user_id)
      .execute();
    const taken = await signIn();
    expect(taken.status).toBe(403);
    expect(taken.body).toContain('belongs to a member with another identity');
    await database.queries.deleteFrom('organization_members').where('user_id', '=', home.owner_user_id).execute();
    issuer.be({ sub: 'somebody-else' });
    const left = await signIn();
    expect(left.status).toBe(403);
    expect(left.body).toContain('no longer a member');
  });

  test.each([
    ['example.com', ADA, 303],
    ['example.com', { ...ADA, email: 'ada@sub.example.com' }, 403],
    ['example.com', { ...ADA, email: 'ada@evil-example.com' }, 403],
    ['example.com', { ...ADA, email: 'ada@example.com@evil.com' }, 403],
    ['example.com', { ...ADA, email_verified: false }, 403],
    ['example.com', { sub: 'ada-1' }, 403],
    ['example.com', { ...ADA, email: 'example.com' }, 403],
  ])('with addresses of %s alone, %j gets status %i', async (domain, person, status) => {
    const { signIn, issuer, newcomers } = await setUp({ allowed_email_domains: [domain] });
    issuer.be(person);
    expect((await signIn()).status).toBe(status);
    expect(await newcomers()).toHaveLength(status === 303 ? 1 : 0);
  });

  test('the address is fetched if the token does not contain it', async () => {
    const { signIn, issuer, newcomers } = await setUp();
    issuer.be({ sub: 'ada-1' }, { userinfo: { email: ADA.email, email_verified: true, name: 'Ada' } });
    expect((await signIn()).status).toBe(303);
    expect(await newcomers()).toMatchObject([{ email: ADA.email, name: 'Ada' }]);
  });

  test('an address is verified by the source that states it, not by a claim without an address', async () => {
    const { signIn, issuer, newcomers } = await setUp();
    issuer.be({ sub: 'ada-1', email_verified: true }, { userinfo: { email: ADA.email } });
    expect((await signIn()).status).toBe(303);
    expect(await newcomers()).toMatchObject([{ email: null, subject: 'ada-1' }]);
  });

  test('a concurrent first sign-in in several browsers creates one user', async () => {
    const { signIn, newcomers, browser } = await setUp();
    const answers = await Promise.all(Array.from({ length: 8 }, () => signIn(browser())));
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(303));
    expect(await newcomers()).toHaveLength(1);
  });

  test('names that are too long or cannot be stored are changed to valid ones', async () => {
    const { signIn, issuer, newcomers } = await setUp();
    issuer.be({ sub: 'ada-1', name: 'n'.repeat(5_000), given_name: 'a\u0000' });
    expect((await signIn()).status).toBe(303);
    expect(await newcomers()).toMatchObject([{ name: 'n'.repeat(limits.user_name_chars_max), first_name: null }]);
  });

  test.each<[string, string | undefined, IssuerFaults]>([
    ['in the header, without a stated method', CLIENT.secret, {}],
    ['in the header', CLIENT.secret, { methods: ['client_secret_basic'] }],
    ['in the form, if allowed', CLIENT.secret, { methods: ['client_secret_basic', 'client_secret_post'] }],
  ])('the client secret is sent as the issuer requires: %s', async (_how, secret, faults) => {
    const { signIn, issuer } = await setUp({}, secret);
    issuer.be(ADA, faults);
    expect((await signIn()).status).toBe(303);
  });

  test('a public client sends no secret', async () => {
    const issuer = await startOidcIssuer({ id: CLIENT.id, secret: undefined });
    started.push(issuer);
    const { browser } = await authPagesServer(await open(), NOW, {
      public_origin: SITE,
      issuer: {
        issuer: issuer.url,
        client_id: CLIENT.id,
        client_secret: undefined,
        scopes: ['openid'],
        provision: 'member',
        allowed_email_domains: undefined,
      },
    });
    const visitor = browser();
    const { location } = await visitor.get('/sign-in/issuer');
    expect((await visitor.get(issuer.visit(location ?? '').slice(SITE.length))).status).toBe(303);
  });

  const nowS = () => Math.floor(Date.now() / 1000);
  test.each<[string, IssuerFaults]>([
    ['a key that the issuer does not publish', { foreign_key: true }],
    ['another nonce', { claims: { nonce: 'other' } }],
    ['no nonce', { claims: { nonce: undefined } }],
    ['another issuer', { claims: { iss: 'https://evil.example' } }],
    ['another audience', { claims: { aud: 'other' } }],
    ['an expiry in the past', { claims: { exp: nowS() - 3600 } }],
    ['no subject', { claims: { sub: undefined } }],
    ['an unavailable key set', { broken: { path: '/keys', status: 500 } }],
    ['no answer to the code', { broken: { path: '/token', status: 500 } }],
    ['a redirect in place of the answer', { broken: { path: '/token', status: 302 } }],
    ['no userinfo', { broken: { path: '/userinfo', status: 500 }, claims: { email: undefined } }],
    ['no metadata', { broken: { path: '/.well-known/openid-configuration', status: 404 } }],
    ['userinfo of another person', { claims: { email: undefined }, userinfo: { sub: 'other' } }],
  ])('502: an identity with %s opens no session, and the page shows no internal reason', async (_what, faults) => {
    const { signIn, issuer, isSignedIn, newcomers } = await setUp();
    issuer.be(ADA, faults);
    const shown = await signIn();
    expect(shown.status).toBe(502);
    expect(shown.body).toContain('The sign-in service does not answer');
    expect(await isSignedIn()).toBe(false);
    expect(await newcomers()).toEqual([]);
  });

  test('502: an unreachable issuer, and the next sign-in tries again', async () => {
    const { signIn, issuer } = await setUp();
    issuer.be(ADA, { broken: { path: '/.well-known/openid-configuration', status: 503 } });
    expect((await signIn()).status).toBe(502);
    issuer.be(ADA);
    expect((await signIn()).status).toBe(303);
    expect((await signIn()).status).toBe(303);
    expect(issuer.requestedPaths.filter((path) => path.includes('well-known'))).toHaveLength(2);
  });

  test('403: the issuer refuses the person', async () => {
    const { signIn, issuer, isSignedIn } = await setUp();
    issuer.be(ADA, { refuses: true });
    expect((await signIn()).status).toBe(403);
    expect(await isSignedIn()).toBe(false);
  });

  test('400: an answer that this browser did not request, or a changed, repeated or late one', async () => {
    const { visitor, issuer, browser, pass, newcomers } = await setUp();
    const begin = async () => issuer.visit((await visitor.get('/sign-in/issuer')).location ?? '').slice(SITE.length);
    const back = await begin();
    expect((await browser().get(back)).status).toBe(400);
    const cookie = visitor.cookies.get('__Host-gateway-sign-in') ?? '';
    const forger = browser();
    forger.cookies.set('__Host-gateway-sign-in', `${cookie.slice(0, -4)}AAAA`);
    expect((await forger.get(back)).status).toBe(400);
    expect((await visitor.get(back.replace(/state=[^&]+/, 'state=other'))).status).toBe(400);
    expect((await visitor.get(back)).status).toBe(400);
    const late = await begin();
    pass(limits.issuer_sign_in_ms_max);
    visitor.cookies.set('__Host-gateway-sign-in', visitor.cookies.get('__Host-gateway-sign-in') ?? '');
    expect((await visitor.get(late)).status).toBe(400);
    expect(await newcomers()).toEqual([]);
    expect((await visitor.get(await begin())).status).toBe(303);
  });

  test('a sign-in does not redirect to another site', async () => {
    const { signIn, visitor } = await setUp();
    expect((await signIn(visitor, '//evil.example')).location).toBe('/sign-in');
  });

  test('a return path that is too long for a cookie is dropped', async () => {
    const { signIn, visitor } = await setUp();
    expect((await signIn(visitor, `/auth?state=${'a'.repeat(4_000)}`)).location).toBe('/sign-in');
  });

  test('429: an address has a bounded number of attempts a minute', async () => {
    const { visitor } = await setUp();
    for (let tries = 0; tries < limits.sign_ins_per_minute; tries += 1) await visitor.get('/sign-in/issuer/callback');
    expect((await visitor.get('/sign-in/issuer')).status).toBe(429);
  });

  test('without an issuer there is no link to one, and its sessions are invalid', async () => {
    const { signIn, visitor, database } = await setUp();
    await signIn();
    const without = await authPagesServer(database, NOW, { public_origin: SITE });
    const later = without.browser();
    for (const [name, value] of visitor.cookies) later.cookies.set(name, value);
    const page = await later.get('/sign-in');
    expect(page.body).not.toContain('You are signed in');
    expect(page.body).not.toContain('/sign-in/issuer');
    expect((await later.get('/sign-in/issuer')).status).toBe(404);
  });

  test('403: a removed user cannot sign in again, nor use an earlier session or approval', async () => {
    const { signIn, isSignedIn, visitor, change, home, members, users, newcomers, database } = await setUp();
    expect((await signIn()).status).toBe(303);
    const [ada] = await newcomers();
    const userId = ada?.id ?? '';
    const query = new URLSearchParams({ callback_url: 'https://app.example/cb' });
    const { hidden } = await visitor.get(`/auth?${query}`);
    const { organization_id } = home;
    const actor = { organization_id, actor: 'command', key_hash: null, user_id: null, request_id: null } as const;
    const remove = () => change(actor, (work) => removeMember(work, { user_id: userId, hand_keys_to: undefined }));
    // The approval is running: it read its session before the removal is committed.
    const [approved] = await Promise.all([visitor.post('/auth', { ...hidden, decision: 'approve' }), remove()]);
    expect([303, 403]).toContain(approved.status);
    expect(await database.queries.selectFrom('authorization_codes').selectAll().execute()).toEqual([]);
    expect(await isSignedIn()).toBe(false);
    expect((await visitor.post('/auth', { ...hidden, decision: 'approve' })).status).toBe(403);
    const known = await users();
    const again = await signIn();
    expect(again.status).toBe(403);
    expect(again.body).toContain('no longer a member');
    expect(await users()).toEqual(known);
    expect((await members()).map((member) => member.user_id)).not.toContain(userId);
  });
});
