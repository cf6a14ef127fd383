import { expect, test } from 'vitest';
import { newRequestId } from './request-id.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test('each id is a random UUID of version 4, also in later blocks', () => {
  const ids = Array.from({ length: 1_000 }, newRequestId);
  for (const id of ids) expect(id).toMatch(UUID);
  expect(new Set(ids).size).toBe(ids.length);
  // Every digit that may differ does.
  const digits = Array.from({ length: 36 }, (_, at) => new Set(ids.map((id) => id[at])).size);
  expect(
    digits
      .map((count, at) => (count > 1 ? '' : at))
      .join(' ')
      .trim()
      .split(/ +/),
  ).toEqual(['8', '13', '14', '18', '23']);
});
