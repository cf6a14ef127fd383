import type { JsonObject } from '../../../src/schemas/json.ts';
import { type Flood, frames, times, URL } from './flood.ts';

const cohereEnd: JsonObject = {
  type: 'message-end',
  delta: { finish_reason: 'COMPLETE', usage: { tokens: { input_tokens: 3, output_tokens: 5 } } },
};

function cohere(parts: string, events: (n: number) => JsonObject[], message?: (n: number) => JsonObject): Flood {
  return {
    wire: 'cohere-chat',
    parts,
    stream: (n) => frames([{ type: 'message-start', id: 'c' }, ...events(n), cohereEnd]),
    ...(message === undefined
      ? {}
      : {
          whole: (n) => ({
            id: 'c',
            finish_reason: 'COMPLETE',
            message: { role: 'assistant', ...message(n) },
            usage: { tokens: { input_tokens: 3, output_tokens: 5 } },
          }),
        }),
  };
}

const cohereCitation = (i: number, contentIndex = 0): JsonObject => ({
  start: 0,
  end: 1,
  text: 'a',
  type: 'TEXT_CONTENT',
  content_index: contentIndex,
  sources: [{ type: 'document', document: { url: `${URL}${i}`, title: 't' } }],
});
const cohereText = (index: number, content: JsonObject): JsonObject => ({
  type: 'content-delta',
  index,
  delta: { message: { content } },
});
const cohereSources = (n: number): JsonObject => ({
  ...cohereCitation(0),
  sources: times(n, (i) => ({ type: 'tool', id: `t${i}`, tool_output: { url: `${URL}${i}`, title: 't' } })),
});
/** Answers of the wire `cohere-chat`. */
export const cohereFloods: readonly Flood[] = [
  cohere(
    'calls',
    (n) =>
      times(n, (index): JsonObject[] => [
        {
          type: 'tool-call-start',
          index,
          delta: {
            message: { tool_calls: { id: `t${index}`, type: 'function', function: { name: 'f', arguments: '{}' } } },
          },
        },
        { type: 'tool-call-end', index },
      ]).flat(),
    (n) => ({
      tool_calls: times(n, (i) => ({ id: `t${i}`, type: 'function', function: { name: 'f', arguments: '{}' } })),
    }),
  ),
  cohere(
    'texts, each cited',
    (n) =>
      times(n, (i) => [
        cohereText(i, { text: 'a' }),
        { type: 'citation-start', index: i, delta: { message: { citations: cohereCitation(i, i) } } },
      ]).flat(),
    (n) => ({
      content: times(n, () => ({ type: 'text', text: 'a' })),
      citations: times(n, (i) => cohereCitation(i, i)),
    }),
  ),
  cohere(
    'citations of one text',
    (n) => [
      cohereText(0, { text: 'a' }),
      ...times(n, (i) => ({ type: 'citation-start', index: i, delta: { message: { citations: cohereCitation(i) } } })),
    ],
    (n) => ({ content: [{ type: 'text', text: 'a' }], citations: times(n, (i) => cohereCitation(i)) }),
  ),
  cohere('pieces of a call', (n) => [
    {
      type: 'tool-call-start',
      index: 0,
      delta: { message: { tool_calls: { id: 't', type: 'function', function: { name: 'f', arguments: '' } } } },
    },
    ...times(n, (i) => ({
      type: 'tool-call-delta',
      index: 0,
      delta: { message: { tool_calls: { function: { arguments: i === 0 ? '{"a":"}' : '}' } } } },
    })),
    { type: 'tool-call-end', index: 0 },
  ]),
  cohere('pieces of a plan', (n) =>
    times(n, () => ({ type: 'tool-plan-delta', delta: { message: { tool_plan: 'a' } } })),
  ),
  cohere(
    'sources of one citation',
    (n) => [
      cohereText(0, { text: 'a' }),
      { type: 'citation-start', index: 0, delta: { message: { citations: cohereSources(n) } } },
    ],
    (n) => ({ content: [{ type: 'text', text: 'a' }], citations: [cohereSources(n)] }),
  ),
  cohere(
    'thoughts between texts',
    (n) => times(n, (i) => cohereText(i, i % 2 === 0 ? { text: 'a' } : { thinking: 'a' })),
    (n) => ({
      content: times(n, (i) => (i % 2 === 0 ? { type: 'text', text: 'a' } : { type: 'thinking', thinking: 'a' })),
    }),
  ),
];
