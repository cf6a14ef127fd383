import { expect, test } from 'vitest';
import { limits } from '../limits.ts';
import { writeInTurns } from './written-json.ts';

test('a long value is written with others served in between, and as JSON.stringify writes it', async () => {
  const value = { text: 'She said "yes"\n'.repeat(limits.json_piece_chars), more: [1, null, 'é'] };
  let turns = 0;
  let is_written = false;
  const count = () => {
    turns += 1;
    if (!is_written) setImmediate(count);
  };
  setImmediate(count);
  const bytes = await writeInTurns(value);
  is_written = true;
  expect(bytes.equals(Buffer.from(JSON.stringify(value)))).toBe(true);
  expect(turns).toBeGreaterThanOrEqual(Math.floor(value.text.length / limits.json_piece_chars));
});
