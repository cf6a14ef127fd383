import { expect, test } from 'vitest';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { reasoningStateStore } from './reasoning-states.ts';

const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, '0')}.000Z`;

describeStores('reasoning states', ({ open }) => {
  test('are read until they expire, and replaced when they are inserted again', async () => {
    const states = reasoningStateStore((await open()).queries);
    await states.insert([
      { id: 'a', owner: 'o', sealed: 'one', expires_at: at(10) },
      { id: 'b', owner: 'o', sealed: 'two', expires_at: at(20) },
    ]);
    expect(await states.findMany(['a', 'b', 'c'], at(5))).toHaveLength(2);
    expect(await states.findMany(['a', 'b', 'c'], at(10))).toEqual([{ id: 'b', sealed: 'two' }]);
    await states.insert([{ id: 'a', owner: 'o', sealed: 'three', expires_at: at(30) }]);
    expect(await states.findMany(['a'], at(10))).toEqual([{ id: 'a', sealed: 'three' }]);
  });

  test('are deleted when they expire, and the oldest above the bounds of rows and size', async () => {
    const { queries } = await open();
    const states = reasoningStateStore(queries);
    const rows = [5, 9, 1, 7, 3].map((second) => ({
      id: `s${second}`,
      owner: 'o',
      sealed: 'x'.repeat(second),
      expires_at: at(second),
    }));
    await states.insert(rows);
    const left = async () =>
      (await queries.selectFrom('reasoning_states').select('id').orderBy('expires_at').execute()).map(({ id }) => id);
    await states.sweep(at(1), { rows: 100, chars: 100 });
    expect(await left()).toEqual(['s3', 's5', 's7', 's9']);
    await states.sweep(at(1), { rows: 2, chars: 100 });
    expect(await left()).toEqual(['s7', 's9']);
    await states.sweep(at(1), { rows: 100, chars: 16 });
    expect(await left()).toEqual(['s7', 's9']);
    await states.sweep(at(1), { rows: 100, chars: 15 });
    expect(await left()).toEqual(['s9']);
    await states.insert([{ id: 's9', owner: 'o', sealed: 'longer than before', expires_at: at(9) }]);
    await states.sweep(at(1), { rows: 100, chars: 10 });
    expect(await left()).toEqual([]);
  });

  test('are deleted by owner', async () => {
    const states = reasoningStateStore((await open()).queries);
    const row = (id: string, owner: string) => ({ id, owner, sealed: id, expires_at: at(10) });
    await states.insert([row('a', 'one'), row('b', 'two'), row('c', 'one')]);
    await states.deleteBy('one');
    expect(await states.findMany(['a', 'b', 'c'], at(5))).toEqual([{ id: 'b', sealed: 'b' }]);
  });
});
