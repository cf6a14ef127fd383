/**
 * Reads recorded exchanges of Amazon Bedrock's Converse without using the gateway's code; AWS's own codec reads the
 * frames.
 */
import { EventStreamCodec } from '@smithy/core/event-streams';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { array, object, type Recording } from './recordings.ts';

export interface ConverseReading {
  text: string;
  /** Reasoning, block by block: its text and signature, or its redacted data in the form of Claude itself. */
  thinking: JsonValue[];
  calls: { id: JsonValue | undefined; name: JsonValue | undefined; input: JsonValue | undefined }[];
  /** Blocks that only the provider knows: calls of its own tools and their results. */
  natives: JsonValue[];
  /** The equivalent public finish reason. */
  finish: string | null;
  native_finish: JsonValue;
  tokens: Record<'input' | 'read' | 'written' | 'output', number | undefined>;
}

const codec = new EventStreamCodec(
  (input) => (typeof input === 'string' ? input : Buffer.from(input).toString('utf8')),
  (input) => Buffer.from(input, 'utf8'),
);
const text = (value: string) => ({ type: 'string' as const, value });

/** One message of the binary event stream. */
export function converseMessage(type: string, payload: JsonValue, kind: 'event' | 'exception' = 'event'): Uint8Array {
  return codec.encode({
    headers: {
      [`:${kind}-type`]: text(type),
      ':content-type': text('application/json'),
      ':message-type': text(kind),
    },
    body: Buffer.from(JSON.stringify(payload)),
  });
}

/** The events, each an object with one member, in the framing of this wire. */
export function frameConverse(events: readonly JsonValue[]): Uint8Array {
  return Buffer.concat(
    events.flatMap((event) => Object.entries(object(event)).map(([type, payload]) => converseMessage(type, payload!))),
  );
}

/** The bytes of a recorded stream. */
export function converseBytes({ response }: Recording): Uint8Array {
  const { base64 } = response as { base64?: string };
  return base64 === undefined ? frameConverse(response.events ?? []) : Buffer.from(base64, 'base64');
}

/** The body of a recorded request, which is kept as text; undefined if there is none or it was never valid. */
export function converseRequest({ request }: Recording): JsonObject | undefined {
  const body: unknown = request?.body;
  if (typeof body !== 'string') return undefined;
  try {
    return object(JSON.parse(body));
  } catch {
    return undefined;
  }
}

/** Whether the model of a recording is a Claude. */
export function isClaude({ request }: Recording): boolean {
  return /claude/.test(request?.path ?? '');
}

/** The content of a stream. */
export function readConverseStream(bytes: Uint8Array, isClaude: boolean): ConverseReading {
  const blocks: JsonObject[] = [];
  let stopReason: JsonValue = null;
  let usage: JsonObject = {};
  const view = Buffer.from(bytes);
  for (let at = 0; at < view.length; ) {
    const length = view.readUInt32BE(at);
    const { headers, body } = codec.decode(view.subarray(at, at + length));
    at += length;
    const event = object(JSON.parse(Buffer.from(body).toString('utf8')));
    const type = String(headers[':event-type']?.value);
    const index = Number(event['contentBlockIndex']);
    if (type === 'contentBlockStart') blocks[index] = structuredClone(object(event['start']));
    if (type === 'contentBlockDelta') blocks[index] = grown(blocks[index] ?? {}, object(event['delta']));
    if (type === 'messageStop') stopReason = event['stopReason'] ?? null;
    if (type === 'metadata') usage = object(event['usage']);
  }
  for (const block of blocks) {
    const call = object(block['toolUse']);
    if (typeof call['input'] === 'string') call['input'] = JSON.parse(call['input'] || '{}');
    else if (block['toolUse'] !== undefined) call['input'] = {};
  }
  return readConverse({ output: { message: { content: blocks } }, stopReason, usage }, isClaude);
}

function grown(block: JsonObject, delta: JsonObject): JsonObject {
  const [kind] = Object.keys(delta);
  const added = delta[kind!]!;
  if (kind === 'text') return { text: String(block['text'] ?? '') + String(added) };
  if (kind === 'toolUse') {
    const call = object(block['toolUse']);
    return { toolUse: { ...call, input: String(call['input'] ?? '') + String(object(added)['input']) } };
  }
  if (kind === 'toolResult') {
    const result = object(block['toolResult']);
    return { toolResult: { ...result, content: [...array(result['content']), ...array(added)] } };
  }
  if (kind === 'reasoningContent') {
    const { redactedContent, ...fields } = object(added);
    if (redactedContent !== undefined) return { reasoningContent: { redactedContent } };
    const former = object(object(block['reasoningContent'])['reasoningText']);
    const joined = Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [name, String(former[name] ?? '') + String(value)]),
    );
    return { reasoningContent: { reasoningText: { ...former, ...joined } } };
  }
  throw new Error(`a recording holds ${kind}`);
}

/** The content of a whole answer. */
export function readConverse(answer: JsonObject, isClaude: boolean): ConverseReading {
  const blocks = array(object(object(answer['output'])['message'])['content']).map(object);
  const usage = object(answer['usage']);
  const number = (value: JsonValue | undefined) => (typeof value === 'number' ? value : undefined);
  const uses = blocks.filter((block) => block['toolUse'] !== undefined).map((block) => object(block['toolUse']));
  const own = uses.filter(({ type }) => type === undefined || type === 'tool_use');
  return {
    text: blocks.map((block) => block['text'] ?? '').join(''),
    thinking: blocks.flatMap((block): JsonObject[] => {
      const { reasoningText, redactedContent } = object(block['reasoningContent']);
      if (redactedContent !== undefined) {
        return [{ data: isClaude ? atob(String(redactedContent)) : redactedContent }];
      }
      const { text: thinking, signature } = object(reasoningText);
      return reasoningText === undefined ? [] : [{ text: thinking!, signature: signature ?? '' }];
    }),
    calls: own.map(({ toolUseId, name, input }) => ({ id: toolUseId, name, input })),
    natives: blocks.filter(
      (block) => block['toolResult'] !== undefined || object(block['toolUse'])['type'] === 'server_tool_use',
    ),
    finish: expectedFinish(answer['stopReason'], own.length),
    native_finish: answer['stopReason'] ?? null,
    tokens: {
      input: number(usage['inputTokens']),
      read: number(usage['cacheReadInputTokens']),
      written: number(usage['cacheWriteInputTokens']),
      output: number(usage['outputTokens']),
    },
  };
}

function expectedFinish(reason: JsonValue | undefined, calls: number): string {
  if (reason === 'max_tokens') return 'length';
  if (reason === 'guardrail_intervened' || reason === 'content_filtered') return 'content_filter';
  return calls > 0 ? 'tool_calls' : 'stop';
}
