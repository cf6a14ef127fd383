/**
 * The rules for every dialect of the registry: a new one is tested as soon as it has its line in `dialects.ts`, and
 * missing parts must be listed with a reason. Conversations between the wires are in `round-trip.test.ts`, which uses
 * the registry as well.
 */
import { existsSync, globSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sandboxModels, sandboxProviders } from '../../sandbox/catalog.ts';
import { type Sandbox, startSandbox } from '../../sandbox/server.ts';
import { GatewayError } from '../../src/errors.ts';
import { type ChatDialect, UpstreamError } from '../../src/providers/dialect.ts';
import { dialects } from '../../src/providers/dialects.ts';
import { modelQuirks } from '../../src/providers/shared/model-quirks.ts';
import { createFramer } from '../../src/providers/transport/frames.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatRequest, FunctionTool, Message, Wire } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { type ClientReading, leaksOf, readAnswer, readStream } from '../readings/client.ts';
import { inTier } from '../tier.ts';
import { twentyMedia, twentyRequests } from '../twenty-requests.ts';

const wires = [...dialects.keys()];
const root = new URL('../../', import.meta.url).pathname;

/** The files of its own that each dialect has. */
const SCENARIOS: Readonly<Record<string, (wire: Wire) => boolean>> = {
  'recorded exchanges, replayed': (wire) => existsSync(`${root}test/wires/recorded-${wire}.test.ts`),
  'golden transcripts': (wire) => globSync(`test/transcripts/${wire}/*.txt`, { cwd: root }).length >= 10,
  'a wire of the sandbox': (wire) => Object.values(sandboxProviders('')).some(({ dialect }) => dialect === wire),
};

/** Missing parts, with the reasons. */
const MISSING: Partial<Record<Wire, Readonly<Record<string, string>>>> = {};

/** Requests of the twenty that a wire cannot carry: the gateway answers with a 400 before anything is sent. */
const UNCARRIED: Partial<Record<Wire, Readonly<Record<string, string>>>> = {
  'anthropic-messages': { audio: 'the wire has no audio', video: 'the wire has no video' },
  'openai-responses': { audio: 'messages of the wire have no audio', video: 'the wire has no video' },
  'cohere-chat': {
    'a PDF': 'the wire has only text and images',
    audio: 'the wire has no audio',
    video: 'the wire has no video',
  },
};

test.each(wires)('%s has every scenario, or a stated reason', (wire) => {
  const lacking = Object.keys(SCENARIOS).filter((name) => !SCENARIOS[name]!(wire));
  // A reason for an existing part is as wrong as a missing reason.
  expect(lacking).toEqual(Object.keys(MISSING[wire] ?? {}));
});

let sandbox: Sandbox;
let gateway: TestGateway;
beforeAll(async () => {
  sandbox = await startSandbox();
  const file = { bundled_catalog: false, providers: sandboxProviders(sandbox.url), models: sandboxModels };
  gateway = await startGateway({ yaml: JSON.stringify({ ...file, ledger: { journal_sync: 'os' } }) });
});
afterAll(async () => {
  await gateway.stop();
  await sandbox.stop();
});

/** The model of this name at the provider that speaks the wire, and the provider. */
function speaking(wire: Wire, slug: string) {
  const providers = Object.entries(sandboxProviders(sandbox.url));
  const [name, row] = providers.find(([, { dialect }]) => dialect === wire)!;
  const ends = new RegExp(`[/-]${slug}$`);
  const [model, { endpoints }] = Object.entries(sandboxModels).find(
    ([id, model]) => ends.test(id) && model.endpoints.some(({ provider }) => provider === name),
  )!;
  const { upstream_model } = endpoints.find(({ provider }) => provider === name)!;
  return { model, provider: name, base_url: row.base_url, upstream_model };
}

async function ask(wire: Wire, slug: string, change: object = {}) {
  const { model, provider } = speaking(wire, slug);
  const only = { only: [provider], allow_fallbacks: false };
  const messages = [{ role: 'user', content: 'Good morning.' }];
  const body = { model, provider: only, messages, max_completion_tokens: 4_000, ...change };
  const response = await gateway.call('POST', '/chat/completions', body);
  return { status: response.status, text: await response.text() };
}

/** Encodes a request and sends it to the sandbox without the gateway. */
async function send(wire: Wire, slug: string, request: ChatRequest, stripState = false): Promise<Response> {
  const dialect = dialects.get(wire)!;
  const { base_url, upstream_model, provider } = speaking(wire, slug);
  const endpoint = {
    model: 'sandbox/model',
    provider,
    upstream_model,
    max_completion_tokens: 8_000,
    context_length: undefined,
    input_modalities: ['text', 'image', 'file', 'audio', 'video'],
    quirks: modelQuirks(wire, upstream_model),
  };
  const {
    path,
    body,
    headers: own,
  } = dialect.encodeRequest(request, endpoint, { media: twentyMedia, strip_state: stripState });
  const url = base_url + path;
  const payload = JSON.stringify(body);
  const headers = { 'content-type': 'application/json', ...own };
  const credential = dialect.authorize(
    'secret',
    { method: 'POST', url, headers, payload },
    Date.now(),
    endpoint.quirks,
  );
  return fetch(url, { method: 'POST', headers: { ...headers, ...credential }, body: payload });
}

const weather = {
  type: 'function',
  function: {
    name: 'get_weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};

describe.each(wires)('%s', (wire) => {
  test.each<[string, object]>([
    ['echo', {}],
    ['story', {}],
    ['think', { reasoning: { effort: 'high' } }],
    ['tools', { tools: [weather] }],
    [
      'json',
      { response_format: { type: 'json_schema', json_schema: { name: 'a', schema: weather.function.parameters } } },
    ],
  ])('the sandbox’s %s is the same whole and streamed, and shows nothing internal', async (slug, change) => {
    const answer = await ask(wire, slug, change);
    expect(answer.status, answer.text).toBe(200);
    const body = JSON.parse(answer.text) as JsonObject;
    expect(leaksOf(body)).toEqual([]);
    // If the provider gives calls no id, they have one of the gateway's, which is unique to this answer.
    const bare = ({ calls, ...reading }: ClientReading) => ({
      ...reading,
      calls: calls.map(({ id: _id, ...call }) => call),
    });
    const whole = bare(readAnswer(body));
    const { usage, details, reasoning, ...streamed } = bare(
      readStream((await ask(wire, slug, { stream: true, ...change })).text),
    );
    expect(whole).toMatchObject(streamed);
    expect(whole.reasoning.replaceAll(/\s/g, '')).toBe(reasoning.replaceAll(/\s/g, ''));
    expect(whole.details.length).toBe(details.length);
    expect(whole.usage).toMatchObject({
      prompt_tokens: usage['prompt_tokens'],
      completion_tokens: usage['completion_tokens'],
    });
    expect(whole.text !== '' || whole.calls.length > 0).toBe(true);
  });

  test.each(['fail-mid-stream', 'fail-late', 'truncate'])(
    '%s ends in an error chunk, and earlier text is counted',
    async (slug) => {
      const { error, finish, usage, text } = readStream((await ask(wire, slug, { stream: true })).text);
      expect([finish, typeof error?.['message']]).toEqual(['error', 'string']);
      expect(text).not.toBe('');
      expect(Number(usage['completion_tokens'])).toBeGreaterThan(0);
    },
  );

  test.each([
    ['fail-503', [503]],
    ['fail-429', [429]],
    ['fail-500-html', [502]],
  ])('%s is an error of %j before any content', async (slug, statuses) => {
    for (const stream of [false, true]) expect(statuses).toContain((await ask(wire, slug, { stream })).status);
  });

  test.each(Object.entries(twentyRequests))('of the twenty requests: %s', async (name, request) => {
    if (UNCARRIED[wire]?.[name] !== undefined) {
      await expect(send(wire, 'echo', request)).rejects.toThrow(GatewayError);
      return;
    }
    // The sandbox refuses what the provider refuses.
    const response = await send(wire, 'echo', request);
    const text = await response.text();
    if (response.status === 200) return;
    // Signatures that this provider never made: they must be recognized and removed.
    expect([name, dialects.get(wire)!.decodeError(response.status, {}, text).failure], text).toEqual([
      'replayed reasoning',
      'state_rejected',
    ]);
    const again = await send(wire, 'echo', request, true);
    expect(again.status, await again.text()).toBe(200);
  });
});

// ---------------------------------------------------------------- any conversation

const text = fc.constantFrom('', ' ', 'Hello', '😀');
const id = fc.constantFrom('a', 'b', '');
const called = fc.record({
  id,
  type: fc.constant('function' as const),
  function: fc.record({
    name: fc.constantFrom('look', 'two words'),
    arguments: fc.constantFrom('', '{}', 'no JSON'),
  }),
});
const png = 'data:image/png;base64,iVBORw0KGgo=';
const part = fc.oneof(
  text.map((piece) => ({ type: 'text' as const, text: piece })),
  fc.constant({ type: 'image_url' as const, image_url: { url: png } }),
  fc.constant({ type: 'file' as const, file: { file_data: 'data:text/plain,hello', filename: 'a.txt' } }),
);
const content = fc.oneof(text, fc.array(part, { maxLength: 3 }), fc.constant(null));
const message: fc.Arbitrary<Message> = fc.oneof(
  fc.record({ role: fc.constantFrom('system' as const, 'developer' as const, 'user' as const), content }),
  fc.record({ role: fc.constant('assistant' as const), content, tool_calls: fc.array(called, { maxLength: 3 }) }),
  fc.record({ role: fc.constant('tool' as const), content, tool_call_id: id }),
);

/** Conversations that a wire need not repair, and why. */
const UNMENDED: Partial<Record<Wire, (messages: readonly Message[]) => boolean>> = {
  // Ids belong to the client on its own wire: two calls with one id in a turn stay two.
  'openai-chat': (messages) =>
    messages.some(({ tool_calls }) => new Set(tool_calls?.map((one) => one.id)).size < (tool_calls?.length ?? 0)),
  // For Gemini 3 an empty user message does not end the turn of the calls before it, which then lack a signature.
  'gemini-generate-content': (messages) =>
    messages.some(
      (one, i) =>
        ((one.tool_calls?.length ?? 0) > 0 && messages[i + 1]?.role !== 'tool') ||
        (one.role !== 'tool' && !one.tool_calls?.length && !JSON.stringify(one.content).includes('Hello')),
    ),
};

test.each(wires)(
  '%s: each conversation becomes one that the provider accepts',
  async (wire) => {
    const property = fc.asyncProperty(fc.array(message, { minLength: 1, maxLength: 7 }), async (messages) => {
      const last = messages.at(-1)!.role;
      fc.pre(last === 'user' || last === 'tool');
      fc.pre(UNMENDED[wire]?.(messages) !== true);
      const response = await send(wire, 'echo', { messages, max_tokens: 100 });
      if (response.status !== 200) throw new Error(await response.text());
      await response.arrayBuffer();
    });
    await fc.assert(property, { seed: 20_261_121, numRuns: inTier(40, 300) });
  },
  60_000,
);

// ---------------------------------------------------------------- fuzz

/** A stream of the wire as its provider sends it: the sandbox's, with text, reasoning and calls. */
async function streamsOf(wire: Wire): Promise<Uint8Array[]> {
  const user = (content: string): ChatRequest['messages'] => [{ role: 'user', content }];
  const tools = [weather as FunctionTool];
  const requests: [string, ChatRequest][] = [
    ['story', { messages: user('Tell.'), max_tokens: 60 }],
    ['tools', { messages: user('Look.'), tools, max_tokens: 4_000, reasoning: { effort: 'high' } }],
  ];
  return Promise.all(
    requests.map(async ([slug, request]) => {
      const response = await send(wire, slug, { ...request, stream: true });
      const bytes = new Uint8Array(await response.arrayBuffer());
      expect(response.status, new TextDecoder().decode(bytes)).toBe(200);
      return bytes;
    }),
  );
}

/** The result of a stream: an answer, or the upstream's error. Any other exception is a fault of the decoder. */
function outcome(dialect: ChatDialect, parts: readonly Uint8Array[]): 'answer' | 'error' {
  const framer = createFramer(dialect.frames);
  const decoder = dialect.createStreamDecoder({ generation_id: 'gen-fuzz' });
  const chunks = [];
  try {
    for (const part of parts) for (const frame of framer.push(part)) chunks.push(...decoder.push(frame));
    for (const frame of framer.end()) chunks.push(...decoder.push(frame));
    chunks.push(...decoder.end());
  } catch (error) {
    if (error instanceof UpstreamError) return 'error';
    throw error;
  }
  const [choice] = accumulate(chunks, 0).choices;
  if (choice.finish_reason === null) throw new Error('an answer without a finish reason');
  return 'answer';
}

/** The positions between two frames of a stream. */
function frameEnds(dialect: ChatDialect, bytes: Uint8Array): number[] {
  const ends: number[] = [];
  if (dialect.frames === 'aws-event-stream') {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let at = 0; at < bytes.length; ) {
      at += view.getUint32(at);
      ends.push(at);
    }
    return ends;
  }
  const text = Buffer.from(bytes).toString('latin1');
  for (const { index, 0: blank } of text.matchAll(/\r?\n\r?\n/g)) ends.push(index + blank.length);
  return ends;
}

describe.each(wires)('the decoder of %s', (wire) => {
  const dialect = dialects.get(wire)!;
  const seeded = { seed: 20_261_121, numRuns: inTier(25, 200) };
  let streams: Uint8Array[] = [];
  beforeAll(async () => {
    streams = await streamsOf(wire);
  });

  test('reads the sandbox’s answers, wherever they are cut', () => {
    for (const bytes of streams) {
      expect(outcome(dialect, [bytes])).toBe('answer');
      for (const size of [1, 7, 64]) {
        const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
          bytes.subarray(i * size, (i + 1) * size),
        );
        expect(outcome(dialect, parts)).toBe('answer');
      }
    }
  });

  test('distinguishes a stream that breaks off from one that ends', () => {
    for (const bytes of streams) {
      const ends = frameEnds(dialect, bytes);
      // The last frames may be only a terminator: the answer is never complete in its first half.
      const half = ends[Math.floor(ends.length / 2)]!;
      const cuts = fc.property(fc.integer({ min: 0, max: half }), (at) => {
        expect(outcome(dialect, [bytes.subarray(0, at)])).toBe('error');
      });
      fc.assert(cuts, seeded);
    }
  });

  test('never crashes on events that are reordered, repeated or missing', () => {
    for (const bytes of streams) {
      const ends = frameEnds(dialect, bytes);
      const frames = ends.map((end, i) => bytes.subarray(i === 0 ? 0 : ends[i - 1]!, end));
      const places = fc.array(fc.nat(frames.length - 1), { maxLength: frames.length * 2 });
      fc.assert(
        fc.property(places, (order) => {
          outcome(
            dialect,
            order.map((at) => frames[at]!),
          );
        }),
        seeded,
      );
    }
  });

  test('never crashes on changed bytes, and accepts no invalid body as an answer', () => {
    for (const bytes of streams) {
      const changes = fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 });
      fc.assert(
        fc.property(changes, (list) => {
          const changed = bytes.slice();
          for (const [at, value] of list) changed[at] = value;
          outcome(dialect, [changed]);
        }),
        seeded,
      );
    }
    const rubbish = fc.property(fc.uint8Array({ maxLength: 3_000 }), (bytes) => {
      expect(outcome(dialect, [bytes])).toBe('error');
    });
    fc.assert(rubbish, seeded);
  });

  test('never crashes on a body of any shape', () => {
    const bodies = fc.property(fc.jsonValue({ maxDepth: 4 }), (body) => {
      try {
        accumulate(dialect.decodeResponse(body as JsonObject, { generation_id: 'gen-fuzz' }), 0);
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error;
      }
    });
    fc.assert(bodies, seeded);
    const errors = fc.property(fc.integer({ min: 400, max: 599 }), fc.oneof(fc.string(), fc.json()), (status, body) => {
      expect(dialect.decodeError(status, {}, body)).toBeInstanceOf(UpstreamError);
    });
    fc.assert(errors, seeded);
  });
});
