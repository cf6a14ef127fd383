import { expect, test } from 'vitest';
import type { JsonObject } from '../../schemas/json.ts';
import { readUsage } from './usage.ts';

const SEARCH = { type: 'web_search_call', id: 'ws_1', action: { type: 'search', query: 'q' } };
const searchesOf = (response: JsonObject) =>
  readUsage({
    usage: { input_tokens: 1, output_tokens: 1, ...(response['usage'] as JsonObject) },
    ...without(response),
  })?.counts?.web_search;

function without({ usage: _, ...response }: JsonObject): JsonObject {
  return response;
}

test('searches are counted as the provider reports them, else by their items', () => {
  expect(searchesOf({})).toBeUndefined();
  expect(searchesOf({ output: [SEARCH, { ...SEARCH, action: { type: 'open_page' } }] })).toBe(1);
  expect(searchesOf({ output: [SEARCH], tool_usage: { web_search: { num_requests: 3 } } })).toBe(3);
});

test('xAI reports one count of all tools that it ran: each is billed, whatever its items are called', () => {
  const xCall = { type: 'custom_tool_call', name: 'x_keyword_search', call_id: 'x', input: '{}' };
  expect(searchesOf({ usage: { num_server_side_tools_used: 2 }, output: [SEARCH, xCall] })).toBe(2);
  expect(searchesOf({ usage: { num_server_side_tools_used: 0 }, output: [] })).toBeUndefined();
});
