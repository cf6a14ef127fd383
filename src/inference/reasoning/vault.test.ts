import { describe, expect, test } from 'vitest';
import { limits } from '../../limits.ts';
import type { Message } from '../../schemas/inner.ts';
import {
  createTurnVault,
  TURN_ABSENCE_MS,
  TURNS_UNWRITTEN_CHARS_MAX,
  type TurnStore,
  turnOwner,
  type VaultOptions,
} from './vault.ts';

const KEEP_MS = 3_600_000;

/** A store that counts its queries and can be made to fail. */
function storeOf() {
  const rows = new Map<string, { owner: string; sealed: string; expires_at: string }>();
  const queries = { inserts: [] as number[], reads: [] as number[], sweeps: 0 };
  const store: TurnStore & { queries: typeof queries; rows: typeof rows; failing: boolean } = {
    queries,
    rows,
    failing: false,
    async insert(batch) {
      await new Promise(setImmediate);
      if (store.failing) throw new Error('the store is away');
      queries.inserts.push(batch.length);
      for (const { id, ...row } of batch) rows.set(id, row);
    },
    async findMany(ids, now) {
      if (store.failing) throw new Error('the store is away');
      queries.reads.push(ids.length);
      return ids.flatMap((id) => {
        const row = rows.get(id);
        return row && row.expires_at > now ? [{ id, sealed: row.sealed }] : [];
      });
    },
    async sweep() {
      queries.sweeps += 1;
    },
    async deleteBy(owner) {
      for (const [id, row] of rows) if (row.owner === owner) rows.delete(id);
    },
  };
  return store;
}

/** Marks what it sealed and for which place, so that a test can see it. */
const crypt = {
  seal: (text: string, place: string) => `${place}:${text}`,
  open(sealed: string, place: string) {
    if (!sealed.startsWith(`${place}:`)) throw new Error('sealed for another place');
    return sealed.slice(place.length + 1);
  },
};

function vaultOf(store: TurnStore | undefined, more: Partial<VaultOptions> = {}) {
  const warnings: string[] = [];
  const clock = { ms: 1_000_000 };
  const vault = createTurnVault({
    secret: 'secret',
    store,
    crypt,
    nowMs: () => clock.ms,
    keep_ms: KEEP_MS,
    log: { warn: (_facts, message) => void warnings.push(message) },
    ...more,
  });
  return { vault, warnings, clock };
}

const turn = (id: string, args = '{"a": 1, "b": [{"c": 2, "d": 3}]}', name = 'f'): Message => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name, arguments: args } }],
});
const userMessage = (content: string): Message => ({ role: 'user', content });
const LONG = 'call_8XkQ2mZ0aB4cD6eF8gH0';

describe('places', () => {
  const { vault } = vaultOf(undefined);

  test('a call with a unique id has a place by that id, in its workspace only', () => {
    const place = vault.placeOf('w', turn(LONG), userMessage('x'));
    expect(vault.placeOf('w', turn(LONG, '{}'), undefined)).toBe(place);
    expect(vault.placeOf('other', turn(LONG), userMessage('x'))).not.toBe(place);
    expect(vault.placeOf('w', turn(`${LONG}1`), userMessage('x'))).not.toBe(place);
    expect(vault.placeOf('w', turn(LONG, '{}', 'g'), userMessage('x'))).not.toBe(place);
  });

  test.each(['call_0', 'functions.get_temperature:0', 'oqeiriep', 'a1b2c3d4e'])(
    'an id that is not unique counts together with the call and the message that it answers: %s',
    (id) => {
      const place = vault.placeOf('w', turn(id), userMessage('x'));
      expect(vault.placeOf('w', turn(id, '{"b":[{"d":3,"c":2}],"a":1}'), userMessage('x'))).toBe(place);
      expect(vault.placeOf('w', turn(id, '{"a": 2}'), userMessage('x'))).not.toBe(place);
      expect(vault.placeOf('w', turn(id), userMessage('y'))).not.toBe(place);
      expect(vault.placeOf('w', turn(id), { role: 'tool', content: 'x' })).not.toBe(place);
    },
  );

  test('do not exist for a turn without calls', () => {
    expect(vault.placeOf('w', { role: 'assistant', content: 'x' }, userMessage('x'))).toBeUndefined();
    expect(vault.placeOf('w', { role: 'assistant', content: 'x', tool_calls: [] }, userMessage('x'))).toBeUndefined();
  });

  test('differ for another secret', () => {
    const other = vaultOf(undefined, { secret: 'another' }).vault;
    expect(other.placeOf('w', turn(LONG), undefined)).not.toBe(vault.placeOf('w', turn(LONG), undefined));
  });
});

describe('a kept turn', () => {
  test('is in memory at once without a store query, and so is a known absence', () => {
    const store = storeOf();
    const { vault } = vaultOf(store);
    vault.keep('p', 'text');
    vault.keep('q', undefined);
    expect(vault.load(['p', 'q'])).toEqual(new Map([['p', 'text']]));
    expect(store.queries.reads).toEqual([]);
  });

  test('is written in few batches, none of which is empty', async () => {
    const store = storeOf();
    const { vault } = vaultOf(store);
    for (let nth = 0; nth < 250; nth += 1) vault.keep(`p${nth}`, 'text');
    vault.keep('p0', 'changed');
    await expect.poll(() => store.rows.size).toBe(250);
    expect(store.queries.inserts).toEqual([100, 100, 50]);
    expect(store.rows.get('p0')?.sealed).toBe('p0:changed');
    vault.keep('empty', undefined);
    await vault.stop();
    expect(store.queries.inserts).toHaveLength(3);
    expect(store.queries.sweeps).toBe(1);
  });

  test('is in the store when the vault has stopped', async () => {
    const store = storeOf();
    const { vault } = vaultOf(store);
    for (let nth = 0; nth < 150; nth += 1) vault.keep(`p${nth}`, 'text');
    await vault.stop();
    expect(store.rows.size).toBe(150);
  });

  test('is read by another process in one query, whose result is remembered', async () => {
    const store = storeOf();
    const { vault: first } = vaultOf(store);
    first.keep('p', 'text');
    await first.stop();
    const { vault, clock } = vaultOf(store);
    expect(await vault.load(['p', 'q'])).toEqual(new Map([['p', 'text']]));
    expect(vault.load(['p', 'q'])).toEqual(new Map([['p', 'text']]));
    expect(store.queries.reads).toEqual([2]);
    // An absence is not remembered for long: another process may be writing the turn.
    clock.ms += TURN_ABSENCE_MS;
    await vault.load(['p', 'q']);
    expect(store.queries.reads).toEqual([2, 1]);
  });

  test('expires', async () => {
    const store = storeOf();
    const { vault, clock } = vaultOf(store);
    vault.keep('p', 'text');
    await vault.stop();
    clock.ms += KEEP_MS;
    expect(await vault.load(['p'])).toEqual(new Map());
  });

  test('stays in memory while the store fails, which is logged, and is written later', async () => {
    const store = storeOf();
    const { vault, warnings } = vaultOf(store);
    store.failing = true;
    vault.keep('p', 'text');
    await expect.poll(() => warnings.length).toBeGreaterThan(0);
    expect(vault.load(['p'])).toEqual(new Map([['p', 'text']]));
    expect(await vault.load(['unknown'])).toEqual(new Map());
    store.failing = false;
    await expect.poll(() => store.rows.size).toBe(1);
    await vault.stop();
  });

  test('is queued for a failing store only up to a bound of characters', async () => {
    const store = storeOf();
    const { vault, warnings } = vaultOf(store);
    store.failing = true;
    const text = 'x'.repeat(limits.turn_state_chars_max);
    const most = Math.floor(TURNS_UNWRITTEN_CHARS_MAX / text.length);
    for (let nth = 0; nth < most + 5; nth += 1) vault.keep(`p${nth}`, text);
    vault.keep('p0', text);
    await expect.poll(() => warnings.length).toBeGreaterThan(0);
    store.failing = false;
    await expect.poll(() => store.rows.size).toBe(most);
    vault.keep('again', text);
    await vault.stop();
    expect(store.rows.size).toBe(most + 1);
  });

  test('is omitted from a request while the store hangs', async () => {
    const store = { ...storeOf(), findMany: () => new Promise<never>(() => {}) };
    const { vault, warnings } = vaultOf(store);
    expect(await vault.load(['p'])).toEqual(new Map());
    expect(warnings).toEqual(['reasoning state could not be read']);
  });

  test('does not delay a stop if the store fails', async () => {
    const store = storeOf();
    const { vault } = vaultOf(store);
    store.failing = true;
    vault.keep('p', 'text');
    await vault.stop();
    expect(store.rows.size).toBe(0);
  });

  test('is ignored if it was sealed with another secret, and the request continues', async () => {
    const store = storeOf();
    store.rows.set('p', { owner: 'o', sealed: 'another:text', expires_at: '9' });
    const { vault, warnings } = vaultOf(store);
    expect(await vault.load(['p'])).toEqual(new Map());
    expect(warnings).toEqual(['reasoning state could not be read']);
  });

  test('is deleted with its workspace, and a running batch does not restore it', async () => {
    const store = storeOf();
    const { vault } = vaultOf(store);
    const places = ['gone', 'stays'].map((workspace) => vault.placeOfGeneration(workspace, 'gen-1'));
    for (const place of places) vault.keep(place, 'text');
    // The store has started the batch and not finished it.
    await Promise.resolve();
    await Promise.resolve();
    vault.forget('gone');
    const late = vault.placeOfGeneration('gone', 'gen-2');
    vault.keep(late, 'text');
    vault.forget('gone');
    await vault.stop();
    expect([...store.rows].map(([id, { owner }]) => [id, owner])).toEqual([[places[1], turnOwner('secret', 'stays')]]);
    expect(vault.remembered(places[0] ?? '')).toBeUndefined();
    expect(vault.remembered(places[1] ?? '')).toBe('text');
  });

  test('is bounded: long turns are not kept, and the oldest is removed first', () => {
    const { vault } = vaultOf(undefined);
    vault.keep('long', 'x'.repeat(limits.turn_state_chars_max + 1));
    expect(vault.remembered('long')).toBeUndefined();
    const text = 'x'.repeat(limits.turn_state_chars_max);
    const most = Math.floor(limits.turn_states_chars_max / text.length);
    for (let nth = 0; nth < most; nth += 1) vault.keep(`p${nth}`, text);
    vault.remembered('p0');
    vault.keep('one more', text);
    expect(vault.remembered('p0')).toBe(text);
    expect(vault.remembered('p1')).toBeUndefined();
    for (let nth = 0; nth < limits.turn_states_remembered_max; nth += 1) vault.keep(`q${nth}`, undefined);
    expect(vault.remembered('p0')).toBeUndefined();
  });
});
