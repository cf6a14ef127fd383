import { describe, expect, test } from 'vitest';
import { bedrockConverse } from '../../src/providers/bedrock-converse/index.ts';
import type { AttemptState } from '../../src/providers/dialect.ts';
import { createFramer } from '../../src/providers/transport/frames.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatCompletion, ChatRequest, FunctionTool, InnerPart, Message } from '../../src/schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import {
  type ConverseReading,
  converseBytes,
  converseRequest,
  frameConverse,
  isClaude,
  readConverse,
  readConverseStream,
} from '../readings/bedrock-converse.ts';
import { array, atLeast, object, recordingsOf, whySkipped } from '../readings/recordings.ts';

const recordings = recordingsOf('bedrock-converse');
const isThere = recordings.length > 0;
const why = whySkipped(recordings, 'bedrock-converse');

/** Up to this size a stream is cut at every byte; above it, at this many evenly spread places and once into single bytes. */
const CUT_EVERYWHERE_BYTES_MAX = 6_000;
const CUTS = 400;

test.skipIf(isThere)(`the recordings are absent${why}`, () => {});

describe.runIf(isThere)('recorded answers', () => {
  test('all recordings are there', () => expect(recordings.length).toBeGreaterThanOrEqual(atLeast(50)));

  for (const { name, recording } of recordings) {
    const { response } = recording;
    const isClaudeModel = isClaude(recording);
    const state: AttemptState = { generation_id: 'gen-recorded', is_claude: isClaudeModel };
    if (response.status !== 200) {
      test(`${name}: the error is classified`, () => {
        const error = bedrockConverse.decodeError(response.status, {}, JSON.stringify(response.json));
        expect([error.message, error.status]).toEqual([object(response.json)['message'], response.status]);
        expect(error.failure).toBe(/identifier is invalid/.test(error.message) ? 'not_found' : 'invalid_request');
      });
    } else if (response.json !== undefined) {
      const body = object(response.json);
      test(`${name}: is read like the raw body`, () => {
        expect(essence(accumulate(bedrockConverse.decodeResponse(body, state), 0))).toEqual(
          readConverse(body, isClaudeModel),
        );
      });
      test(`${name}: streamed, the same answer accumulates to the same completion`, () => {
        const whole = accumulate(bedrockConverse.decodeResponse(body, state), 0);
        expect(decode(frameConverse(streamOf(body)), [], state)).toEqual(whole);
      });
    } else {
      const bytes = converseBytes(recording);
      test(`${name}: is read like the raw stream, wherever it is cut`, () => {
        expect(essence(decode(bytes, [], state))).toEqual(readConverseStream(bytes, isClaudeModel));
        const whole = JSON.stringify(decode(bytes, [], state));
        const step = bytes.length <= CUT_EVERYWHERE_BYTES_MAX ? 1 : Math.ceil(bytes.length / CUTS);
        for (let at = 1; at < bytes.length; at += step) {
          if (JSON.stringify(decode(bytes, [at], state)) !== whole) expect.fail(`differs when cut at byte ${at}`);
        }
        const everywhere = Array.from({ length: bytes.length - 1 }, (_, i) => i + 1);
        expect(JSON.stringify(decode(bytes, everywhere, state))).toBe(whole);
      });
    }
  }
});

// ---- Requests that the provider accepted are unchanged after translation to and from the inner language; two that it
// refused are not.

describe.runIf(isThere)('recorded requests are unchanged, up to the normal forms', () => {
  for (const { name, recording } of recordings) {
    const body = converseRequest(recording);
    if (body === undefined) continue;
    test(name, () => {
      const path = recording.request!.path;
      const upstreamModel = decodeURIComponent(path.split('/')[2]!);
      const encoded = bedrockConverse.encodeRequest(
        innerOf(body, recording.stream),
        {
          model: 'unknown/unknown',
          provider: 'amazon-bedrock',
          upstream_model: upstreamModel,
          max_completion_tokens: undefined,
          context_length: undefined,
          input_modalities: ['text', 'image', 'file', 'video', 'audio'],
          quirks: {},
        },
        { media: new Map(), strip_state: false },
      );
      expect(encoded.path).toBe(path);
      if (/extraneous key \[toolResult\]/.test(JSON.stringify(recording.response.json))) {
        // Nova refused a document or video inside a result: it is sent beside it.
        const { content } = object(array(encoded.body['messages']).at(-1));
        const kinds = array(content).map((block) => Object.keys(object(block))[0]);
        expect(kinds).toEqual(['toolResult', 'text', name.includes('video') ? 'video' : 'document']);
        return;
      }
      expect(normal(encoded.body)).toEqual(normal(body));
      expect(encoded.report).toEqual([]);
    });
  }
});

/** The equivalent chat request of a client. */
function innerOf(body: JsonObject, stream: boolean): ChatRequest {
  const system = array(body['system']).map(object);
  const inference = object(body['inferenceConfig']);
  const fields = object(body['additionalModelRequestFields']);
  const tools = object(body['toolConfig']);
  const thinking = object(fields['thinking']);
  const format = object(object(object(body['outputConfig'])['textFormat'])['structure'])['jsonSchema'];
  const request: ChatRequest = {
    messages: [
      ...(system.length === 0 ? [] : [{ role: 'system' as const, content: partsOf(system) }]),
      ...array(body['messages']).map(object).flatMap(messagesOf),
    ],
    stream,
    tools: array(tools['tools'])
      .map(object)
      .reduce<(FunctionTool | { type: 'native'; wire: 'bedrock-converse'; block: JsonObject })[]>((list, tool) => {
        const spec = object(tool['toolSpec']);
        if (tool['cachePoint'] !== undefined) (list.at(-1) as FunctionTool).cache_control = { type: 'ephemeral' };
        else if (tool['toolSpec'] === undefined) list.push({ type: 'native', wire: 'bedrock-converse', block: tool });
        else {
          const { name, description, inputSchema, strict } = spec;
          list.push({
            type: 'function',
            function: {
              name: String(name),
              parameters: object(object(inputSchema)['json']),
              ...(description === undefined ? {} : { description: String(description) }),
              ...(strict === undefined ? {} : { strict: strict === true }),
            },
          });
        }
        return list;
      }, []),
  };
  const choice = object(tools['toolChoice']);
  if (choice['any'] !== undefined) request.tool_choice = 'required';
  if (choice['tool'] !== undefined) {
    request.tool_choice = { type: 'function', function: { name: String(object(choice['tool'])['name']) } };
  }
  if (typeof inference['topP'] === 'number') request.top_p = inference['topP'];
  if (typeof inference['maxTokens'] === 'number') request.max_tokens = inference['maxTokens'];
  if (typeof inference['temperature'] === 'number') request.temperature = inference['temperature'];
  const topK = fields['top_k'] ?? object(fields['inferenceConfig'])['topK'];
  if (typeof topK === 'number') request.top_k = topK;
  if (typeof thinking['budget_tokens'] === 'number') request.reasoning = { max_tokens: thinking['budget_tokens'] };
  if (format !== undefined) {
    const { schema, ...settings } = object(format);
    request.response_format = {
      type: 'json_schema',
      json_schema: { ...settings, schema: JSON.parse(String(schema)) },
    } as ChatRequest['response_format'] & object;
  }
  return request;
}

function messagesOf({ role, content }: JsonObject): Message[] {
  const blocks = array(content).map(object);
  if (role === 'assistant') {
    const message: Message = {
      role: 'assistant',
      content: partsOf(blocks.filter((block) => block['text'] !== undefined)),
    };
    const calls = blocks.flatMap((block) => (block['toolUse'] === undefined ? [] : [object(block['toolUse'])]));
    if (calls.length > 0) {
      message.tool_calls = calls.map(({ toolUseId, name, input }) => ({
        id: String(toolUseId),
        type: 'function',
        function: { name: String(name), arguments: JSON.stringify(input) },
      }));
    }
    const details = blocks.flatMap((block) =>
      block['reasoningContent'] === undefined ? [] : [object(block['reasoningContent'])],
    );
    if (details.length > 0) {
      message.reasoning_details = details.map(({ redactedContent, reasoningText }) =>
        redactedContent === undefined
          ? {
              type: 'reasoning.text',
              format: 'anthropic-claude-v1',
              ...(object(reasoningText) as { text: string; signature: string }),
            }
          : { type: 'reasoning.encrypted', format: 'anthropic-claude-v1', data: atob(String(redactedContent)) },
      );
    }
    return [message];
  }
  const results = blocks.flatMap((block) => (block['toolResult'] === undefined ? [] : [object(block['toolResult'])]));
  const parts = partsOf(blocks.filter((block) => block['toolResult'] === undefined));
  return [
    ...results.map(
      ({ toolUseId, content: blocks, status }): Message => ({
        role: 'tool',
        tool_call_id: String(toolUseId),
        content: partsOf(array(blocks).map(object)),
        ext: { wire: 'bedrock-converse', rest: { status: status! } },
      }),
    ),
    ...(parts.length === 0 ? [] : [{ role: 'user' as const, content: parts }]),
  ];
}

const MIME: Record<string, string> = {
  txt: 'text/plain',
  pdf: 'application/pdf',
  jpeg: 'image/jpeg',
  png: 'image/png',
  mp4: 'video/mp4',
};

function partsOf(blocks: JsonObject[]): InnerPart[] {
  return blocks.reduce<InnerPart[]>((parts, block) => {
    const media = object(block['image'] ?? block['document'] ?? block['video'] ?? block['audio']);
    const source = object(media['source']);
    const bytes = source['bytes'];
    const url =
      bytes === undefined
        ? String(object(source['s3Location'])['uri'])
        : `data:${MIME[String(media['format'])]};base64,${bytes}`;
    if (block['cachePoint'] !== undefined) Object.assign(parts.at(-1)!, { cache_control: { type: 'ephemeral' } });
    else if (typeof block['text'] === 'string') {
      // A blank text is refused elsewhere and never sent.
      if (block['text'].trim() !== '') parts.push({ type: 'text', text: block['text'] });
    } else if (block['image'] !== undefined) parts.push({ type: 'image_url', image_url: { url } });
    else if (block['video'] !== undefined) parts.push({ type: 'video_url', video_url: { url } });
    else if (block['document'] !== undefined) {
      parts.push({ type: 'file', file: { file_data: url, filename: String(media['name']) } });
    } else if (block['audio'] !== undefined) {
      parts.push({ type: 'input_audio', input_audio: { data: String(bytes), format: String(media['format']) } });
    } else parts.push({ type: 'native', wire: 'bedrock-converse', block });
    return parts;
  }, []);
}

/**
 * The allowed differences of translation: empty members, the default choice and blank texts are removed; schemas are
 * objects.
 */
function normal(body: JsonObject): JsonValue {
  const { system, inferenceConfig, toolConfig, outputConfig, ...others } = body;
  const { toolChoice, ...tools } = object(toolConfig);
  const { maxTokens, ...inference } = object(inferenceConfig);
  // A thinking budget requires a bound, which the recorded client left to the service.
  const isThinking = object(object(others['additionalModelRequestFields'])['thinking'])['type'] === 'enabled';
  const kept = { ...inference, ...(isThinking || maxTokens === undefined ? {} : { maxTokens }) };
  const text = JSON.stringify({
    ...others,
    ...(array(system).length === 0 ? {} : { system }),
    ...(Object.keys(kept).length === 0 ? {} : { inferenceConfig: kept }),
    ...(toolConfig === undefined
      ? {}
      : { toolConfig: { ...tools, ...(object(toolChoice)['auto'] === undefined ? { toolChoice } : {}) } }),
    ...(outputConfig === undefined ? {} : { outputConfig }),
  });
  return JSON.parse(text, (key, value: JsonValue) => {
    if (key === 'schema' && typeof value === 'string') return JSON.parse(value);
    if (key !== 'content' || !Array.isArray(value)) return value;
    return value.filter((block) => String(object(block)['text'] ?? 'x').trim() !== '');
  });
}

// ---- The parts that the tests compare: text, reasoning, calls, blocks of the provider's own, finish reason and
// counts.

function essence({ choices: [choice], ext }: ChatCompletion): ConverseReading {
  const { content } = choice.message;
  const parts = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : (content ?? []);
  const { in_uncached, in_cache_read, in_cache_write_5m, in_cache_write_1h, out_text } = ext.usage ?? {};
  return {
    text: parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
    thinking: (choice.message.reasoning_details ?? []).map((detail) => {
      if (detail.type === 'reasoning.encrypted') return { data: detail.data };
      return detail.type === 'reasoning.text' ? { text: detail.text ?? '', signature: detail.signature ?? '' } : {};
    }),
    calls: (choice.message.tool_calls ?? []).map(({ id, function: { name, arguments: text } }) => ({
      id,
      name,
      input: JSON.parse(text),
    })),
    natives: (choice.message.ext?.natives ?? []).map(({ block }) => block),
    finish: choice.finish_reason,
    native_finish: choice.native_finish_reason,
    tokens: {
      input: in_uncached,
      read: in_cache_read,
      written: in_cache_write_5m === undefined ? undefined : in_cache_write_5m + (in_cache_write_1h ?? 0),
      output: out_text,
    },
  };
}

function decode(bytes: Uint8Array, cuts: number[], state: AttemptState): ChatCompletion {
  const framer = createFramer(bedrockConverse.frames);
  const decoder = bedrockConverse.createStreamDecoder({ ...state });
  const chunks = [];
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    for (const frame of framer.push(bytes.subarray(from, to))) chunks.push(...decoder.push(frame));
    from = to;
  }
  for (const frame of framer.end()) chunks.push(...decoder.push(frame));
  chunks.push(...decoder.end());
  return accumulate(chunks, 0);
}

/** A whole answer as the service would have streamed it: texts and inputs in pieces. */
function streamOf({ output, stopReason, additionalModelResponseFields, ...metadata }: JsonObject): JsonValue[] {
  const events: JsonValue[] = [{ messageStart: { role: 'assistant', p: 'abc' } }];
  for (const [contentBlockIndex, block] of array(object(object(output)['message'])['content'])
    .map(object)
    .entries()) {
    const start = (fields: JsonObject) =>
      events.push({ contentBlockStart: { contentBlockIndex, start: fields, p: 'a' } });
    const delta = (fields: JsonObject) =>
      events.push({ contentBlockDelta: { contentBlockIndex, delta: fields, p: 'ab' } });
    const { reasoningText, redactedContent } = object(block['reasoningContent']);
    for (const piece of pieces(block['text'])) delta({ text: piece });
    if (block['toolUse'] !== undefined) {
      const { input, ...fields } = object(block['toolUse']);
      start({ toolUse: fields });
      for (const piece of pieces(JSON.stringify(input))) delta({ toolUse: { input: piece } });
    }
    for (const piece of pieces(object(reasoningText)['text'])) delta({ reasoningContent: { text: piece } });
    const { signature } = object(reasoningText);
    if (signature !== undefined) delta({ reasoningContent: { signature } });
    if (redactedContent !== undefined) delta({ reasoningContent: { redactedContent } });
    events.push({ contentBlockStop: { contentBlockIndex } });
  }
  const extra = additionalModelResponseFields === undefined ? {} : { additionalModelResponseFields };
  events.push({ messageStop: { stopReason: stopReason!, ...extra } }, { metadata });
  return events;
}

function pieces(value: JsonValue | undefined): string[] {
  return typeof value === 'string' ? (value.match(/[\s\S]{1,5}/g) ?? []) : [];
}
