import { expect, test } from 'vitest';
import { managementServer } from '../../test/http/management-server.ts';
import { describeStores } from '../../test/ledger/store-variants.ts';
import type { GatewayError } from '../errors.ts';
import type { Principal } from '../http/principal.ts';
import type { Actor } from '../storage/audit.ts';
import { identityStore } from '../storage/identities.ts';
import { organizationStore } from '../storage/organizations.ts';
import { actorOf, type Work } from './change.ts';

const NOW = '2026-11-21T10:00:00.000Z';

describeStores('a change', ({ open, engine }) => {
  async function setUp() {
    const database = await open();
    const { change, changes, home, sessionOf } = await managementServer(database, NOW);
    const { organization_id, default_workspace_id: id } = home;
    const actor: Actor = { organization_id, actor: 'command', key_hash: null, user_id: null, request_id: null };
    const announcements: string[] = [];
    changes.listen((change) => announcements.push(change === 'everything' ? change : change.id));
    /** Renames the default workspace, with two audit entries and two announcements of the name. */
    const rename = async ({ tx, audit, announce }: Work, name: string) => {
      await tx.updateTable('workspaces').set({ name }).where('id', '=', id).execute();
      await audit({ action: 'update', resource_type: 'workspace', resource_id: id, before: null, after: { name } });
      announce({ topic: 'policy', id: name });
    };
    const left = async () => {
      const { name } = await database.queries
        .selectFrom('workspaces')
        .select('name')
        .where('id', '=', id)
        .executeTakeFirstOrThrow();
      const events = await database.queries.selectFrom('audit_events').select('state_after').orderBy('seq').execute();
      return { name, audited: events.map((event) => event.state_after), announcements };
    };
    return { change, actor, rename, left, database, id, announcements, changes, sessionOf, home };
  }

  const untouched = { name: 'Default', audited: [], announcements: [] };

  test('of a session: is refused after a sign-out, a removal of the member or the loss of the administrator role', async () => {
    const { change, rename, left, database, sessionOf, home } = await setUp();
    const { queries } = database;
    const status = async (principal: Principal) =>
      change(actorOf({ principal, id: 'request' }), (work) => rename(work, 'by session')).then(
        () => 200,
        (error: GatewayError) => error.status,
      );
    const [admin, other, member] = [await sessionOf('admin'), await sessionOf('admin'), await sessionOf('member')];
    await queries
      .deleteFrom('sessions')
      .where('id', '=', admin.session?.id ?? '')
      .execute();
    expect([await status(admin), (await left()).name]).toEqual([401, 'Default']);
    const owner = queries.updateTable('organization_members').where('user_id', '=', home.owner_user_id);
    await owner.set({ role: 'member' }).execute();
    expect([await status(other), await left()]).toEqual([403, untouched]);
    expect(await status(member)).toBe(200);
    await queries.deleteFrom('organization_members').where('user_id', '=', home.owner_user_id).execute();
    expect([await status(other), await status(member)]).toEqual([401, 401]);
  });

  // SQLite has one writer at a time.
  test.runIf(engine === 'postgres')('of a session: is refused if the session ends before its commit', async () => {
    const { change, rename, left, database, sessionOf } = await setUp();
    const ending = [
      (id: string) => database.queries.deleteFrom('sessions').where('id', '=', id),
      () => database.queries.updateTable('organization_members').set({ role: 'member' }),
      () => database.queries.deleteFrom('organization_members'),
    ];
    for (const [at, status] of [401, 403, 401].entries()) {
      const principal = await sessionOf('admin');
      const refused = change(actorOf({ principal, id: 'request' }), async (work) => {
        await rename(work, 'by session');
        await ending[at]?.(principal.session?.id ?? '').execute();
      });
      await expect(refused).rejects.toMatchObject({ status });
      expect(await left()).toEqual(untouched);
      await database.queries.updateTable('organization_members').set({ role: 'admin' }).execute();
    }
  });

  test.runIf(engine === 'postgres')('of a session: locks no row for which another change may wait', async () => {
    const { change, database, sessionOf, home } = await setUp();
    const { queries } = database;
    const { organization_id, owner_user_id: owner } = home;
    const user = {
      name: 'ada',
      email: 'ada@example.com',
      first_name: null,
      last_name: null,
      issuer: null,
      subject: null,
    };
    const ada = await queries
      .transaction()
      .execute((tx) => identityStore(tx).insertMember(user, { organization_id, role: 'admin', at: NOW }));
    const [first, second] = [await sessionOf('admin', owner), await sessionOf('admin', ada)];
    let tries = 0;
    let isOther = () => {};
    const both = new Promise<void>((resolve) => {
      isOther = resolve;
    });
    /** Needs the membership of the other administrator while that one's change needs this one's. */
    const lock = (principal: Principal, userId: string) =>
      change(actorOf({ principal, id: 'request' }), async ({ tx, audit }) => {
        tries += 1;
        if (tries === 2) isOther();
        await both;
        await organizationStore(tx).lockMember({ organization_id, user_id: userId });
        await audit({ action: 'update', resource_type: 'user', resource_id: userId, before: null, after: {} });
      });
    await Promise.all([lock(first, ada), lock(second, owner)]);
    expect(tries).toBe(2);
  });

  test('is stored, audited and announced once it is committed', async () => {
    const { change, actor, rename, left } = await setUp();
    expect(await change(actor, (work) => rename(work, 'new').then(() => 'answer'))).toBe('answer');
    expect(await left()).toEqual({ name: 'new', audited: [{ name: 'new' }], announcements: ['new'] });
  });

  test('is announced when every node can read it, and not before', async () => {
    const { change, actor, rename, database, changes, id } = await setUp();
    let read: Promise<{ name: string }> | undefined;
    changes.listen(() => {
      read = database.queries.selectFrom('workspaces').select('name').where('id', '=', id).executeTakeFirstOrThrow();
    });
    await change(actor, (work) => rename(work, 'new'));
    expect(await read).toEqual({ name: 'new' });
  });

  test('that fails is rolled back and announces nothing', async () => {
    const { change, actor, rename, left } = await setUp();
    const failing = change(actor, async (work) => {
      await rename(work, 'new');
      throw new Error('refused');
    });
    await expect(failing).rejects.toThrow('refused');
    expect(await left()).toEqual(untouched);
  });

  test('without an audit entry is not announced and is rolled back', async () => {
    const { change, actor, left } = await setUp();
    const silent = change(actor, async ({ announce }) => announce({ topic: 'policy', id: 'x' }));
    await expect(silent).rejects.toThrow('a change without an audit entry');
    expect(await left()).toEqual(untouched);
  });

  // PostgreSQL: serialization_failure, deadlock_detected, foreign_key_violation; SQLite: SQLITE_CONSTRAINT_FOREIGNKEY.
  test.each([{ code: '40001' }, { code: '40P01' }, { code: '23503' }, { errcode: 787 }])(
    'that the store aborted for a conflict is tried again, without the entries of earlier tries: %j',
    async (fault) => {
      const { change, actor, rename, left } = await setUp();
      let tries = 0;
      await change(actor, async (work) => {
        tries += 1;
        await rename(work, `try ${tries}`);
        if (tries < 5) throw Object.assign(new Error('given up'), fault);
      });
      expect(await left()).toEqual({ name: 'try 5', audited: [{ name: 'try 5' }], announcements: ['try 5'] });
    },
  );

  test.each([{ code: '40P01' }, { code: '23503' }, { errcode: 787 }])(
    'that is always aborted for a conflict is a 409: %j',
    async (fault) => {
      const { change, actor, rename, left } = await setUp();
      let tries = 0;
      const beaten = change(actor, async (work) => {
        tries += 1;
        await rename(work, 'new');
        throw Object.assign(new Error('given up'), fault);
      });
      await expect(beaten).rejects.toMatchObject({ status: 409 });
      expect(tries).toBe(5);
      expect(await left()).toEqual(untouched);
    },
  );

  test('that fails for another reason is not tried again', async () => {
    const { change, actor } = await setUp();
    let tries = 0;
    const failing = change(actor, async () => {
      tries += 1;
      throw Object.assign(new Error('taken'), { code: '23505' });
    });
    await expect(failing).rejects.toThrow('taken');
    expect(tries).toBe(1);
  });
});
