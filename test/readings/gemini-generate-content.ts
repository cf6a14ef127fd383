/** Reads recorded answers of the Gemini wire without using the gateway's code. */
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { array, object, type Recording } from './recordings.ts';

export interface GeminiReading {
  text: string;
  /** The shown reasoning of the model. */
  thoughts: string;
  /** Every signature outside the objects of Google's own tools, in order. */
  signatures: string[];
  calls: { id: string; name: string; args: JsonValue }[];
  /** Parts that have no place in a chat message. */
  natives: number;
  /** The equivalent public finish reason. */
  finish: string;
  native_finish: string;
  /** The cited addresses, with the text that cites them. */
  citations: { url: string; text: string | undefined }[];
  tokens: { prompt: number; cached: number; completion: number; thoughts: number } | undefined;
}

/** A message of a live session: not an answer of this wire. */
export const LIVE: ReadonlySet<string> = new Set(['google-ai-studio--events-google-live-speech-translation.json']);

/** The bytes of a recorded answer, in the stream framing of this wire. */
export function geminiBytes({ response: { text, events, json } }: Recording): Uint8Array {
  const framed = (events ?? []).map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`).join('');
  return new TextEncoder().encode(text ?? (json === undefined ? framed : JSON.stringify(json)));
}

/** Whether a recorded answer is a stream. */
export function isGeminiStream({ response: { text, events } }: Recording): boolean {
  return events !== undefined || (text !== undefined && !text.trimStart().startsWith('{'));
}

/** The content of an answer, whole or streamed. */
export function readGemini(recording: Recording): GeminiReading {
  const { text, events, json } = recording.response;
  if (json !== undefined) return readEvents([object(json)]);
  if (events !== undefined) return readEvents(events.map(object));
  if (!isGeminiStream(recording)) return readEvents([object(JSON.parse(text!))]);
  const data = text!.split(/\r?\n/).filter((line) => line.startsWith('data:'));
  return readEvents(data.map((line) => object(JSON.parse(line.slice('data:'.length)))));
}

function readEvents(events: JsonObject[]): GeminiReading {
  const candidates = events.flatMap((event) => array(event['candidates']).map(object));
  const parts = candidates.flatMap((candidate) => array(object(candidate['content'])['parts']).map(object));
  const reason = candidates.findLast((candidate) => candidate['finishReason'] !== undefined)?.['finishReason'];
  const blocked = events.map((event) => object(event['promptFeedback'])['blockReason']).find(Boolean);
  const nativeFinish = String(reason ?? blocked);
  const calls = nativeFinish === 'UNEXPECTED_TOOL_CALL' ? [] : readCalls(parts);
  const grounding = candidates.findLast((one) => object(one['groundingMetadata'])['groundingSupports'] !== undefined);
  const usage = events.findLast((event) => object(event['usageMetadata'])['totalTokenCount'] !== undefined);
  const isProse = (part: JsonObject) => part['text'] !== undefined;
  const prose = (isThought: boolean) =>
    parts.flatMap((part) => (isProse(part) && (part['thought'] === true) === isThought ? [part['text']] : [])).join('');
  const hidden = nativeFinish === 'UNEXPECTED_TOOL_CALL';
  const own = parts.filter((part) => isProse(part) || (part['functionCall'] !== undefined && !hidden));
  return {
    text: prose(false),
    thoughts: prose(true),
    signatures: own.flatMap((part) =>
      part['thoughtSignature'] === undefined ? [] : [String(part['thoughtSignature'])],
    ),
    calls,
    natives: parts.filter((part) => !isProse(part) && part['functionCall'] === undefined).length,
    finish: publicFinish(nativeFinish, calls.length),
    native_finish: nativeFinish,
    citations: readCitations(object(grounding?.['groundingMetadata'])),
    tokens: usage === undefined ? undefined : readTokens(object(usage['usageMetadata'])),
  };
}

/** Calls arrive whole, or their arguments arrive value by value until the call that has no continuation. */
function readCalls(parts: JsonObject[]): GeminiReading['calls'] {
  const calls: GeminiReading['calls'] = [];
  for (const { functionCall } of parts) {
    if (functionCall === undefined) continue;
    const { id, name, args, partialArgs } = object(functionCall);
    if (name !== undefined) calls.push({ id: String(id ?? ''), name: String(name), args: args ?? {} });
    for (const piece of array(partialArgs).map(object)) place(calls.at(-1)!, piece);
  }
  return calls;
}

function place(call: { args: JsonValue }, piece: JsonObject): void {
  const steps = String(piece['jsonPath']).match(/[A-Za-z_]\w*|\d+/g) ?? [];
  let at = call.args as Record<string, JsonValue>;
  steps.slice(0, -1).forEach((step, i) => {
    at[step] ??= /^\d+$/.test(steps[i + 1]!) ? [] : {};
    at = at[step] as Record<string, JsonValue>;
  });
  const last = steps.at(-1)!;
  at[last] = piece['numberValue'] ?? `${at[last] ?? ''}${piece['stringValue']}`;
}

function publicFinish(reason: string, calls: number): string {
  if (reason === 'STOP') return calls > 0 ? 'tool_calls' : 'stop';
  if (reason === 'MAX_TOKENS') return 'length';
  return reason === 'UNEXPECTED_TOOL_CALL' ? 'error' : 'content_filter';
}

function readCitations(grounding: JsonObject): GeminiReading['citations'] {
  const chunks = array(grounding['groundingChunks']).map(object);
  return array(grounding['groundingSupports'])
    .map(object)
    .flatMap((support) =>
      array(support['groundingChunkIndices']).flatMap((index) => {
        const url = object(chunks[Number(index)]?.['web'])['uri'];
        const text = object(support['segment'])['text'];
        return url === undefined ? [] : [{ url: String(url), text: text === undefined ? undefined : String(text) }];
      }),
    );
}

function readTokens(usage: JsonObject): NonNullable<GeminiReading['tokens']> {
  const count = (name: string) => Number(usage[name] ?? 0);
  const prompt = count('promptTokenCount') + count('toolUsePromptTokenCount');
  return {
    prompt,
    cached: count('cachedContentTokenCount'),
    // The total is the sum of all four, which the provider bills.
    completion: count('totalTokenCount') - prompt,
    thoughts: count('thoughtsTokenCount'),
  };
}
