import fc from 'fast-check';
import { expect, test } from 'vitest';
import { JsonProgress } from './json-progress.ts';

const isJson = (text: string) => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

test('a growing text is complete exactly if it is JSON, however it is split and whenever it is checked', () => {
  const piece = fc.constantFrom('{', '}', '[', ']', '"', '\\', '"a":', '1', ',', ' ', '\n', '{"a":"}"}', 'null', 'x');
  const value = fc.json().map((text) => [...text]);
  fc.assert(
    fc.property(fc.oneof(fc.array(piece, { maxLength: 12 }), value), fc.array(fc.boolean()), (pieces, checks) => {
      const progress = new JsonProgress();
      let text = '';
      for (const [at, one] of pieces.entries()) {
        progress.add(one);
        text += one;
        if (checks[at] === true && text.length <= 64) expect(progress.isWhole).toBe(isJson(text));
      }
      if (text.length <= 64) expect(progress.isWhole).toBe(isJson(text));
    }),
  );
});
