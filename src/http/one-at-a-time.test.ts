import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { oneAtATime } from './one-at-a-time.ts';

test('one function runs at a time, and waiting callers of one name share the result of the last function', async () => {
  const inTurn = oneAtATime<string>();
  let underWay = 0;
  const begun: string[] = [];
  const make = (text: string) => async () => {
    underWay += 1;
    expect(underWay).toBe(1);
    begun.push(text);
    await turn();
    underWay -= 1;
    return text;
  };
  const first = inTurn('a', make('a1'));
  await turn();
  const others = [inTurn('a', make('a2')), inTurn('b', make('b1')), inTurn('a', make('a3'))];
  expect(await first).toBe('a1');
  expect(await Promise.all(others)).toEqual(['a3', 'b1', 'a3']);
  expect(begun).toEqual(['a1', 'a3', 'b1']);
});

test('a failure concerns only the callers that waited for it', async () => {
  const inTurn = oneAtATime<number>();
  const failing = inTurn('a', () => Promise.reject(new Error('broken')));
  const next = inTurn('b', () => Promise.resolve(1));
  await expect(failing).rejects.toThrow('broken');
  expect(await next).toBe(1);
  expect(await inTurn('a', () => Promise.resolve(2))).toBe(2);
});
