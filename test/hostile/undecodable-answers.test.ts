/** Whole answers that cannot be decoded, on every wire: the reported usage is charged, or what was decoded before the fault; and vectors and transcripts. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Wire } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { silentSound } from '../process/silent-site.ts';
import { responseHead, startWireServer, type WireServer } from '../wires/wire-server.ts';

const TEXT = 'The river runs past the old stone house.';

/** The bodies of one wire, each without usage. */
interface Bodies {
  usage(input: number, output: number): JsonObject;
  /** Without anything that can be decoded. */
  foreign: JsonObject;
  /** A text and then a part that cannot be read. Not set if the wire's decoder reads or skips every part. */
  faulty?: JsonObject;
}

const message = { id: 'm', type: 'message', role: 'assistant', model: 'x' };
const response = { id: 'r', object: 'response', status: 'completed', model: 'x' };
const spoken: JsonObject = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: TEXT, annotations: [] }],
};
const gemini = (parts: JsonObject[]): JsonObject => ({
  candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }],
});
const brokenCall: JsonObject = { functionCall: { name: 'look', partialArgs: [{ jsonPath: 'no path' }] } };
const wireUsage = (input: number, output: number) => ({ input_tokens: input, output_tokens: output });

const bodies: Record<Wire, Bodies> = {
  'openai-chat': {
    usage: (input, output) => ({ usage: { prompt_tokens: input, completion_tokens: output } }),
    foreign: { choices: {} },
  },
  'anthropic-messages': {
    usage: (input, output) => ({ usage: wireUsage(input, output) }),
    foreign: message,
    faulty: { ...message, content: [{ type: 'text', text: TEXT }, { text: 'Of no type.' }], stop_reason: 'end_turn' },
  },
  'openai-responses': {
    usage: (input, output) => ({ usage: wireUsage(input, output) }),
    foreign: { ...response, output: TEXT },
    faulty: {
      ...response,
      output: [spoken, { id: 'fc_1', type: 'function_call', call_id: 'c1', arguments: '{}' }],
    },
  },
  'gemini-generate-content': {
    usage: (input, output) => ({ usageMetadata: { promptTokenCount: input, candidatesTokenCount: output } }),
    foreign: gemini([brokenCall]),
    faulty: gemini([{ text: TEXT }, brokenCall]),
  },
  'cohere-chat': {
    usage: (input, output) => ({ usage: { billed_units: wireUsage(input, output) } }),
    foreign: { id: 'm', finish_reason: 'COMPLETE', message: [TEXT] },
  },
  'bedrock-converse': {
    usage: (input, output) => ({ usage: { inputTokens: input, outputTokens: output } }),
    foreign: { output: { message: TEXT }, stopReason: 'end_turn' },
  },
};
const wires = Object.keys(bodies) as Wire[];
const faulty = wires.filter((wire) => bodies[wire].faulty !== undefined);

const endpointOf = (provider: Wire, more: object = {}) => ({
  provider,
  upstream_model: 'x',
  pricing: { prompt: 100, completion: 1_000, ...more },
});

let answer = '';
let upstream: WireServer;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startWireServer(() => [responseHead(200, 'application/json'), answer, 'END']);
  const provider = (dialect: Wire) => ({ name: dialect, dialect, base_url: upstream.url, api_key: 'k' });
  gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      providers: Object.fromEntries(wires.map((wire) => [wire, provider(wire)])),
      models: {
        ...Object.fromEntries(
          wires.map((wire) => [`test/${wire}`, { context_length: 10_000, endpoints: [endpointOf(wire)] }]),
        ),
        'test/vectors': { output_modalities: ['embeddings'], endpoints: [endpointOf('openai-chat')] },
        'test/speech': {
          input_modalities: ['audio'],
          output_modalities: ['transcription'],
          endpoints: [endpointOf('openai-chat', { audio_second: 1 })],
        },
      },
    }),
  });
});
afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});

/** The only attempt of a call that this body answers, with its cost in millionths of a USD. */
function attemptOf(wire: Wire, body: JsonObject) {
  const request = { model: `test/${wire}`, messages: [{ role: 'user', content: 'Hi' }] };
  return attemptAt('/chat/completions', request, JSON.stringify(body));
}

async function attemptAt(path: string, request: object, text: string) {
  answer = text;
  const reply = await gateway.call('POST', path, request, { 'X-Gateway-Experimental-Metadata': 'enabled' });
  expect(reply.status).toBe(502);
  const { gateway_metadata } = (await reply.json()) as {
    gateway_metadata: { attempts: { failure: string; cost: number; estimated: boolean }[] };
  };
  return gateway_metadata.attempts.map(({ failure, cost, estimated }) => ({
    failure,
    cost: Math.round(cost * 1_000_000),
    estimated,
  }));
}

const USAGE = { prompt_tokens: 7, completion_tokens: 3, input_tokens: 7, output_tokens: 3 };
const SECOND = 1_000_000;

test.each<[what: string, text: string, vectors: number, transcript: number, chat: number]>([
  ['is not JSON', 'hello', 0, 0, 0],
  ['is a page', '<html></html>', 0, 0, 0],
  ['is no object', '[1]', 0, 0, 0],
  ['reports an error', '{"error":{"message":"x"}}', 0, 0, 0],
  // Whoever answers a list of inputs has read them.
  ['reports no usage', '{"data":"x","text":5,"choices":{}}', 100, 0, 0],
  [
    'reports its usage',
    JSON.stringify({ data: {}, text: 5, choices: {}, usage: USAGE }),
    7 * 100,
    7 * 100 + 3 * 1_000 + SECOND,
    7 * 100 + 3 * 1_000,
  ],
])('vectors, a transcript and a chat that %s and cannot be decoded', async (_what, text, vectors, transcript, chat) => {
  const costOf = async (path: string, request: object) => (await attemptAt(path, request, text))[0]?.cost;
  const sound = { data: silentSound(), format: 'wav' };
  expect({
    vectors: await costOf('/embeddings', { model: 'test/vectors', input: 'Hi' }),
    transcript: await costOf('/audio/transcriptions', { model: 'test/speech', input_audio: sound }),
    chat: await costOf('/chat/completions', {
      model: 'test/openai-chat',
      messages: [{ role: 'user', content: 'Hi' }],
    }),
  }).toEqual({ vectors, transcript, chat });
});

describe.each(wires)('an answer of %s without anything that can be decoded', (wire) => {
  const { usage, foreign } = bodies[wire];

  test('is charged by its usage', async () => {
    expect(await attemptOf(wire, { ...foreign, ...usage(5, 9) })).toEqual([
      { failure: 'invalid_response', cost: 5 * 100 + 9 * 1_000, estimated: false },
    ]);
  });

  test('costs nothing if it counts no output', async () => {
    expect(await attemptOf(wire, { ...foreign, ...usage(5, 0) })).toMatchObject([{ cost: 0 }]);
  });
});

describe.each(faulty)('an answer of %s with a part that cannot be read', (wire) => {
  const { usage, faulty: body } = bodies[wire];

  test('is charged by its usage', async () => {
    expect(await attemptOf(wire, { ...body, ...usage(5, 20) })).toEqual([
      { failure: 'invalid_response', cost: 5 * 100 + 20 * 1_000, estimated: false },
    ]);
  });

  test('is charged by the parts before it if it reports no usage', async () => {
    const [attempt, ...others] = await attemptOf(wire, body!);
    expect(others).toEqual([]);
    expect(attempt?.estimated).toBe(true);
    expect(attempt?.cost).toBeGreaterThan(5_000);
    expect(attempt?.cost).toBeLessThan(20_000);
  });
});
