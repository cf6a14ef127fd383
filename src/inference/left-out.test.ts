import { expect, test } from 'vitest';
import type { ChatRequest } from '../schemas/inner.ts';
import { leftOut } from './left-out.ts';

const request: ChatRequest = {
  messages: [],
  ext: {
    client: 'messages',
    wire: 'anthropic-messages',
    rest: { container: 'c', thinking: { type: 'adaptive' }, to_come: 1 },
    betas: ['files-api-2025-04-14'],
  },
};

test('upstreams of another wire are told to lack what only the own one knows, but for what is said in other words as well', () => {
  const fields = (wire: 'openai-chat' | 'anthropic-messages') => leftOut(request, wire).map(({ field }) => field);
  expect(fields('openai-chat')).toEqual(['container', 'to_come', 'anthropic-beta']);
  expect(fields('anthropic-messages')).toEqual([]);
  expect(leftOut({ messages: [] }, 'openai-chat')).toEqual([]);
});
