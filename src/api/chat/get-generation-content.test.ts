import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { inflateRawSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { managementServer } from '../../../test/http/management-server.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { createVault, type Vault } from '../../accounts/vault.ts';
import type { Principal } from '../../http/principal.ts';
import { limits } from '../../limits.ts';
import type { LoggedContent } from '../../schemas/logged-content.ts';
import { type LoggedContentStore, loggedContentStore } from '../../storage/logged-contents.ts';
import { StoreUnavailable } from '../../storage/unavailable.ts';
import { workspaceStore } from '../../storage/workspaces.ts';
import { getGenerationContent } from './get-generation-content.ts';
import { createLoggedContents } from './logged-contents.ts';

const AT = '2026-11-21T10:00:00.000Z';
const DAY_MS = 86_400_000;
const SECRET = 'a secret of thirty-two characters!';

const contentOf = (word: string, over: Partial<LoggedContent> = {}): LoggedContent => ({
  request: { messages: [{ role: 'user', content: word }] },
  output: { completion: `${word} back`, reasoning: null },
  error: null,
  ...over,
});

const called = (id: string, { user_id }: Principal) => ({ id, user_id, created_at: AT, model: 'acme/one' });

/** The text of a packed content. */
const vaultText = (packed: string) =>
  inflateRawSync(Buffer.from(packed.slice(packed.indexOf('.') + 1), 'base64')).toString('utf8');

describeStores('the content of a generation', ({ open }) => {
  async function setUp({
    secret = SECRET,
    vault = createVault(secret),
    wrap = (store: LoggedContentStore) => store,
  }: {
    secret?: string;
    vault?: Vault;
    wrap?(store: LoggedContentStore): LoggedContentStore;
  } = {}) {
    const database = await open();
    const { server, home, principals, call } = await managementServer(database, AT);
    const state = { now_ms: Date.parse(AT), lost: 0 };
    const logLines: string[] = [];
    const store = loggedContentStore(database.queries);
    const contentsWith = (options: {
      secret: string;
      wrap(store: LoggedContentStore): LoggedContentStore;
      vault?: Vault;
      unswept_chars_max?: number;
    }) =>
      createLoggedContents({
        ...options,
        store: options.wrap(store),
        vault: options.vault ?? createVault(options.secret),
        retention_days: 30,
        nowMs: () => state.now_ms,
        log: { warn: (_facts, message) => void logLines.push(message) },
        metrics: {
          contentsLost(count) {
            state.lost += count;
          },
        },
      });
    const contents = contentsWith({ secret, wrap, vault });
    getGenerationContent(server, { contents });
    await server.ready();
    const keep = (id: string, content: LoggedContent, principal: Principal = principals.ordinary) => {
      const { organization_id, workspace_id, key_hash } = principal;
      contents.keep({ ...called(id, principal), organization_id, workspace_id, key_hash: key_hash ?? '' }, content);
    };
    const get = (id: string, credential = 'ordinary') =>
      call('GET', `/generation/content?id=${encodeURIComponent(id)}`, undefined, credential);
    const rows = async () =>
      (await database.queries.selectFrom('logged_contents').select('id').orderBy('id').execute()).map(({ id }) => id);
    const written = (count: number) => expect.poll(async () => (await rows()).length, { interval: 50 }).toBe(count);
    const asMember = (name: string, over: Partial<Principal>) => {
      principals[name] = { ...principals.ordinary, ...over };
      return principals[name];
    };
    return {
      database,
      home,
      principals,
      contents,
      contentsWith,
      keep,
      get,
      rows,
      written,
      state,
      log_lines: logLines,
      asMember,
    };
  }

  test('is readable before it is written, and the same afterwards', async () => {
    const { keep, get, written, contents } = await setUp();
    keep('gen-1', contentOf('hello'));
    const before = await get('gen-1');
    expect(before).toMatchObject({
      status: 200,
      body: {
        data: {
          input: { messages: [{ role: 'user', content: 'hello' }] },
          output: { completion: 'hello back', reasoning: null },
          error: null,
          truncated: false,
        },
      },
    });
    await written(1);
    expect((await get('gen-1')).body).toEqual(before.body);
    await contents.stop();
  });

  test('is readable in the turn of the loop in which it is stored', async () => {
    const { contents, keep, principals } = await setUp();
    setImmediate(() => keep('gen-1', contentOf('hello')));
    expect(await contents.find('gen-1', principals.ordinary)).toEqual(contentOf('hello'));
    await contents.stop();
  });

  test('of one text is shown as a prompt', async () => {
    const { keep, get, contents } = await setUp();
    keep('gen-1', contentOf('once', { is_prompt: true }));
    expect((await get('gen-1')).body['data']).toMatchObject({ input: { prompt: 'once' } });
    await contents.stop();
  });

  test('is readable for management keys of its organization and keys of its owner in its workspace; others get one 404', async () => {
    const { keep, get, written, asMember, database, home, contents } = await setUp();
    const other = await workspaceStore(database.queries).insert({
      organization_id: home.organization_id,
      name: 'other',
      slug: 'other',
      created_by: null,
      created_at: AT,
    });
    const ann = asMember('ann', { user_id: 'ann', key_hash: 'a1' });
    asMember('ann-again', { user_id: 'ann', key_hash: 'a2' });
    asMember('ann-elsewhere', { user_id: 'ann', key_hash: 'a3', workspace_id: other.id });
    asMember('bob', { user_id: 'bob', key_hash: 'b1' });
    const nobody = asMember('nobody', { user_id: null, key_hash: 'n1' });
    asMember('nobody-else', { user_id: null, key_hash: 'n2' });
    keep('gen-ann', contentOf('hers'), ann);
    keep('gen-nobody', contentOf('theirs'), nobody);
    for (let times = 0; times < 2; times += 1) {
      for (const [credential, hers, theirs] of [
        ['ann', 200, 404],
        ['ann-again', 200, 404],
        ['ann-elsewhere', 404, 404],
        ['bob', 404, 404],
        ['nobody', 404, 200],
        ['nobody-else', 404, 404],
        ['management', 200, 200],
        ['foreign', 404, 404],
      ] as const) {
        const statuses = [(await get('gen-ann', credential)).status, (await get('gen-nobody', credential)).status];
        expect([credential, ...statuses]).toEqual([credential, hers, theirs]);
      }
      await written(2);
    }
    const [theirs, none] = [await get('gen-ann', 'bob'), await get('gen-none', 'bob')];
    expect(JSON.stringify(theirs.body).replace('gen-ann', 'gen-none')).toBe(JSON.stringify(none.body));
    await contents.stop();
  });

  test('requires an id and a credential', async () => {
    const { get, contents } = await setUp();
    expect((await get('')).status).toBe(400);
    expect((await get('gen-1', '')).status).toBe(401);
    expect((await get('gen-\u0000')).status).toBe(404);
    await contents.stop();
  });

  test('is deleted after its retention', async () => {
    const { keep, get, written, state, contents, rows } = await setUp();
    keep('gen-1', contentOf('hello'));
    await written(1);
    state.now_ms += 30 * DAY_MS - 1;
    expect((await get('gen-1')).status).toBe(200);
    state.now_ms += 1;
    expect((await get('gen-1')).status).toBe(404);
    contents.start();
    await contents.stop();
    expect(await rows()).toEqual([]);
  });

  test('is readable after a restart, and unreadable with another secret', async () => {
    const { keep, written, contents, contentsWith, principals, log_lines } = await setUp();
    keep('gen-1', contentOf('hello'));
    await written(1);
    await contents.stop();
    const same = contentsWith({ secret: SECRET, wrap: (store) => store });
    expect(await same.find('gen-1', principals.ordinary)).toEqual(contentOf('hello'));
    const other = contentsWith({ secret: `${SECRET} another`, wrap: (store) => store });
    expect(await other.find('gen-1', principals.ordinary)).toBeUndefined();
    expect(log_lines.join()).toContain('cannot be read');
  });

  test('is encrypted: the store does not reveal it, also after decompression', async () => {
    const { keep, written, contents, database } = await setUp();
    const word = 'a word that stands there in clear';
    keep('gen-1', contentOf(word));
    await written(1);
    const row = await database.queries.selectFrom('logged_contents').selectAll().executeTakeFirstOrThrow();
    const parts = [row.sealed, ...row.sealed.split('.')].flatMap((text) => [
      Buffer.from(text),
      Buffer.from(text, 'base64'),
    ]);
    const read = parts.flatMap((bytes) => {
      try {
        return [bytes, inflateRawSync(bytes)];
      } catch {
        return [bytes];
      }
    });
    for (const bytes of read) expect(bytes.includes('stands there')).toBe(false);
    expect(Object.values(row).join()).not.toContain('stands there');
    await contents.stop();
  });

  test('that was moved to another row cannot be opened there', async () => {
    const { keep, written, contents, database, principals } = await setUp();
    keep('gen-1', contentOf('hello'));
    keep('gen-2', contentOf('other'));
    await written(2);
    const { sealed } = await database.queries
      .selectFrom('logged_contents')
      .select('sealed')
      .where('id', '=', 'gen-1')
      .executeTakeFirstOrThrow();
    await database.queries.updateTable('logged_contents').set({ sealed }).where('id', '=', 'gen-2').execute();
    expect(await contents.find('gen-2', principals.ordinary)).toBeUndefined();
    await contents.stop();
  });

  test('of a deleted workspace does not prevent others from being stored', async () => {
    const { keep, written, state, principals, contents, rows } = await setUp();
    keep('gen-1', contentOf('hello'));
    keep('gen-2', contentOf('lost'), { ...principals.ordinary, workspace_id: 'gone' });
    keep('gen-3', contentOf('hello'));
    await written(2);
    expect(await rows()).toEqual(['gen-1', 'gen-3']);
    await expect.poll(() => state.lost).toBe(1);
    await contents.stop();
  });

  test('above the bound of the queue is dropped: the oldest is a stub, is counted, and is logged once', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { keep, get, state, contents, log_lines, rows, written } = await setUp({
      wrap: (store) => ({ ...store, insert: (batch) => held.then(() => store.insert(batch)) }),
    });
    const extra = 3;
    for (let at = 0; at < limits.logged_queue_entries_max + extra; at += 1) {
      keep(`gen-${String(at).padStart(5, '0')}`, contentOf('x'));
    }
    expect(state.lost).toBe(extra);
    expect(log_lines).toHaveLength(1);
    release();
    await written(limits.logged_queue_entries_max + extra);
    await contents.stop();
    expect((await get('gen-00000')).body['data']).toMatchObject({
      input: { messages: [] },
      not_kept: { reason: 'too many calls waited for the store', created_at: AT, model: 'acme/one' },
    });
    const kept = await rows();
    expect(kept).toContain(`gen-${String(limits.logged_queue_entries_max + extra - 1).padStart(5, '0')}`);
  });

  test('that is being written is not dropped for newer ones', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let isInserting = false;
    const { keep, get, state, contents, written } = await setUp({
      wrap: (store) => ({
        ...store,
        insert: (batch) => {
          isInserting = true;
          return held.then(() => store.insert(batch));
        },
      }),
    });
    keep('gen-first', contentOf('x'));
    await expect.poll(() => isInserting).toBe(true);
    for (let at = 0; at < limits.logged_queue_entries_max; at += 1) {
      keep(`gen-${String(at).padStart(5, '0')}`, contentOf('x'));
    }
    expect(state.lost).toBe(1);
    release();
    await written(limits.logged_queue_entries_max + 1);
    await contents.stop();
    expect((await get('gen-first')).body['data']).not.toHaveProperty('not_kept');
    expect((await get('gen-00000')).body['data']).toHaveProperty('not_kept');
  });

  test('is kept within its bounds also during many writes', async () => {
    let sweeps = 0;
    const { contentsWith, principals, written } = await setUp();
    const contents = contentsWith({
      secret: SECRET,
      wrap: (store) => ({
        ...store,
        sweep: async () => {
          sweeps += 1;
        },
      }),
      unswept_chars_max: 300,
    });
    const { organization_id, workspace_id } = principals.ordinary;
    for (const [count, id] of ['gen-1', 'gen-2', 'gen-3'].entries()) {
      contents.keep({ ...called(id, principals.ordinary), organization_id, workspace_id, key_hash: '' }, contentOf(id));
      await written(count + 1);
    }
    await contents.stop();
    expect(sweeps).toBeGreaterThan(0);
    expect(sweeps).toBeLessThan(3);
  });

  test('that cannot be encrypted, or is refused by the store, is a stub, and the others are stored', async () => {
    const vault = createVault(SECRET);
    const refuses = (batch: readonly { id: string; sealed: string }[]) =>
      batch.some(({ id, sealed }) => id === 'gen-refused' && sealed.length > 700);
    const { keep, get, state, written, contents } = await setUp({
      vault: {
        ...vault,
        seal: (text, place) => {
          if (place.endsWith('gen-unsealed') && !vaultText(text).includes('not_kept')) throw new Error('no vault');
          return vault.seal(text, place);
        },
      },
      wrap: (store) => ({
        ...store,
        insert: (batch) => (refuses(batch) ? Promise.reject(new Error('too large')) : store.insert(batch)),
      }),
    });
    keep('gen-unsealed', contentOf('hello'));
    keep('gen-refused', contentOf(randomBytes(1_000).toString('hex')));
    keep('gen-kept', contentOf('hello'));
    await written(3);
    for (const [id, reason] of [
      ['gen-unsealed', 'its content could not be encrypted'],
      ['gen-refused', 'the store refused its content'],
    ] as const) {
      expect((await get(id)).body['data']).toMatchObject({
        input: { messages: [] },
        output: { completion: null },
        not_kept: { reason, created_at: AT, model: 'acme/one' },
      });
    }
    expect((await get('gen-kept')).body['data']).not.toHaveProperty('not_kept');
    expect(state.lost).toBe(2);
    await contents.stop();
  });

  test('waits for a store that fails, and is lost only if the gateway stops meanwhile', async () => {
    let fails = true;
    const down = () => Promise.reject(new StoreUnavailable('down'));
    const { keep, state, contents, written } = await setUp({
      wrap: (store) => ({ ...store, insert: (batch) => (fails ? down() : store.insert(batch)) }),
    });
    keep('gen-1', contentOf('hello'));
    await sleep(limits.logged_gather_ms * 3);
    fails = false;
    await written(1);
    fails = true;
    keep('gen-2', contentOf('hello'));
    await contents.stop();
    expect(state.lost).toBe(1);
  });
});
