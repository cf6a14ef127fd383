import { expect, test } from 'vitest';
import { describeStores } from '../../test/store-variants.ts';
import { reasoningStateStore } from './reasoning-states.ts';

const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, '0')}.000Z`;

describeStores('reasoning states', ({ open }) => {
  test('are found until they expire, and replaced when they come again', async () => {
    const states = reasoningStateStore((await open()).queries);
    await states.insert([
      { id: 'a', sealed: 'one', expires_at: at(10) },
      { id: 'b', sealed: 'two', expires_at: at(20) },
    ]);
    expect(await states.findMany(['a', 'b', 'c'], at(5))).toHaveLength(2);
    expect(await states.findMany(['a', 'b', 'c'], at(10))).toEqual([{ id: 'b', sealed: 'two' }]);
    await states.insert([{ id: 'a', sealed: 'three', expires_at: at(30) }]);
    expect(await states.findMany(['a'], at(10))).toEqual([{ id: 'a', sealed: 'three' }]);
  });

  test('are swept when they have expired, and the oldest beyond a number', async () => {
    const { queries } = await open();
    const states = reasoningStateStore(queries);
    const rows = [5, 9, 1, 7, 3].map((second) => ({ id: `s${second}`, sealed: '', expires_at: at(second) }));
    await states.insert(rows);
    const left = async () =>
      (await queries.selectFrom('reasoning_states').select('id').orderBy('expires_at').execute()).map(({ id }) => id);
    await states.sweep(at(1), 100);
    expect(await left()).toEqual(['s3', 's5', 's7', 's9']);
    await states.sweep(at(1), 2);
    expect(await left()).toEqual(['s7', 's9']);
  });
});
