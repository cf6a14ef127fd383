import { expect, test } from 'vitest';
import { createEnvelopes } from '../../inference/reasoning/envelope.ts';
import { messagesFieldNames } from './field-names.ts';
import { messagesRequest } from './parse-request.ts';

const text = { type: 'text', text: 'x' };
const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: [text] };
const body = {
  model: 'm',
  max_tokens: 1,
  system: [text, text],
  messages: [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: [text, { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }] },
    { role: 'user', content: [text, result, result, text] },
    { role: 'assistant', content: 'A' },
    { role: 'user', content: [result] },
    { role: 'user', content: [text] },
  ],
} as unknown as Parameters<typeof messagesRequest>[0];
const nameOf = messagesFieldNames(body);

test.each([
  ['messages[0].content[1]', 'system[1]'],
  ['messages[1]', 'messages[0].content'],
  ['messages[2].tool_calls[0]', 'messages[1]'],
  ['messages[3]', 'messages[2].content[1]'],
  ['messages[4].content[0]', 'messages[2].content[2].content[0]'],
  ['messages[5]', 'messages[2]'],
  ['messages[5].content[1]', 'messages[2].content[3]'],
  ['messages[7]', 'messages[4].content[0]'],
  ['messages[8].content[0]', 'messages[5].content[0]'],
  ['messages[9]', 'messages'],
  ['response_format', 'output_config.format'],
  ['top_k', 'top_k'],
])('%s of the inner language is %s for a client', (field, name) => {
  expect(nameOf(field)).toBe(name);
});

test('each message of the inner language has a name', () => {
  const { messages } = messagesRequest(body, { envelope: createEnvelopes('secret')('organization'), betas: [] });
  expect(messages.map((_, i) => nameOf(`messages[${i}]`))).not.toContain('messages');
  expect(messages).toHaveLength(9);
});
