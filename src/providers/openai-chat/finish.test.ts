import { expect, test } from 'vitest';
import { finishReason } from './finish.ts';

test.each<[string | undefined, boolean, boolean, string]>([
  // native, has calls, is empty, public
  ['stop', false, false, 'stop'],
  ['stop', true, false, 'tool_calls'],
  ['tool_calls', true, false, 'tool_calls'],
  ['tool_calls', false, false, 'stop'],
  ['function_call', true, false, 'tool_calls'],
  ['length', true, false, 'length'],
  ['model_length', false, false, 'length'],
  ['MAX_TOKENS', false, true, 'length'],
  ['content_filter', false, false, 'content_filter'],
  ['content_filter', true, false, 'content_filter'],
  ['eos', false, false, 'stop'],
  ['error', false, false, 'error'],
  ['insufficient_system_resource', false, false, 'error'],
  // Google's compatible endpoint: its own words, alone or after the name of their field.
  ['RECITATION', false, false, 'content_filter'],
  ['IMAGE_SAFETY', false, true, 'content_filter'],
  ['content_filter: PROHIBITED_CONTENT', false, false, 'content_filter'],
  ['MALFORMED_FUNCTION_CALL', false, false, 'error'],
  ['function_call_filter: MALFORMED_FUNCTION_CALL', false, false, 'error'],
  ['a new one', false, false, 'stop'],
  ['a new one', false, true, 'error'],
  ['a new one', true, false, 'tool_calls'],
  [undefined, false, false, 'stop'],
  [undefined, true, false, 'tool_calls'],
])('%s with calls %s, empty %s is %s', (native, hasCalls, isEmpty, expected) => {
  expect(finishReason(native, { has_calls: hasCalls, is_empty: isEmpty })).toBe(expected);
});
