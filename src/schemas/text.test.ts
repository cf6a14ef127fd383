import { expect, test } from 'vitest';
import { checkStorable, UNSTORABLE } from './text.ts';

test('a text that a store cannot keep is refused with the name of its field', () => {
  expect(() => checkStorable({ name: 'naïve 👋', label: null, note: undefined })).not.toThrow();
  for (const text of ['a\u0000b', 'a\ud83d']) {
    expect(() => checkStorable({ name: 'good', 'filters[1].label': text })).toThrow(
      expect.objectContaining({
        status: 400,
        message: `filters[1].label ${UNSTORABLE}`,
        metadata: { violations: [{ path: 'filters[1].label', rule: UNSTORABLE }] },
      }),
    );
  }
});
