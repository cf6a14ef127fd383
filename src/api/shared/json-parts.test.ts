import { expect, test } from 'vitest';
import { limits } from '../../limits.ts';
import { writeParts } from './json-parts.ts';

test('long arguments with more values or levels than a request may have are written as text, and not parsed', async () => {
  const { answer_values_max, json_levels_max } = limits;
  const within = `{"a":[${'1,'.repeat(answer_values_max - 10)}1],"b":"${'x'.repeat(limits.answer_turn_bytes_min)}"}`;
  expect(JSON.parse(String(await writeParts([{ object: within }])))).toHaveProperty('b');
  const wide = `{"a":[${'1,'.repeat(limits.answer_turn_bytes_min)}1]}`;
  const deep = `{"a":${'['.repeat(json_levels_max)}${']'.repeat(json_levels_max)},"b":"${'x'.repeat(limits.answer_turn_bytes_min)}"}`;
  for (const text of [wide, deep]) {
    expect(JSON.parse(String(await writeParts([{ object: text }])))).toEqual({ _raw: text });
  }
});
