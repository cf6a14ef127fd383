import { expect, test } from 'vitest';
import { authPagesServer, ENVIRONMENT_KEY } from '../../../test/http/auth-pages-server.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';

const NOW = '2026-11-21T10:00:00.000Z';

describeStores('GET /session', ({ open }) => {
  async function setUp() {
    const database = await open();
    const made = await authPagesServer(database, NOW);
    const visitor = made.browser();
    await visitor.post('/sign-in', { management_key: ENVIRONMENT_KEY });
    const session = async () =>
      (await visitor.api('GET', '/api/v1/session')).body['data'] as unknown as { form_token: string };
    return { ...made, database, visitor, session };
  }

  test('200: the user, the role and the end of the session', async () => {
    const { session, home } = await setUp();
    expect(await session()).toEqual({
      organization_id: home.organization_id,
      user_id: home.owner_user_id,
      user_name: 'Owner',
      user_email: null,
      role: 'admin',
      is_demo: false,
      expires_at: '2026-11-21T22:00:00.000Z',
      form_token: expect.stringMatching(/^[\w-]{43}$/),
    });
  });

  test('401, 403, 500', async () => {
    const { visitor, browser, call, database, pass } = await setUp();
    expect((await browser().api('GET', '/api/v1/session')).status).toBe(401);
    expect((await call('GET', '/api/v1/session')).status).toBe(403);
    expect((await call('GET', '/api/v1/session', undefined, 'ordinary')).status).toBe(403);
    await database.queries.schema.alterTable('sessions').renameTo('gone').execute();
    expect((await visitor.api('GET', '/api/v1/session')).status).toBe(500);
    await database.queries.schema.alterTable('gone').renameTo('sessions').execute();
    pass(13 * 3_600_000);
    expect((await visitor.api('GET', '/api/v1/session')).status).toBe(401);
  });
});
