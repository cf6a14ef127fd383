/**
 * A removed member keeps nothing: keys, keys made with them, codes and sessions end on every node at once. See
 * docs/threat-model.md, "Keys made by other keys, and members who leave".
 */
import { afterEach, expect, test } from 'vitest';
import { openDatabase } from '../../src/storage/database.ts';
import { identityStore } from '../../src/storage/identities.ts';
import { describeStores } from '../ledger/store-variants.ts';
import { keyFamily } from './key-family.ts';

const cleanups: (() => Promise<void>)[] = [];

describeStores('a member who was removed', ({ freshUrl }) => {
  // Registered here, so that the gateways stop before their store is removed.
  afterEach(async () => {
    for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp();
  });

  async function setUp() {
    const made = await keyFamily(freshUrl, cleanups);
    const database = await openDatabase({ data_dir: made.one.data_dir, database_url: made.url });
    cleanups.push(() => database.close());
    const { organization_id } = await database.queries
      .selectFrom('organization_members')
      .select('organization_id')
      .executeTakeFirstOrThrow();
    const names = { first_name: null, last_name: null, issuer: null, subject: null };
    const add = (name: string, role: 'admin' | 'member' = 'member') =>
      database.queries
        .transaction()
        .execute((tx) =>
          identityStore(tx).insertMember(
            { name, email: `${name}@example.com`, ...names },
            { organization_id, role, at: new Date().toISOString() },
          ),
        );
    return { ...made, add };
  }

  test('has no key on any node, no key made with one, and no pending code', async () => {
    const { add, makeKey, makeChild, both, code, exchange, manage, other } = await setUp();
    const creatorUserId = await add('ada');
    const parent = await makeKey({ creator_user_id: creatorUserId });
    const child = await makeChild((await makeChild(parent.secret)).secret);
    const secrets = [parent.secret, child.secret];
    const all = async () => (await Promise.all(secrets.map(both))).flat();
    expect(await all()).toEqual([200, 200, 200, 200]);
    const waiting = await code(child.secret);
    await manage('DELETE', `/organization/members/${creatorUserId}`);
    expect(await all()).toEqual([401, 401, 401, 401]);
    expect((await exchange(waiting, other)).status).toBe(403);
  });

  test('gets no key if codes and exchanges race with the removal', async () => {
    const { add, makeKey, code, exchange, manage, one, other, chat } = await setUp();
    const creatorUserId = await add('ada');
    const parent = await makeKey({ creator_user_id: creatorUserId });
    const made: string[] = [];
    let isRemoved = false;
    const attack = async (gateway: typeof one) => {
      while (!isRemoved) {
        const answer = await code(parent.secret, {}, gateway);
        if (answer.status !== 200) continue;
        const { status, secret } = await exchange(answer, gateway);
        if (status === 200) made.push(secret);
      }
    };
    const attackers = [attack(one), attack(other)];
    await expect.poll(() => made.length).toBeGreaterThan(1);
    await manage('DELETE', `/organization/members/${creatorUserId}`);
    isRemoved = true;
    await Promise.all(attackers);
    for (const secret of [parent.secret, ...made]) {
      expect([(await chat(one, secret)).status, (await chat(other, secret)).status]).toEqual([401, 401]);
    }
  });

  test('is no longer the owner of keys that the environment’s management key creates', async () => {
    const { add, manage, ask, other } = await setUp();
    const { creator_user_id: owner } = await manage('POST', '/keys', { name: 'before' });
    const ada = await add('ada', 'admin');
    await manage('DELETE', `/organization/members/${owner}`);
    const made = await ask(other, other.management_key, 'POST', '/keys', { name: 'after' });
    expect(made.body.data).toMatchObject({ creator_user_id: ada, disabled: false });
  });
});
