import type { JsonObject } from '../../../src/schemas/json.ts';
import { type Flood, frames, times, URL } from './flood.ts';

const chatUsage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 };
const chatDelta = (delta: JsonObject, more: JsonObject = {}): JsonObject => ({
  id: 'c',
  choices: [{ index: 0, delta, ...more }],
});
const chatEnd: JsonObject = { id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: chatUsage };

function chat(parts: string, each: (i: number, n: number) => JsonObject, message?: (n: number) => JsonObject): Flood {
  return {
    wire: 'openai-chat',
    parts,
    stream: (n) => frames([chatDelta({ role: 'assistant', content: 'A' }), ...times(n, (i) => each(i, n)), chatEnd]),
    ...(message === undefined
      ? {}
      : {
          whole: (n) => ({
            id: 'c',
            choices: [{ index: 0, message: { role: 'assistant', ...message(n) }, finish_reason: 'stop' }],
            usage: chatUsage,
          }),
        }),
  };
}

const chatCall = (i: number): JsonObject => ({
  index: i,
  id: `call_${i}`,
  type: 'function',
  function: { name: 'f', arguments: '{}' },
});
const chatCitation = (i: number): JsonObject => ({
  type: 'url_citation',
  url_citation: { url: `${URL}${i}`, title: 't', start_index: i, end_index: i + 1 },
});
const chatFile = (i: number): JsonObject => ({
  type: 'file',
  file: { hash: `h${i}`, name: 'f.pdf', content: [{ type: 'text', text: 'a' }] },
});
const chatToken: JsonObject = {
  token: 'a',
  logprob: -1,
  bytes: [97],
  top_logprobs: [{ token: 'b', logprob: -2, bytes: [98] }],
};
/** Answers of the wire `openai-chat`. */
export const chatFloods: readonly Flood[] = [
  chat(
    'calls',
    (i) => chatDelta({ tool_calls: [chatCall(i)] }),
    (n) => ({ tool_calls: times(n, chatCall) }),
  ),
  chat('calls without an index', (i) =>
    chatDelta({ tool_calls: [{ id: `call_${i}`, function: { name: 'f', arguments: '{}' } }] }),
  ),
  chat('calls that are never named', (i) => chatDelta({ tool_calls: [{ index: i, function: { arguments: '{' } }] })),
  chat('calls at places far apart', (i) =>
    chatDelta({ tool_calls: [{ ...chatCall(i), index: i % 2 === 0 ? i * 1_000_003 : -i }] }),
  ),
  chat('pieces of one call', (i) =>
    chatDelta({ tool_calls: [{ index: 0, id: `call_${i}`, function: { arguments: i === 0 ? '{"a":"}' : '}' } }] }),
  ),
  chat('pieces of one named call', (i) =>
    chatDelta({ tool_calls: [{ index: 0, function: { name: 'f', arguments: i === 0 ? '{"a":"}' : '}' } }] }),
  ),
  chat('pieces of two calls in turn', (i) =>
    chatDelta({
      tool_calls: [
        {
          index: i % 2,
          ...(i < 2 ? { id: `call_${i}` } : {}),
          function: { ...(i < 2 ? { name: 'f' } : {}), arguments: i < 2 ? '{"a":"}' : '}' },
        },
      ],
    }),
  ),
  chat(
    'citations',
    (i) => chatDelta({ content: i % 2 === 0 ? 'é' : '', annotations: [chatCitation(i)] }),
    (n) => ({ content: 'a'.repeat(n), annotations: times(n, chatCitation) }),
  ),
  chat('citations of a text that comes after them', (i, n) =>
    i < n / 2
      ? chatDelta({ annotations: [chatCitation(i)] })
      : chatDelta({ content: 'a', annotations: [chatCitation(0)] }),
  ),
  chat(
    'parts of content, each cited',
    (i) =>
      chatDelta({
        content: [
          { type: 'text', text: 'a' },
          { type: 'thinking', thinking: [{ text: 'b' }] },
        ],
        annotations: [chatCitation(i)],
      }),
    (n) => ({
      content: times(n, (i) => (i % 2 === 0 ? { type: 'text', text: 'a' } : { type: 'thinking', thinking: 'b' })),
      annotations: times(n, chatCitation),
    }),
  ),
  chat(
    'reasoning details',
    (i) => chatDelta({ reasoning_details: [{ type: 'reasoning.text', text: 'a', index: i }] }),
    (n) => ({ content: 'a', reasoning_details: times(n, (i) => ({ type: 'reasoning.text', text: 'a', index: i })) }),
  ),
  chat('sealed reasoning between texts', (i) =>
    chatDelta(
      i % 2 === 0 ? { content: 'a' } : { reasoning_details: [{ type: 'reasoning.encrypted', data: 'QQ==', index: i }] },
    ),
  ),
  chat(
    'images',
    (i) => chatDelta({ images: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${i}` } }] }),
    (n) => ({ content: 'a', images: times(n, (i) => ({ type: 'image_url', image_url: { url: `data:,${i}` } })) }),
  ),
  chat(
    'runs of tools of its own',
    (i) =>
      chatDelta({
        executed_tools: [{ index: i, type: 'search', arguments: '{}', search_results: { results: [{ url: URL }] } }],
      }),
    (n) => ({ content: 'a', executed_tools: times(n, (i) => ({ index: i, type: 'search' })) }),
  ),
  chat('token probabilities', (i) =>
    chatDelta(
      { content: 'a' },
      { logprobs: { content: [{ token: 'a', logprob: -i, bytes: [97], top_logprobs: [] }] } },
    ),
  ),
  chat(
    'files beside a text',
    (i) => chatDelta({ annotations: [chatFile(i)] }),
    (n) => ({ content: 'a', annotations: times(n, chatFile) }),
  ),
  chat('pieces of one reasoning item, and its signature', (i) =>
    chatDelta({ reasoning_details: [{ type: 'reasoning.text', text: 'a', signature: `c2ln${i}`, index: 0 }] }),
  ),
  chat('pieces of one summary', (i) =>
    chatDelta({ reasoning_details: [{ type: 'reasoning.summary', summary: 'a', id: `r${i % 2}`, index: 0 }] }),
  ),
  chat('reasoning and text in turn', (i) => chatDelta(i % 2 === 0 ? { reasoning_content: 'a' } : { content: 'a' })),
  chat('pieces of a refusal', () => chatDelta({ refusal: 'a' })),
  chat('probabilities of one event', (i, n) =>
    chatDelta(
      { content: 'a' },
      i === 0 ? { logprobs: { content: times(n, () => chatToken) } } : { logprobs: { refusal: [chatToken] } },
    ),
  ),
  {
    wire: 'openai-chat',
    parts: 'token probabilities of a whole answer',
    whole: (n) => ({
      id: 'c',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'a'.repeat(n) },
          logprobs: { content: times(n, () => chatToken) },
          finish_reason: 'stop',
        },
      ],
      usage: chatUsage,
    }),
  },
  chat('choices', (i) => ({ id: 'c', choices: times(3, (j) => ({ index: i * j, delta: { content: 'a' } })) })),
  chat('counts of usage', (i) => ({
    ...chatDelta({ content: 'a' }),
    usage: { ...chatUsage, completion_tokens: i + 1 },
  })),
  chat('sources beside the answer', (i) => ({
    ...chatDelta({ content: 'a' }),
    ...(i === 0 ? { citations: times(50, (j) => `${URL}${j}`) } : {}),
  })),
];
