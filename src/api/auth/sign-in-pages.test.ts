import { expect, test } from 'vitest';
import { authPagesServer, ENVIRONMENT_KEY } from '../../../test/http/auth-pages-server.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { hashToken } from '../../accounts/session.ts';
import { limits } from '../../limits.ts';
import { keyStore } from '../../storage/keys.ts';
import { rotateSecret } from '../keys/rotate-secret.ts';

const NOW = '2026-11-21T10:00:00.000Z';
const COOKIE = 'gateway-session';

describeStores('signing in with a key', ({ open }) => {
  async function setUp(options: Parameters<typeof authPagesServer>[2] = {}) {
    const made = await authPagesServer(await open(), NOW, options);
    const visitor = made.browser();
    const signIn = (managementKey = ENVIRONMENT_KEY, form: Record<string, string> = {}) =>
      visitor.post('/sign-in', { management_key: managementKey, ...form });
    const isSignedIn = async (who = visitor) => (await who.get('/sign-in')).body.includes('You are signed in');
    const sessions = () => made.database.queries.selectFrom('sessions').selectAll().execute();
    return { ...made, visitor, signIn, isSignedIn, sessions };
  }

  test('the environment’s key and a stored one open a session, whose secret is stored as SHA-256 only', async () => {
    const { signIn, isSignedIn, sessions, storeKey, visitor, home, audit } = await setUp();
    expect(await isSignedIn()).toBe(false);
    const answer = await signIn();
    expect(answer).toMatchObject({ status: 303, location: '/sign-in' });
    expect(answer.headers['set-cookie']).toMatch(
      /^gateway-session=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Lax$/,
    );
    expect(await isSignedIn()).toBe(true);
    const token = visitor.cookies.get(COOKIE) ?? '';
    const stored = await sessions();
    expect(stored).toMatchObject([{ token_hash: hashToken(token), user_id: home.owner_user_id }]);
    expect(JSON.stringify(stored)).not.toContain(token);
    const { secret, hash } = await storeKey();
    expect((await signIn(` ${secret} `)).status).toBe(303);
    expect(await isSignedIn()).toBe(true);
    const events = await audit();
    expect(events).toMatchObject([
      { action: 'sign-in', resource_type: 'session', actor: 'page', actor_key_hash: null },
      { action: 'sign-in', resource_type: 'session', actor: 'page', actor_key_hash: hash },
    ]);
    expect(JSON.stringify(events)).not.toContain(ENVIRONMENT_KEY);
  });

  test('with TLS the cookie is secure and bound to this host', async () => {
    const { signIn, visitor } = await setUp({ public_origin: 'https://gateway.example' });
    const { headers } = await signIn();
    expect(headers['set-cookie']).toMatch(
      /^__Host-gateway-session=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Lax; Secure$/,
    );
    expect((await visitor.get('/sign-in')).body).toContain('You are signed in');
  });

  test('headers of proxies and clients about their origin are not trusted', async () => {
    const { visitor } = await setUp();
    const forwarded = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'evil.example' };
    const { headers } = await visitor.post('/sign-in', { management_key: ENVIRONMENT_KEY }, forwarded);
    expect(headers['set-cookie']).not.toContain('Secure');
    const evil = { ...forwarded, origin: 'https://evil.example' };
    expect((await visitor.post('/sign-in', { management_key: ENVIRONMENT_KEY }, evil)).status).toBe(403);
  });

  test('401, 403, 400: a wrong, ordinary, ownerless or missing key shows the form again, without a cookie', async () => {
    const { signIn, storeKey, sessions } = await setUp();
    const ordinary = await storeKey({ is_management: false });
    const nobodys = await storeKey({ creator_user_id: null });
    const returnTo = '/auth?state=a';
    for (const [status, secret] of [
      [401, 'wrong'],
      [403, ordinary.secret],
      [403, nobodys.secret],
      [400, ''],
    ] as const) {
      const answer = await signIn(secret, { return_to: returnTo });
      expect(answer.status).toBe(status);
      expect(answer.body).toContain('role="alert"');
      expect(answer.hidden).toEqual({ return_to: returnTo });
      expect(answer.headers['set-cookie']).toBeUndefined();
      if (secret !== '') expect(answer.body).not.toContain(secret);
    }
    expect(await sessions()).toEqual([]);
  });

  test('403: a form of another site opens no session', async () => {
    const { visitor, sessions } = await setUp();
    const form = { management_key: ENVIRONMENT_KEY };
    expect((await visitor.post('/sign-in', form, { origin: 'https://evil.example' })).status).toBe(403);
    expect((await visitor.post('/sign-in', form, { origin: 'null' })).status).toBe(403);
    expect(await sessions()).toEqual([]);
  });

  test('429: an address has a bounded number of attempts a minute, including successful ones', async () => {
    const { signIn, pass } = await setUp();
    for (let tries = 0; tries < limits.sign_ins_per_minute; tries += 1)
      expect((await signIn('wrong')).status).toBe(401);
    const answer = await signIn();
    expect(answer.status).toBe(429);
    expect(answer.headers['retry-after']).toBe('2');
    expect(answer.body).toContain('attempts to sign in');
    pass(2_000);
    expect((await signIn()).status).toBe(303);
  });

  test.each(['//evil.example', '/\\evil.example', 'https://evil.example', 'javascript:alert(1)', '/\t/evil.example'])(
    'a sign-in does not redirect to %j',
    async (returnTo) => {
      const { signIn, visitor } = await setUp();
      expect((await signIn(ENVIRONMENT_KEY, { return_to: returnTo })).location).toBe('/sign-in');
      const shown = await visitor.get(`/sign-in?${new URLSearchParams({ return_to: returnTo })}`);
      expect(shown).toMatchObject({ status: 200, location: undefined });
    },
  );

  test('a signed-in user is redirected immediately', async () => {
    const { signIn, visitor } = await setUp();
    await signIn();
    const shown = await visitor.get(`/sign-in?${new URLSearchParams({ return_to: '/auth?state=a' })}`);
    expect(shown).toMatchObject({ status: 303, location: '/auth?state=a' });
  });

  test('signing in again ends the previous session', async () => {
    const { signIn, visitor, sessions, isSignedIn, browser } = await setUp();
    await signIn();
    const before = visitor.cookies.get(COOKIE) ?? '';
    await signIn();
    expect(visitor.cookies.get(COOKIE)).not.toBe(before);
    expect(await sessions()).toHaveLength(1);
    const thief = browser();
    thief.cookies.set(COOKIE, before);
    expect(await isSignedIn(thief)).toBe(false);
  });

  test('a session gets a new secret periodically, and the old one is valid for a short overlap', async () => {
    const { signIn, visitor, isSignedIn, browser, pass, sessions } = await setUp();
    await signIn();
    const [before] = await sessions();
    const old = browser();
    old.cookies.set(COOKIE, visitor.cookies.get(COOKIE) ?? '');
    pass(limits.session_rotation_ms - 1);
    await visitor.get('/sign-in');
    expect(visitor.cookies.get(COOKIE)).toBe(old.cookies.get(COOKIE));
    pass(1);
    const page = await visitor.get('/sign-in');
    expect(visitor.cookies.get(COOKIE)).not.toBe(old.cookies.get(COOKIE));
    expect(page.headers['set-cookie']).toContain(
      `Max-Age=${(limits.session_ms_max - limits.session_rotation_ms) / 1000}`,
    );
    expect(await sessions()).toMatchObject([{ id: before?.id, expires_at: before?.expires_at }]);
    pass(limits.session_overlap_ms);
    expect(await isSignedIn(old)).toBe(true);
    expect(old.cookies.get(COOKIE)).not.toBe(visitor.cookies.get(COOKIE));
    pass(1);
    expect(await isSignedIn(old)).toBe(false);
    expect(await isSignedIn()).toBe(true);
  });

  test('of two concurrent tabs one gets the new secret, which opens the session; a form gets none', async () => {
    const { signIn, visitor, isSignedIn, browser, pass } = await setUp();
    await signIn();
    const { hidden } = await visitor.get('/sign-in');
    pass(limits.session_rotation_ms);
    const form = await visitor.post('/auth', { ...hidden, code_challenge: 'c'.repeat(43), decision: 'deny' });
    expect([form.status, form.headers['set-cookie']]).toEqual([200, undefined]);
    const old = visitor.cookies.get(COOKIE) ?? '';
    const tabs = Array.from({ length: 8 }, () => {
      const tab = browser();
      tab.cookies.set(COOKIE, old);
      return tab;
    });
    for (const signedIn of await Promise.all(tabs.map((tab) => isSignedIn(tab)))) expect(signedIn).toBe(true);
    const renewed = tabs.filter(({ cookies }) => cookies.get(COOKIE) !== old);
    expect(renewed).toHaveLength(1);
    expect(await isSignedIn(renewed[0])).toBe(true);
  });

  test('a session ends after its maximum duration, however much it is used', async () => {
    const { signIn, isSignedIn, pass } = await setUp();
    await signIn();
    for (let ms = 0; ms < limits.session_ms_max - limits.session_rotation_ms; ms += limits.session_rotation_ms) {
      pass(limits.session_rotation_ms);
      expect(await isSignedIn()).toBe(true);
    }
    pass(limits.session_rotation_ms);
    expect(await isSignedIn()).toBe(false);
  });

  test.each([
    ['disabled', { disabled: true }],
    ['no longer a management key', { is_management: false }],
    ['expired', { expires_at: NOW }],
  ])('a session ends immediately when its key is %s', async (_how, values) => {
    const { signIn, isSignedIn, storeKey, database } = await setUp();
    const { secret, hash } = await storeKey();
    await signIn(secret);
    expect(await isSignedIn()).toBe(true);
    await database.queries.updateTable('api_keys').set(values).where('hash', '=', hash).execute();
    expect(await isSignedIn()).toBe(false);
  });

  test('a session ends immediately when its key is deleted', async () => {
    const { signIn, isSignedIn, storeKey, database } = await setUp();
    const { secret, hash } = await storeKey();
    await signIn(secret);
    await database.queries.deleteFrom('api_keys').where('hash', '=', hash).execute();
    expect(await isSignedIn()).toBe(false);
  });

  test('a session of the environment’s key ends when the environment has another key', async () => {
    const database = await open();
    const visitor = (await authPagesServer(database, NOW)).browser();
    await visitor.post('/sign-in', { management_key: ENVIRONMENT_KEY });
    expect(JSON.stringify(await database.queries.selectFrom('sessions').selectAll().execute())).not.toContain(
      ENVIRONMENT_KEY,
    );
    const shownBy = async (options: Parameters<typeof authPagesServer>[2]) => {
      const later = (await authPagesServer(database, NOW, options)).browser();
      for (const [name, value] of visitor.cookies) later.cookies.set(name, value);
      return (await later.get('/sign-in')).body;
    };
    expect(await shownBy({})).toContain('You are signed in');
    expect(await shownBy({ management_key: `another-${ENVIRONMENT_KEY}` })).not.toContain('You are signed in');
  });

  test('a session ends when its user leaves the organization for another one', async () => {
    const { signIn, isSignedIn, database, home, foreign } = await setUp();
    await signIn();
    const { organization_id } = foreign;
    const members = database.queries.updateTable('organization_members');
    await members.set({ organization_id }).where('user_id', '=', home.owner_user_id).execute();
    expect(await isSignedIn()).toBe(false);
  });

  test('a session ends when its user leaves the organization, and cannot be opened afterwards', async () => {
    const { signIn, isSignedIn, database, home } = await setUp();
    await signIn();
    await database.queries.deleteFrom('organization_members').where('user_id', '=', home.owner_user_id).execute();
    expect(await isSignedIn()).toBe(false);
    expect((await signIn()).status).toBe(403);
  });

  test('signing out deletes the session and the cookie, and requires the token of the page', async () => {
    const { signIn, visitor, sessions, isSignedIn, audit } = await setUp();
    await signIn();
    expect((await visitor.post('/sign-out', {})).status).toBe(403);
    expect((await visitor.post('/sign-out', {}, { origin: 'https://evil.example' })).status).toBe(403);
    expect(await isSignedIn()).toBe(true);
    const { hidden } = await visitor.get('/sign-in');
    expect(await visitor.post('/sign-out', hidden)).toMatchObject({ status: 303, location: '/sign-in' });
    expect(visitor.cookies.size).toBe(0);
    expect(await sessions()).toEqual([]);
    expect((await audit()).map(({ action }) => action)).toEqual(['sign-in', 'sign-out']);
    expect(await visitor.post('/sign-out', hidden)).toMatchObject({ status: 303, location: '/sign-in' });
  });

  test('a session ends on a node on which its key is revoked', async () => {
    const { signIn, isSignedIn, storeKey, revoked } = await setUp();
    const { secret, hash } = await storeKey();
    await signIn(secret);
    expect(await isSignedIn()).toBe(true);
    revoked.add(hash);
    expect(await isSignedIn()).toBe(false);
  });

  test('a session ends with the secret that opened it: at once, or when the grace of a rotation ends', async () => {
    const { storeKey, signIn, isSignedIn, change, home, pass } = await setUp();
    const { secret, hash } = await storeKey();
    const { organization_id } = home;
    const actor = { organization_id, actor: 'command', key_hash: null, user_id: null, request_id: null } as const;
    const rotate = (graceSeconds: number) =>
      change(actor, async (work) => {
        const key = await keyStore(work.tx).lock({ organization_id, hash });
        if (key === undefined) throw new Error('no key');
        return rotateSecret(work, key, { grace_seconds: graceSeconds, keep: undefined });
      });
    expect((await signIn(secret)).status).toBe(303);
    const next = await rotate(60);
    expect(await isSignedIn()).toBe(true);
    pass(60_000);
    expect(await isSignedIn()).toBe(false);
    expect((await signIn(secret)).status).not.toBe(303);
    expect((await signIn(next.secret)).status).toBe(303);
    expect(await isSignedIn()).toBe(true);
    await rotate(0);
    expect(await isSignedIn()).toBe(false);
  });

  test('signing out also ends a session whose key is disabled; enabling the key does not restore it', async () => {
    const { signIn, visitor, sessions, isSignedIn, storeKey, database, audit } = await setUp();
    const { secret, hash } = await storeKey();
    await signIn(secret);
    const { hidden } = await visitor.get('/sign-in');
    const [cookie] = [...visitor.cookies];
    const setDisabled = (disabled: boolean) =>
      database.queries.updateTable('api_keys').set({ disabled }).where('hash', '=', hash).execute();
    await setDisabled(true);
    expect((await visitor.post('/sign-out', hidden)).status).toBe(303);
    expect(visitor.cookies.size).toBe(0);
    expect(await sessions()).toEqual([]);
    expect((await audit()).map(({ action }) => action)).toEqual(['sign-in', 'sign-out']);
    await setDisabled(false);
    if (cookie) visitor.cookies.set(...cookie);
    expect(await isSignedIn()).toBe(false);
  });

  test('expired sessions are deleted, and above the bound of a user the oldest are', async () => {
    const { signIn, sessions, database, home, pass } = await setUp();
    await signIn();
    const [one] = await sessions();
    if (!one) throw new Error('no session was stored');
    const others = Array.from({ length: limits.sessions_per_user_max }, (_, n) => ({
      ...one,
      id: `other-${n}`,
      token_hash: `${n}`,
      created_at: new Date(Date.parse(NOW) + n + 1).toISOString(),
    }));
    await database.queries.insertInto('sessions').values(others).execute();
    pass(1_000);
    await signIn();
    const left = await sessions();
    expect(left).toHaveLength(limits.sessions_per_user_max);
    expect(left.map(({ id }) => id)).not.toContain('other-0');
    expect(left.every(({ user_id }) => user_id === home.owner_user_id)).toBe(true);
    pass(limits.session_ms_max);
    await signIn();
    expect(await sessions()).toHaveLength(1);
  });

  test('foreign, repeated or wrong cookies open no session', async () => {
    const { signIn, visitor, browser, isSignedIn } = await setUp();
    await signIn();
    const token = visitor.cookies.get(COOKIE) ?? '';
    for (const cookie of [
      `${COOKIE}=${'a'.repeat(43)}`,
      `${COOKIE}=${token}; ${COOKIE}=${token}`,
      `${COOKIE}=`,
      '=;;=',
    ]) {
      expect((await browser().get('/sign-in', { cookie })).body).not.toContain('You are signed in');
    }
    expect(await isSignedIn()).toBe(true);
  });

  test('500: a store failure is a page without its reason', async () => {
    const { signIn, database } = await setUp();
    await database.queries.schema.dropTable('sessions').execute();
    const shown = await signIn();
    expect(shown.status).toBe(500);
    expect(shown.body).not.toContain('sessions');
  });
});
