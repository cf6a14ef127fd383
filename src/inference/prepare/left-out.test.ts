import { expect, test } from 'vitest';
import { messagesClient } from '../../api/messages/client.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { leftOut } from './left-out.ts';

const request: ChatRequest = {
  messages: [],
  ext: {
    client: messagesClient,
    wire: 'anthropic-messages',
    rest: { container: 'c', thinking: { type: 'adaptive' }, to_come: 1 },
    betas: ['files-api-2025-04-14'],
  },
};

test('fields of the client’s own wire are reported as left out on other wires, unless they are translated', () => {
  const fields = (wire: 'openai-chat' | 'anthropic-messages') => leftOut(request, wire).map(({ field }) => field);
  expect(fields('openai-chat')).toEqual(['container', 'to_come', 'anthropic-beta']);
  expect(fields('anthropic-messages')).toEqual([]);
  expect(leftOut({ messages: [] }, 'openai-chat')).toEqual([]);
});

const native = {
  type: 'native' as const,
  wire: 'anthropic-messages' as const,
  block: { type: 'bash_20250124', name: 'bash' },
};
const called = { type: 'function' as const, function: { name: 'f' } };
const named = (name: string) => ({ type: 'function' as const, function: { name } });
const servers = { ...request.ext!, rest: { mcp_servers: [{ type: 'url' }] } };

test.each<[string, Partial<ChatRequest>, boolean]>([
  ['any tool, with only unknown tools', { tools: [native], tool_choice: 'required' }, true],
  ['any tool, with only unknown servers', { tool_choice: 'required', ext: servers }, true],
  ['any tool, with one known tool', { tools: [native, called], tool_choice: 'required' }, false],
  ['a specific unknown tool', { tools: [native, called], tool_choice: named('bash') }, true],
  ['a specific known tool', { tools: [native, called], tool_choice: named('f') }, false],
  ['no tool', { tools: [native], tool_choice: 'auto' }, false],
])('a tool_choice that requires %s on another wire is refused or accepted', (_title, fields, refused) => {
  const ask = () => leftOut({ ...request, ...fields }, 'openai-chat');
  if (refused)
    expect(ask).toThrow(expect.objectContaining({ status: 400, message: expect.stringContaining('tool_choice') }));
  else expect(ask).not.toThrow();
  expect(() => leftOut({ ...request, ...fields }, 'anthropic-messages')).not.toThrow();
});
