import type { JsonObject, JsonValue } from '../../../src/schemas/json.ts';
import { type Flood, frames, times, URL } from './flood.ts';

const messagesStart: JsonObject = {
  type: 'message_start',
  message: { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], usage: { input_tokens: 3 } },
};
const messagesEnd: JsonObject[] = [
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } },
  { type: 'message_stop' },
];

function messages(parts: string, events: (n: number) => JsonObject[], content?: (n: number) => JsonValue[]): Flood {
  return {
    wire: 'anthropic-messages',
    parts,
    stream: (n) => frames([messagesStart, ...events(n), ...messagesEnd]),
    ...(content === undefined
      ? {}
      : {
          whole: (n) => ({
            id: 'm',
            type: 'message',
            role: 'assistant',
            model: 'm',
            content: content(n),
            stop_reason: 'end_turn',
            usage: { input_tokens: 3, output_tokens: 5 },
          }),
        }),
  };
}

/** Each block opens, grows and closes. */
function messagesBlocks(
  parts: string,
  block: (i: number) => JsonObject,
  deltas: (i: number) => JsonObject[] = () => [],
): Flood {
  return messages(
    parts,
    (n) =>
      times(n, (index): JsonObject[] => [
        { type: 'content_block_start', index, content_block: block(index) },
        ...deltas(index).map((delta) => ({ type: 'content_block_delta', index, delta })),
        { type: 'content_block_stop', index },
      ]).flat(),
    (n) => times(n, block),
  );
}

/** One block grows. */
function messagesDeltas(parts: string, contentBlock: JsonObject, delta: (i: number) => JsonObject): Flood {
  return messages(parts, (n) => [
    { type: 'content_block_start', index: 0, content_block: contentBlock },
    ...times(n, (i) => ({ type: 'content_block_delta', index: 0, delta: delta(i) })),
    { type: 'content_block_stop', index: 0 },
  ]);
}

const messagesCitation = (i: number): JsonObject => ({
  type: 'web_search_result_location',
  url: `${URL}${i}`,
  title: 't',
  cited_text: 'c',
  encrypted_index: 'e',
});
/** Answers of the wire `anthropic-messages`. */
export const messagesFloods: readonly Flood[] = [
  messagesBlocks('calls', (i) => ({ type: 'tool_use', id: `toolu_${i}`, name: 'f', input: {} })),
  messagesBlocks('texts', () => ({ type: 'text', text: 'a' })),
  messagesBlocks('cited texts', (i) => ({ type: 'text', text: 'a', citations: [messagesCitation(i)] })),
  messages(
    'citations of one text',
    (n) => [
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '', citations: [] } },
      ...times(n, (i) => ({
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'citations_delta', citation: messagesCitation(i) },
      })),
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'a' } },
      { type: 'content_block_stop', index: 0 },
    ],
    (n) => [{ type: 'text', text: 'a', citations: times(n, messagesCitation) }],
  ),
  messagesBlocks('thoughts', (i) => ({ type: 'thinking', thinking: 'a', signature: `c2ln${i}` })),
  messagesBlocks('sealed thoughts', (i) => ({ type: 'redacted_thinking', data: `QQ${i}` })),
  messagesBlocks('blocks of its own', (i) => ({ type: 'server_tool_use', id: `s${i}`, name: 'web_search', input: {} })),
  messagesDeltas('fields of a block of its own', { type: 'server_tool_use', id: 's' }, (i) => ({
    type: 'x_delta',
    [`field_${i}`]: i,
  })),
  messagesDeltas('pieces of a call', { type: 'tool_use', id: 't', name: 'f', input: {} }, (i) => ({
    type: 'input_json_delta',
    partial_json: i === 0 ? '{"a":"}' : '}',
  })),
  messagesDeltas('pieces of a cited text', { type: 'text', text: '', citations: [] }, (i) =>
    i % 2 === 0
      ? { type: 'text_delta', text: 'a' }
      : {
          type: 'citations_delta',
          citation: {
            type: 'char_location',
            document_index: i,
            document_title: 't',
            cited_text: 'c',
            start_char_index: 0,
            end_char_index: 1,
          },
        },
  ),
  messagesDeltas('pieces of a thought, each signed', { type: 'thinking', thinking: '', signature: '' }, (i) =>
    i % 2 === 0 ? { type: 'thinking_delta', thinking: 'a' } : { type: 'signature_delta', signature: `c2ln${i}` },
  ),
  messagesBlocks('results of its own search', (i) => ({
    type: 'web_search_tool_result',
    tool_use_id: `s${i}`,
    content: [{ type: 'web_search_result', url: `${URL}${i}`, title: 't', encrypted_content: 'e' }],
  })),
  messages('fields of the message', (n) =>
    times(n, (i) => ({ type: 'message_delta', delta: { [`field_${i}`]: i }, usage: { output_tokens: i } })),
  ),
  messages('counts of usage with fields', (n) => [
    {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn' },
      usage: {
        output_tokens: 1,
        iterations: times(10, () => ({ type: 'compaction', input_tokens: 1 })),
        ...Object.fromEntries(times(n, (i) => [`u${i}`, i])),
      },
    },
    ...times(n, (i) => ({ type: 'message_delta', delta: {}, usage: { output_tokens: i } })),
  ]),
  messages('blocks that are open at once', (n) => [
    ...times(n, (index) => ({
      type: 'content_block_start',
      index,
      content_block: { type: 'tool_use', id: `t${index}`, name: 'f', input: {} },
    })),
    ...times(n, (index) => ({
      type: 'content_block_delta',
      index,
      delta: { type: 'input_json_delta', partial_json: '{}' },
    })),
  ]),
];
