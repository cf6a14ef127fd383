import type { JsonObject, JsonValue } from '../../../src/schemas/json.ts';
import { type Flood, type FloodEvent, frames, times, URL } from './flood.ts';

const converseEnd: FloodEvent[] = [
  ['messageStop', { stopReason: 'end_turn' }],
  ['metadata', { usage: { inputTokens: 3, outputTokens: 5, totalTokens: 8 } }],
];

function converse(parts: string, events: (n: number) => FloodEvent[], content?: (n: number) => JsonValue[]): Flood {
  return {
    wire: 'bedrock-converse',
    parts,
    stream: (n) => frames([['messageStart', { role: 'assistant' }], ...events(n), ...converseEnd]),
    ...(content === undefined
      ? {}
      : {
          whole: (n) => ({
            output: { message: { role: 'assistant', content: content(n) } },
            stopReason: 'end_turn',
            usage: { inputTokens: 3, outputTokens: 5, totalTokens: 8 },
          }),
        }),
  };
}

const converseDelta = (contentBlockIndex: number, delta: JsonObject): FloodEvent => [
  'contentBlockDelta',
  { contentBlockIndex, delta },
];
const converseStop = (contentBlockIndex: number): FloodEvent => ['contentBlockStop', { contentBlockIndex }];
const converseCitation = (i: number): JsonObject => ({
  title: 't',
  location: { web: { url: `${URL}${i}` } },
  sourceContent: [{ text: 'c' }],
});
const documentCitation = (i: number): JsonObject => ({
  title: 't',
  location: { documentChar: { documentIndex: i, start: 0, end: 1 } },
  sourceContent: [{ text: 'c' }],
});
/** Answers of the wire `bedrock-converse`. */
export const converseFloods: readonly Flood[] = [
  converse(
    'calls',
    (n) =>
      times(n, (i): FloodEvent[] => [
        ['contentBlockStart', { contentBlockIndex: i, start: { toolUse: { toolUseId: `t${i}`, name: 'f' } } }],
        converseStop(i),
      ]).flat(),
    (n) => times(n, (i) => ({ toolUse: { toolUseId: `t${i}`, name: 'f', input: {} } })),
  ),
  converse(
    'texts',
    (n) => times(n, (i): FloodEvent[] => [converseDelta(i, { text: 'a' }), converseStop(i)]).flat(),
    (n) => times(n, () => ({ text: 'a' })),
  ),
  converse(
    'citations of one text',
    (n) => [
      converseDelta(0, { text: 'a' }),
      ...times(n, (i) => converseDelta(0, { citation: converseCitation(i) })),
      converseStop(0),
    ],
    (n) => [{ citationsContent: { content: [{ text: 'a' }], citations: times(n, converseCitation) } }],
  ),
  converse(
    'cited texts',
    (n) =>
      times(n, (i): FloodEvent[] => [
        converseDelta(i, { text: 'a', citation: converseCitation(i) }),
        converseStop(i),
      ]).flat(),
    (n) => times(n, (i) => ({ citationsContent: { content: [{ text: 'a' }], citations: [converseCitation(i)] } })),
  ),
  converse(
    'thoughts',
    (n) =>
      times(n, (i): FloodEvent[] => [
        converseDelta(i, { reasoningContent: { text: 'a' } }),
        converseDelta(i, { reasoningContent: { signature: 'c2ln' } }),
        converseStop(i),
      ]).flat(),
    (n) => times(n, () => ({ reasoningContent: { reasoningText: { text: 'a', signature: 'c2ln' } } })),
  ),
  converse(
    'pieces of a picture',
    (n) => [
      ['contentBlockStart', { contentBlockIndex: 0, start: { image: { format: 'png' } } }],
      ...times(n, () => converseDelta(0, { image: { source: { bytes: 'QQ==' } } })),
      converseStop(0),
    ],
    (n) => times(n, () => ({ image: { format: 'png', source: { bytes: 'QQ==' } } })),
  ),
  converse('pieces of a call', (n) => [
    ['contentBlockStart', { contentBlockIndex: 0, start: { toolUse: { toolUseId: 't', name: 'f' } } }],
    ...times(n, (i) => converseDelta(0, { toolUse: { input: i === 0 ? '{"a":"}' : '}' } })),
    converseStop(0),
  ]),
  converse('pieces of a thought, each signed', (n) => [
    ...times(n, (i) => converseDelta(0, { reasoningContent: i % 2 === 0 ? { text: 'a' } : { signature: 'c2ln' } })),
    converseStop(0),
  ]),
  converse(
    'sealed thoughts',
    (n) =>
      times(n, (i): FloodEvent[] => [
        converseDelta(i, { reasoningContent: { redactedContent: 'QQ==' } }),
        converseStop(i),
      ]).flat(),
    (n) => times(n, () => ({ reasoningContent: { redactedContent: 'QQ==' } })),
  ),
  converse(
    'citations of documents',
    (n) => [
      converseDelta(0, { text: 'a' }),
      ...times(n, (i) => converseDelta(0, { citation: documentCitation(i) })),
      converseStop(0),
    ],
    (n) => [{ citationsContent: { content: [{ text: 'a' }], citations: times(n, documentCitation) } }],
  ),
  converse('blocks that are open at once', (n) => [
    ...times(
      n,
      (i): FloodEvent => [
        'contentBlockStart',
        { contentBlockIndex: i, start: { toolUse: { toolUseId: `t${i}`, name: 'f' } } },
      ],
    ),
    ...times(n, (i) => converseDelta(i, { toolUse: { input: '{}' } })),
  ]),
];
