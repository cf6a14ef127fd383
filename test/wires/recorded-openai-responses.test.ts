/**
 * Every recorded exchange of the Responses wire: read by the dialect at every cut, sent back, and through a running
 * gateway.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { responsesClient } from '../../src/api/responses/client.ts';
import { type AttemptState, type DialectEndpoint, UpstreamError } from '../../src/providers/dialect.ts';
import { decodeTool, decodeToolChoice } from '../../src/providers/openai-responses/declared.ts';
import { decodeInput } from '../../src/providers/openai-responses/from-wire.ts';
import { openaiResponses } from '../../src/providers/openai-responses/index.ts';
import type { Quirks } from '../../src/providers/quirks.ts';
import { createFramer } from '../../src/providers/transport/frames.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatCompletion, ChatRequest } from '../../src/schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { checkChatStream } from '../grammar/chat.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { type ClientReading, leaksOf, readAnswer, readStream } from '../readings/client.ts';
import {
  frameResponses,
  NO_ANSWER,
  RETOLD,
  type ResponsesReading,
  readResponses,
  responsesBytes,
  responsesEvents,
} from '../readings/openai-responses.ts';
import { array, atLeast, type NamedRecording, object, recordingsOf, whySkipped } from '../readings/recordings.ts';
import { responseHead, type Step, slices, startWireServer, type WireServer } from './wire-server.ts';

const recordings = recordingsOf('openai-responses');
const isThere = recordings.length > 0;
const why = whySkipped(recordings, 'openai-responses');
const isAnswer = ({ name, recording }: NamedRecording) => recording.response.status === 200 && !(name in NO_ANSWER);
const errors = recordings.filter(({ recording }) => recording.response.status !== 200);
const wholes = recordings.filter((one) => isAnswer(one) && one.recording.response.json !== undefined);
const streams = recordings.filter((one) => isAnswer(one) && one.recording.response.json === undefined);
const without = recordings.filter(({ name }) => name in NO_ANSWER);
const STATE: AttemptState = { generation_id: 'gen-recorded' };

/** Up to this size an answer is cut at every byte; above it, at this many evenly spread places and once into single bytes. */
const CUT_EVERYWHERE_BYTES_MAX = 6_000;
const CUTS = 200;

test.runIf(isThere)(`all recordings are there, and each is one of four kinds${why}`, () => {
  expect(recordings.length).toBeGreaterThanOrEqual(atLeast(80));
  expect(errors.length + wholes.length + streams.length + without.length).toBe(recordings.length);
  expect(without.length).toBe(atLeast(Object.keys(NO_ANSWER).length, 0));
});

describe.runIf(isThere)('recorded answers', () => {
  test.each(errors)('$name: the error is classified', ({ recording: { response } }) => {
    const body = response.text ?? JSON.stringify(response.json);
    const recordedError = object(object(JSON.parse(body))['error']);
    const error = openaiResponses.decodeError(response.status, {}, body);
    expect([error.message, error.native_code, error.status]).toEqual([
      recordedError['message'],
      recordedError['code'] ?? recordedError['type'],
      response.status,
    ]);
    const failures: Record<string, string> = { model_not_found: 'not_found', null: 'state_rejected' };
    expect(error.failure).toBe(failures[String(recordedError['code'])] ?? 'invalid_request');
  });

  test.each(without)('$name: other content is an error', ({ name, recording }) => {
    const read = () => {
      const { json } = recording.response;
      return json === undefined
        ? decode(responsesBytes(recording), [])
        : accumulate(openaiResponses.decodeResponse(json, STATE), 0);
    };
    expect(read).toThrow(UpstreamError);
    expect(read).toThrow(expect.objectContaining({ failure: NO_ANSWER[name]!.failure }));
  });

  test.each(wholes)('$name is read like the raw body', ({ recording }) => {
    const whole = accumulate(openaiResponses.decodeResponse(recording.response.json!, STATE), 0);
    expect(essence(whole)).toEqual(readResponses(recording));
  });

  test.each(wholes)('$name is the same when it is streamed', ({ recording }) => {
    const whole = accumulate(openaiResponses.decodeResponse(recording.response.json!, STATE), 0);
    const bytes = new TextEncoder().encode(frameResponses(streamOf(object(recording.response.json))));
    expect(decode(bytes, [])).toEqual(whole);
  });

  test.each(streams)('$name is the same as its last event', ({ name, recording }) => {
    const last = responsesEvents(recording).at(-1)!;
    const whole = accumulate(openaiResponses.decodeResponse(last['response']!, STATE), 0);
    const streamed = decode(responsesBytes(recording), []);
    if (RETOLD.has(name)) expect(streamed).not.toEqual(whole);
    else expect(streamed).toEqual(whole);
  });

  test.each(streams)(
    '$name is read like the raw stream, wherever it is cut',
    ({ recording }) => {
      const bytes = responsesBytes(recording);
      const whole = decode(bytes, []);
      expect(essence(whole)).toEqual(readResponses(recording));
      const text = JSON.stringify(whole);
      const step = bytes.length <= CUT_EVERYWHERE_BYTES_MAX ? 1 : Math.ceil(bytes.length / CUTS);
      for (let at = 1; at < bytes.length; at += step) {
        if (JSON.stringify(decode(bytes, [at])) !== text) expect.fail(`differs when cut at byte ${at}`);
      }
      const everywhere = Array.from({ length: bytes.length - 1 }, (_, i) => i + 1);
      expect(JSON.stringify(decode(bytes, everywhere))).toBe(text);
    },
    120_000,
  );
});

describe.runIf(isThere)('recorded requests are unchanged, up to the normal forms', () => {
  // The parser refuses requests that continue a stored answer.
  const selected = recordings.filter(({ recording: { request } }) => {
    return request?.body && (request.body['conversation'] ?? request.body['previous_response_id']) == null;
  });
  test.each(selected)('$name', ({ recording }) => {
    const body = recording.request!.body!;
    const { body: sent, report } = encode(body, {
      ...(body['include'] === undefined ? { no_encrypted_reasoning: true } : {}),
      plain_reasoning_items: true,
      unpriced_tools: true,
    });
    expect(report).toEqual([]);
    expect(sent['store']).toBe(false);
    const { input, tools, tool_choice, instructions } = body;
    expect(normal(pick(sent))).toEqual(normal(pick({ ...body, input, tools, tool_choice, instructions })));
  });

  test('a turn that a server refused for a text between its calls is sent with its calls last', () => {
    const one = selected.find(({ name }) => name.includes('rejects-interleaved'))!;
    const types = (quirks: Quirks) => array(encode(one.recording.request!.body!, quirks).body['input']).map(typeOf);
    const [say, call, result] = ['message', 'function_call', 'function_call_output'];
    expect(types({})).toEqual([say, call, say, call, result, result, say]);
    expect(types({ text_before_calls: true })).toEqual([say, say, call, call, result, result, say]);
  });
});

describe.runIf(isThere)('through a running gateway', () => {
  let upstream: WireServer;
  let gateway: TestGateway;
  let parts: (bytes: Uint8Array) => Step[] = (bytes) => [bytes];

  beforeAll(async () => {
    upstream = await startWireServer(({ body, path, headers }) => {
      expect([path, headers['authorization']]).toEqual(['/v1/responses', 'Bearer secret']);
      const { recording } = recordings[Number(object(JSON.parse(body))['model'])]!;
      const { json, status } = recording.response;
      if (json === undefined) {
        const type = status === 200 ? 'text/event-stream' : recording.response.content_type;
        return [responseHead(status, type), ...parts(responsesBytes(recording)), 'END'];
      }
      return [responseHead(status, 'application/json'), JSON.stringify(json), 'END'];
    });
    const endpoint = { provider: 'recorded', dialect: 'openai-responses', pricing: { prompt: 1, completion: 2 } };
    const models = Object.fromEntries(
      recordings.map((_, i) => [`recorded/responses-${i}`, { endpoints: [{ ...endpoint, upstream_model: `${i}` }] }]),
    );
    // The wire belongs to the endpoint: its provider speaks another.
    const provider = { name: 'Recorded', dialect: 'openai-chat', base_url: upstream.url, api_key: 'secret' };
    const file = { bundled_catalog: false, providers: { recorded: provider }, models, ledger: { journal_sync: 'os' } };
    gateway = await startGateway({ yaml: JSON.stringify(file) });
  });
  afterAll(async () => {
    await gateway.stop();
    await upstream.stop();
  });

  const ask = (named: NamedRecording, stream: boolean): Promise<Response> =>
    gateway.call('POST', '/chat/completions', {
      model: `recorded/responses-${recordings.indexOf(named)}`,
      stream,
      messages: [{ role: 'user', content: 'Hello' }],
    });

  test.each(wholes)('$name, whole, also to a request for a stream', async (named) => {
    const response = await ask(named, false);
    const answer = (await response.json()) as JsonObject;
    expect(response.status, JSON.stringify(answer)).toBe(200);
    expect(leaksOf(answer)).toEqual([]);
    expectRecorded(readAnswer(answer), named);
    expectRecorded(readStream(await (await ask(named, true)).text()), named);
  });

  test.each(streams)(
    '$name, streamed in one piece and in small parts',
    async (named) => {
      const { length } = responsesBytes(named.recording);
      for (const size of [length, length <= 8_000 ? 1 : 97]) {
        parts = (bytes) => slices(bytes, size);
        const body = await (await ask(named, true)).text();
        expect(leaksOf(checkChatStream(body))).toEqual([]);
        expectRecorded(readStream(body), named);
      }
    },
    60_000,
  );

  test.each([...errors, ...without])('$name, an error', async (named) => {
    parts = (bytes) => [bytes];
    const { status, json, text } = named.recording.response;
    for (const stream of [false, true]) {
      const response = await ask(named, stream);
      const { error } = (await response.json()) as { error: JsonObject };
      expect(error['code']).toBe(response.status);
      expect(object(error['metadata'])['provider_name']).toBe('Recorded');
      if (named.name in NO_ANSWER) {
        expect(response.status).toBe(NO_ANSWER[named.name]!.status);
        continue;
      }
      const recordedError = object(object(json ?? JSON.parse(text!))['error']);
      // A model that the provider does not have is not a fault of the caller.
      expect(response.status).toBe(recordedError['code'] === 'model_not_found' ? 502 : status);
      expect(error['message']).toContain(recordedError['message']);
    }
  });
});

// ---- The parts that the tests compare.

function essence({ choices: [choice], ext }: ChatCompletion): ResponsesReading {
  const { content, reasoning_details, tool_calls, refusal, annotations } = choice.message;
  const usage = ext.usage ?? {};
  const details = reasoning_details ?? [];
  const parts = typeof content === 'string' ? [{ type: 'text' as const, text: content }] : (content ?? []);
  const { in_cache_read: cached = 0, in_cache_write_5m: written = 0, out_reasoning: thinking = 0 } = usage;
  return {
    text: parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
    refusal: refusal ?? '',
    reasoning: details.flatMap((detail) =>
      detail.type === 'reasoning.summary'
        ? detail.summary
        : detail.type === 'reasoning.text'
          ? (detail.text ?? '')
          : [],
    ),
    encrypted: details.flatMap((detail) => (detail.type === 'reasoning.encrypted' ? detail.data : [])),
    calls: (tool_calls ?? []).map(({ id, function: { name, arguments: text } }) => ({
      id,
      name,
      arguments: JSON.parse(text),
    })),
    cited: (annotations ?? []).flatMap((one) =>
      one.type === 'url_citation' ? String(object(one['url_citation'] as JsonObject)['url']) : [],
    ),
    finish: choice.finish_reason!,
    native_finish: choice.native_finish_reason!,
    tokens: {
      input: (usage.in_uncached ?? 0) + cached + written,
      cached,
      written,
      output: (usage.out_text ?? 0) + thinking,
      thinking,
    },
  };
}

function expectRecorded(got: ClientReading, { recording }: NamedRecording): void {
  const { cited: _cited, tokens, encrypted, reasoning, calls, ...raw } = readResponses(recording);
  expect({ text: got.text, refusal: got.refusal, finish: got.finish, native_finish: got.native_finish }).toEqual(raw);
  expect(got.calls.map((call) => ({ ...call, arguments: JSON.parse(call.arguments) }))).toEqual(calls);
  const own = got.details.filter(({ format }) => format === 'openai-responses-v1');
  expect(own.flatMap(({ data }) => data ?? [])).toEqual(encrypted);
  expect(own.flatMap(({ summary, text }) => summary ?? text ?? [])).toEqual(reasoning);
  expect(got.usage).toMatchObject({
    prompt_tokens: tokens.input,
    completion_tokens: tokens.output,
    prompt_tokens_details: { cached_tokens: tokens.cached, cache_write_tokens: tokens.written },
    completion_tokens_details: { reasoning_tokens: tokens.thinking },
  });
}

function decode(bytes: Uint8Array, cuts: number[]): ChatCompletion {
  const framer = createFramer(openaiResponses.frames);
  const decoder = openaiResponses.createStreamDecoder({ ...STATE });
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

/** A whole answer as the provider would have streamed it: the items opened, sent piece by piece, and done. */
function streamOf(response: JsonObject): JsonObject[] {
  const { output, usage: _usage, ...echo } = response;
  const begun = { ...echo, status: 'in_progress', output: [], usage: null };
  const events: JsonObject[] = [{ type: 'response.created', response: begun }];
  for (const [outputIndex, item] of array(output).map(object).entries()) {
    const place = { output_index: outputIndex, item_id: item['id'] ?? null };
    const say = (type: string, fields: JsonObject) => events.push({ type: `response.${type}`, ...place, ...fields });
    const opening: JsonObject = { ...item };
    if (item['status'] !== undefined) opening['status'] = 'in_progress';
    if (item['type'] === 'message') opening['content'] = [];
    if (item['type'] === 'reasoning') Object.assign(opening, { summary: [], encrypted_content: 'placeholder' });
    if (item['type'] === 'function_call') opening['arguments'] = '';
    events.push({ type: 'response.output_item.added', output_index: outputIndex, item: opening });
    for (const [contentIndex, part] of array(item['content']).map(object).entries()) {
      const kind = item['type'] === 'reasoning' ? 'reasoning_text' : part['type'];
      say('content_part.added', { content_index: contentIndex, part: { ...part, text: '', annotations: [] } });
      for (const delta of pieces(part['text'])) say(`${kind}.delta`, { content_index: contentIndex, delta });
      for (const [annotationIndex, annotation] of array(part['annotations']).entries()) {
        say('output_text.annotation.added', {
          content_index: contentIndex,
          annotation_index: annotationIndex,
          annotation,
        });
      }
      say(`${kind}.done`, { content_index: contentIndex, text: part['text'] });
    }
    for (const [summaryIndex, part] of array(item['summary']).map(object).entries()) {
      for (const delta of pieces(part['text']))
        say('reasoning_summary_text.delta', { summary_index: summaryIndex, delta });
    }
    if (item['type'] === 'function_call') {
      for (const delta of pieces(item['arguments']))
        say('function_call_arguments.delta', { delta, obfuscation: 'abc' });
    }
    events.push({ type: 'response.output_item.done', output_index: outputIndex, item });
  }
  return [...events, { type: 'response.completed', response }];
}

function pieces(value: JsonValue | undefined): string[] {
  return typeof value === 'string' ? (value.match(/[\s\S]{1,5}/g) ?? []) : [];
}

// ---- Requests.

function encode(body: JsonObject, quirks: Quirks) {
  const choice = decodeToolChoice(body['tool_choice']);
  const { include, text, reasoning, context_management, temperature } = body;
  const rest = JSON.parse(JSON.stringify({ include, text, reasoning, context_management }));
  const request: ChatRequest = {
    messages: decodeInput(body),
    tools: array(body['tools']).flatMap((tool) => decodeTool(tool) ?? []),
    ...(choice === undefined ? {} : { tool_choice: choice }),
    ...(typeof temperature === 'number' ? { temperature } : {}),
    stream: body['stream'] === true,
    ext: { wire: 'openai-responses', rest, client: responsesClient },
  };
  const endpoint: DialectEndpoint = {
    model: 'openai/gpt',
    provider: 'openai',
    upstream_model: String(body['model']),
    max_completion_tokens: undefined,
    context_length: undefined,
    input_modalities: ['text', 'image', 'file'],
    quirks,
  };
  return openaiResponses.encodeRequest(request, endpoint, { media: new Map(), strip_state: false });
}

function pick(body: JsonObject): JsonObject {
  const names = [
    'model',
    'instructions',
    'input',
    'tools',
    'tool_choice',
    'include',
    'text',
    'reasoning',
    'temperature',
  ];
  return Object.fromEntries([...names, 'context_management', 'stream'].map((name) => [name, body[name]]));
}

function typeOf(item: JsonValue): JsonValue | undefined {
  return object(item)['type'];
}

/**
 * The allowed differences of translation: nulls, empty lists and empty messages are removed, messages name their type,
 * an image its detail.
 */
function normal(body: JsonObject): JsonValue {
  const named = array(body['input']).map((item) => {
    const fields = object(item);
    return fields['role'] !== undefined && fields['type'] === undefined ? { ...fields, type: 'message' } : fields;
  });
  const nonEmpty = named.filter(({ content }) => content !== '');
  return JSON.parse(JSON.stringify({ ...body, input: nonEmpty, stream: body['stream'] ?? false }), (_key, value) => {
    if (value === null || (Array.isArray(value) && value.length === 0)) return undefined;
    return object(value)['type'] === 'input_image' ? { detail: 'auto', ...value } : value;
  });
}
