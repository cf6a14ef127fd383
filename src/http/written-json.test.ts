import { expect, test } from 'vitest';
import { limits } from '../limits.ts';
import { encodeInTurns, writeInTurns } from './written-json.ts';

test('a long text is encoded in pieces, and no surrogate pair is split', async () => {
  const text = `a${'😀'.repeat(limits.json_piece_chars)}é`;
  let turns = 0;
  let isEncoded = false;
  const count = () => {
    turns += 1;
    if (!isEncoded) setImmediate(count);
  };
  setImmediate(count);
  const bytes = await encodeInTurns(text);
  isEncoded = true;
  expect(bytes.equals(Buffer.from(text))).toBe(true);
  expect(turns).toBeGreaterThanOrEqual(Math.floor(text.length / limits.json_piece_chars));
});

test('a long value is written like by JSON.stringify, and other work runs in between', async () => {
  const value = { text: 'She said "yes"\n'.repeat(limits.json_piece_chars), more: [1, null, 'é'] };
  let turns = 0;
  let isWritten = false;
  const count = () => {
    turns += 1;
    if (!isWritten) setImmediate(count);
  };
  setImmediate(count);
  const bytes = await writeInTurns(value);
  isWritten = true;
  expect(bytes.equals(Buffer.from(JSON.stringify(value)))).toBe(true);
  expect(turns).toBeGreaterThanOrEqual(Math.floor(value.text.length / limits.json_piece_chars));
});
