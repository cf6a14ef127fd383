import { expect, test } from 'vitest';
import { checkVersion } from './preconditions.ts';

const asking = (wanted: string | undefined) =>
  ({ headers: { 'if-match': wanted } }) as Parameters<typeof checkVersion>[0];

test.each([undefined, '"7"', ' "7" ', '*', ' * ', 'W/"7"', '"6", "7"', '"6",W/"7","8"'])(
  'a change based on version 7, or without a version, is allowed: %s',
  (wanted) => expect(() => checkVersion(asking(wanted), 7)).not.toThrow(),
);

test.each(['', '"6"', '7', '"77"', 'W/"6"', '"*"', '"6", "8"', '*, "6"'])(
  'a change not based on version 7 is refused with the current version: %s',
  (wanted) => {
    expect(() => checkVersion(asking(wanted), 7)).toThrow(
      expect.objectContaining({ status: 409, headers: { etag: '"7"' } }),
    );
  },
);
