import { expect, test } from 'vitest';
import { authPagesServer, ENVIRONMENT_KEY } from '../../../test/http/auth-pages-server.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';

const NOW = '2026-11-21T10:00:00.000Z';

describeStores('DELETE /session', ({ open }) => {
  async function setUp() {
    const made = await authPagesServer(await open(), NOW);
    const visitor = made.browser();
    await visitor.post('/sign-in', { management_key: ENVIRONMENT_KEY });
    const session = async () =>
      (await visitor.api('GET', '/api/v1/session')).body['data'] as unknown as { form_token: string };
    return { ...made, visitor, session };
  }

  test('200: signs out here or everywhere, and deletes the cookie', async () => {
    const { visitor, session, browser } = await setUp();
    const other = browser();
    await other.post('/sign-in', { management_key: ENVIRONMENT_KEY });
    const { form_token: token } = await session();
    const ended = await visitor.api('DELETE', '/api/v1/session?everywhere=true', { token });
    expect(ended).toMatchObject({ status: 200, body: { deleted: true } });
    expect(ended.headers['set-cookie']).toMatch(/^gateway-session=; Path=\/; Max-Age=0/);
    expect((await visitor.api('GET', '/api/v1/session')).status).toBe(401);
    expect((await other.api('GET', '/api/v1/session')).status).toBe(401);
  });

  test('400, 401, 403', async () => {
    const { visitor, session, browser, call } = await setUp();
    const { form_token: token } = await session();
    expect((await visitor.api('DELETE', '/api/v1/session?everywhere=perhaps', { token })).status).toBe(400);
    expect((await browser().api('DELETE', '/api/v1/session')).status).toBe(401);
    expect((await visitor.api('DELETE', '/api/v1/session')).status).toBe(403);
    expect((await visitor.api('DELETE', '/api/v1/session', { token: `${token}x` })).status).toBe(403);
    expect((await call('DELETE', '/api/v1/session')).status).toBe(403);
    expect((await call('DELETE', '/api/v1/session', undefined, 'ordinary')).status).toBe(403);
  });
});
