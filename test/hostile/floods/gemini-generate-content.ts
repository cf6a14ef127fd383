import type { JsonObject, JsonValue } from '../../../src/schemas/json.ts';
import { type Flood, frames, times, URL } from './flood.ts';

const geminiUsage = (i: number): JsonObject => ({
  promptTokenCount: 3,
  candidatesTokenCount: i + 1,
  totalTokenCount: i + 4,
});
const geminiEvent = (parts: JsonValue[], more: JsonObject = {}, i = 0): JsonObject => ({
  responseId: 'r',
  candidates: [{ content: { role: 'model', parts }, ...more }],
  usageMetadata: geminiUsage(i),
});
const geminiEnd = (more: JsonObject = {}): JsonObject => geminiEvent([], { finishReason: 'STOP', ...more });

function gemini(parts: string, events: (n: number) => JsonObject[], whole?: (n: number) => JsonObject): Flood {
  return {
    wire: 'gemini-generate-content',
    parts,
    stream: (n) => frames(events(n)),
    ...(whole === undefined ? {} : { whole }),
  };
}

function geminiParts(parts: string, part: (i: number) => JsonObject): Flood {
  return gemini(
    parts,
    (n) => [...times(n, (i) => geminiEvent([part(i)], {}, i)), geminiEnd()],
    (n) => geminiEvent(times(n, part), { finishReason: 'STOP' }),
  );
}

const grounded = (n: number): JsonObject => ({
  groundingMetadata: {
    groundingChunks: times(n, (i) => ({ web: { uri: `${URL}${i}`, title: 't' } })),
    groundingSupports: times(n, (i) => ({
      segment: { startIndex: i, endIndex: 2 * n, ...(i % 2 === 0 ? {} : { text: 'éé' }) },
      groundingChunkIndices: [i, 1e9, -1, 0.5],
    })),
    webSearchQueries: times(n, (i) => `q${i}`),
  },
});
/** As long for every number of citations: a place in it is found by halves. */
const CITED_TEXT = 'a'.repeat(2_000);
const cited = (n: number): JsonObject => ({
  citationMetadata: { citationSources: times(n, (i) => ({ startIndex: i, endIndex: i + 1, uri: `${URL}${i}` })) },
  urlContextMetadata: { urlMetadata: times(n, (i) => ({ retrievedUrl: `${URL}${i}`, urlRetrievalStatus: 'OK' })) },
});
/** Answers of the wire `gemini-generate-content`. */
export const geminiFloods: readonly Flood[] = [
  geminiParts('calls', (i) => ({ functionCall: { id: `c${i}`, name: 'f', args: {} } })),
  geminiParts('thoughts with signatures', (i) => ({ text: 'a', thought: true, thoughtSignature: `c2ln${i}` })),
  geminiParts('texts with signatures', (i) => ({ text: 'a', thoughtSignature: `c2ln${i}` })),
  geminiParts('pictures', () => ({ inlineData: { mimeType: 'image/png', data: 'QQ==' } })),
  geminiParts('sounds', () => ({ inlineData: { mimeType: 'audio/L16', data: 'QQ==' } })),
  geminiParts('blocks of its own', (i) => ({ executableCode: { language: 'PYTHON', code: `${i}` } })),
  gemini(
    'grounds',
    (n) => [geminiEvent([{ text: 'é'.repeat(n) }]), geminiEnd(grounded(n))],
    (n) => geminiEvent([{ text: 'é'.repeat(n) }], { finishReason: 'STOP', ...grounded(n) }),
  ),
  gemini('queries, a few in each event', (n) => [
    ...times(n, (i) =>
      geminiEvent([{ text: 'a' }], { groundingMetadata: { webSearchQueries: [`q${i}`], [`g${i}`]: i } }, i),
    ),
    geminiEnd(),
  ]),
  gemini('fields of the answer', (n) => [
    ...times(n, (i) => ({ ...geminiEvent([{ text: 'a' }], { [`c${i}`]: i }, i), [`r${i}`]: i })),
    geminiEnd(),
  ]),
  gemini('pieces of arguments', (n) => [
    geminiEvent([{ functionCall: { name: 'f', willContinue: true } }]),
    ...times(n, (i) =>
      geminiEvent(
        [
          {
            functionCall: {
              willContinue: true,
              partialArgs: [
                { jsonPath: `$.a[${i}]`, stringValue: 'a' },
                { jsonPath: '$.b', stringValue: 'a' },
              ],
            },
          },
        ],
        {},
        i,
      ),
    ),
    geminiEvent([{ functionCall: {} }]),
    geminiEnd(),
  ]),
  gemini(
    'citations and pages that were read',
    (n) => [geminiEvent([{ text: CITED_TEXT }]), geminiEnd(cited(n))],
    (n) => geminiEvent([{ text: CITED_TEXT }], { finishReason: 'STOP', ...cited(n) }),
  ),
  gemini('the same sources in each event', (n) => [
    ...times(n, (i) => geminiEvent([{ text: 'é' }], grounded(2), i)),
    geminiEnd(grounded(2)),
  ]),
  geminiParts('files', (i) => ({ fileData: { mimeType: 'image/png', fileUri: `${URL}${i}` } })),
  gemini('thoughts and texts in turn', (n) => [
    ...times(n, (i) => geminiEvent([i % 2 === 0 ? { text: 'a', thought: true } : { text: 'a' }], {}, i)),
    geminiEnd(),
  ]),
  gemini('token probabilities', (n) => [
    ...times(n, (i) =>
      geminiEvent([{ text: 'a' }], { logprobsResult: { chosenCandidates: [{ token: 'a', logProbability: -1 }] } }, i),
    ),
    geminiEnd(),
  ]),
];
