/**
 * Long data and data in very many pieces is processed in bounded parts, one a turn of the event loop. Work, pieces and
 * turns are counted, never timed.
 */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { messageParts } from '../../src/api/messages/encode.ts';
import { joinParts, writeParts } from '../../src/api/shared/json-parts.ts';
import { checkDefinitions } from '../../src/api/shared/tool-arguments.ts';
import { digestInTurns } from '../../src/http/digest.ts';
import { inTurns } from '../../src/http/in-turns.ts';
import { joined } from '../../src/http/joined.ts';
import { atOnce, TURN_WORK_CHARS } from '../../src/http/turn-work.ts';
import { dividedChunks, sliceEnd } from '../../src/inference/attempt/chunk-slices.ts';
import type { PreparedAttempt } from '../../src/inference/attempt/prepare-attempt.ts';
import { prepareAttempt } from '../../src/inference/attempt/prepare-attempt.ts';
import type { WholeAnswer } from '../../src/inference/events.ts';
import { estimatePrompt, promptTexts, TOOLS_SAMPLE_CHARS } from '../../src/inference/money/meter.ts';
import { cacheMarks } from '../../src/inference/money/payload-search.ts';
import { mediaOf, mediaSteps, textSteps } from '../../src/inference/money/worst-case.ts';
import { createEnvelopes } from '../../src/inference/reasoning/envelope.ts';
import { createSealer } from '../../src/inference/reasoning/seal.ts';
import { limits } from '../../src/limits.ts';
import { authorize, signsPayload } from '../../src/providers/bedrock-converse/sign.ts';
import { createFramer } from '../../src/providers/transport/frames.ts';
import { createServices } from '../../src/providers/transport/services.ts';
import { createUpstream } from '../../src/providers/transport/upstream.ts';
import type { Candidate } from '../../src/routing/plan.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import { chunksOf } from '../../src/schemas/chunks.ts';
import type { ChatChunk, ChatRequest, ReasoningDetail, Wire } from '../../src/schemas/inner.ts';
import type { JsonValue } from '../../src/schemas/json.ts';

/** The number of turns of the event loop until a promise has settled. */
async function turnsOf<T>(work: Promise<T>): Promise<{ value: T; turns: number }> {
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const value = await work.finally(() => {
    isOver = true;
  });
  return { value, turns };
}

/** The steps of work that yields to other requests, and its result. */
function stepped<T>(work: Generator<void, T, undefined>): { value: T; steps: number } {
  for (let steps = 1; ; steps += 1) {
    const { done, value } = work.next();
    if (done === true) return { value, steps };
  }
}

describe('an answer in HTTP chunks of one byte', () => {
  const PIECES = 30_000;
  const body = 'a'.repeat(PIECES);
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n';
      socket.end(`${head}${'1\r\na\r\n'.repeat(PIECES)}0\r\n\r\n`);
    });
  });
  let url: string;
  beforeAll(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/a`;
  });
  afterAll(() => {
    server.close();
  });

  test.each(['own', 'undici'] as const)(
    'is read from a provider in a bounded number of chunks a turn by %s',
    async (client) => {
      const ms = { upstream_connect_ms_max: 5_000, upstream_headers_ms_max: 5_000, upstream_idle_ms_max: 5_000 };
      const upstream = createUpstream(ms, undefined, client);
      const response = await upstream.send({ url, headers: {}, payload: 'x' }).response;
      const reads: number[] = [];
      const { turns } = await turnsOf(
        (async () => {
          for (;;) {
            await response.ready();
            const read = response.read();
            if (read === undefined) return;
            reads.push(read.length);
          }
        })(),
      );
      expect(reads.reduce((sum, read) => sum + read)).toBe(PIECES);
      expect(Math.max(...reads)).toBeLessThanOrEqual(limits.upstream_turn_pieces_max);
      expect(turns).toBeGreaterThanOrEqual(PIECES / limits.upstream_turn_pieces_max / 2);
      expect(response.complete).toBe(true);
      await upstream.close();
    },
  );

  test('is read from a service in many turns', async () => {
    const services = createServices();
    const { value, turns } = await turnsOf(services.ask({ url, bytes_max: PIECES, timeout_ms: 5_000 }));
    expect(value.body.toString()).toBe(body);
    expect(turns).toBeGreaterThanOrEqual(PIECES / limits.upstream_turn_pieces_max / 2);
    await services.close();
  });
});

test('a buffer of very many short pieces is joined in many steps', () => {
  const pieces = Array.from({ length: 20_000 }, (_, at) => Buffer.from([at % 256]));
  const whole = Buffer.concat(pieces);
  const { value, steps } = stepped(joined(pieces));
  expect(value.equals(whole)).toBe(true);
  expect(steps).toBeGreaterThanOrEqual(16);
});

test('work that needs several steps begins with a turn of its own, and work of one step begins at once', async () => {
  const order: string[] = [];
  const work = function* (steps: number): Generator<void, void, undefined> {
    for (let step = 1; step < steps; step += 1) yield;
    order.push(`last of ${steps}`);
    setImmediate(() => order.push('others'));
  };
  await inTurns(work(3));
  order.push('next');
  await inTurns(work(1));
  order.push('at once');
  expect(order).toEqual(['last of 3', 'others', 'next', 'last of 1', 'at once']);
});

describe('an event of very many lines', () => {
  const lines = (count: number) => `data: [\n${'data: 1,\n'.repeat(count - 2)}data: 1]\n\n`;
  const framesOf = (text: string, split: number) => {
    const framer = createFramer('sse');
    const bytes = Buffer.from(text);
    const frames = [];
    for (let at = 0; at < bytes.length; at += split) {
      for (const frame of framer.push(bytes.subarray(at, at + split))) frames.push(frame.data);
    }
    for (const frame of framer.end()) frames.push(frame.data);
    return frames;
  };

  test('is one text up to the bound', () => {
    const [data = '', ...others] = framesOf(lines(limits.stream_frame_lines_max), 60_000);
    expect(others).toEqual([]);
    expect(JSON.parse(data)).toHaveLength(limits.stream_frame_lines_max - 1);
  });

  test.each([7, 64_000, 10_000_000])('is refused beyond the bound, in reads of %i bytes', (split) => {
    const text = `data: {}\n\n${lines(limits.stream_frame_lines_max + 2)}`;
    expect(() => framesOf(text, split)).toThrow(/an event of more than 100000 lines/);
  });

  test('keeps its empty lines for any reads', () => {
    const [data] = framesOf('data:a\ndata\ndata: b\ndata:\n\n', 1);
    expect(data).toBe('a\n\nb\n');
  });
});

describe('a long body', () => {
  const candidateOf = (wire: Wire): Candidate =>
    ({
      model: { id: 'b/c', tokenizer: 'Other', output_modalities: ['text'] },
      endpoint: { model: 'b/c', upstream_model: 'm', pricing: {}, input_modalities: ['image'], quirks: {} },
      provider: { slug: 'a', name: 'A', dialect: wire },
    }) as unknown as Candidate;
  const attemptOf = (request: Partial<ChatRequest>, wire: Wire = 'openai-chat') =>
    prepareAttempt({ messages: [{ role: 'user', content: 'a' }], ...request } as ChatRequest, candidateOf(wire), {
      spend: { default_tokens: 10 },
    }) as Promise<PreparedAttempt>;
  const image = (data: string) => ({
    type: 'image_url' as const,
    image_url: { url: `data:image/png;base64,${data}` },
  });
  const CHARS = 6 * 1024 * 1024;

  test.each<Wire>(['openai-chat', 'gemini-generate-content', 'bedrock-converse'])(
    'of data is measured in many steps for %s, with the same result',
    async (wire) => {
      const data = randomBytes((CHARS * 3) / 4).toString('base64');
      const attempt = await attemptOf({ messages: [{ role: 'user', content: [image(data)] }] }, wire);
      const { value, steps } = stepped(mediaSteps(attempt));
      expect(value.data).toEqual([data]);
      expect(value).toEqual(mediaOf(attempt));
      expect(steps).toBeGreaterThanOrEqual(CHARS / limits.joined_slice_bytes);
    },
  );

  test('with very many short data URLs is measured in many steps', async () => {
    const data = Array.from({ length: 40_000 }, (_, at) => image(String(at).padStart(200, 'A')));
    const attempt = await attemptOf({ messages: [{ role: 'user', content: data }] });
    const { value, steps } = stepped(mediaSteps(attempt));
    expect(value.data).toHaveLength(data.length);
    expect(steps).toBeGreaterThanOrEqual((data.length * 200) / TURN_WORK_CHARS);
    const text = stepped(textSteps(attempt, value));
    expect(text.value).toBe(atOnce(textSteps(attempt, value)));
    expect(text.value.length).toBe(attempt.payload.length - data.length * 200);
    expect(text.steps).toBeGreaterThanOrEqual(2);
  });

  test('is searched for cache breakpoints before it is priced, in many steps', async () => {
    const content = [{ type: 'text' as const, text: 'a'.repeat(CHARS), cache_control: { type: 'ephemeral' as const } }];
    const attempt = await attemptOf({ messages: [{ role: 'user', content }] }, 'anthropic-messages');
    expect(attempt.marks).toEqual({ is_any: true, is_hour: false });
    expect(stepped(cacheMarks(attempt.payload as Buffer)).steps).toBeGreaterThanOrEqual(CHARS / 1024 / 1024);
  });

  test('with many tools is written up to a bound for an estimate, and the rest is extrapolated', () => {
    const tool = (at: number) => ({
      type: 'function' as const,
      function: { name: `f${at}`, description: 'Does a thing. '.repeat(500), parameters: { type: 'object' } },
    });
    const tools = Array.from({ length: 400 }, (_, at) => tool(at));
    const request = (more: object) => ({ messages: [], tools, ...more }) as unknown as ChatRequest;
    const long = request({ ext: { wire: 'openai-chat', client: 'chat', rest: {}, is_long: true } });
    long.ext!.tools_chars = checkDefinitions(long);
    const { texts, sampledChars } = promptTexts(long);
    expect(Math.max(...texts.map((text) => text.length))).toBeLessThanOrEqual(
      TOOLS_SAMPLE_CHARS + 2 * limits.json_piece_chars,
    );
    expect(sampledChars / JSON.stringify(tools).length).toBeCloseTo(1, 1);
    expect(estimatePrompt(long) / estimatePrompt(request({}))).toBeCloseTo(1, 1);
  });

  test('is hashed for a signature in many turns, with the same signature as in one', async () => {
    const payload = randomBytes(CHARS);
    const { value, turns } = await turnsOf(digestInTurns(payload));
    expect(value).toBe(createHash('sha256').update(payload).digest('hex'));
    expect(turns).toBeGreaterThanOrEqual(CHARS / limits.joined_slice_bytes);
    const credential = JSON.stringify({ accessKeyId: 'A', secretAccessKey: 'B' });
    const request = { method: 'POST', url: 'https://bedrock-runtime.eu-west-1.amazonaws.com/a', headers: {}, payload };
    const signed = authorize(credential, request, 1);
    expect(authorize(credential, { ...request, payload_sha256: value }, 1)).toEqual(signed);
    expect(authorize(credential, { ...request, payload_sha256: '00' }, 1)).not.toEqual(signed);
    expect([signsPayload(credential), signsPayload('key'), signsPayload(undefined)]).toEqual([true, false, false]);
  });
});

describe('the JSON of a long answer', () => {
  const text = 'She said "yes", and\nwalked on 🙂. '.repeat(100_000);
  const value: JsonValue = { type: 'message', content: [{ text }, { text: 'b' }] };
  const parts = [
    '{"output":[',
    { value },
    ',',
    { value: { a: 1 } },
    '],"input":',
    { object: JSON.stringify({ text }) },
    ',"none":',
    { object: `${text}{` },
    `,"text":${JSON.stringify(text)}}`,
  ];

  test('is written in many turns, with the same result as in one', async () => {
    const { value: bytes, turns } = await turnsOf(writeParts(parts) as Promise<Buffer>);
    expect(bytes.toString()).toBe(joinParts(parts));
    expect(JSON.parse(bytes.toString())).toMatchObject({ output: [value, { a: 1 }], input: { text } });
    expect(turns).toBeGreaterThanOrEqual(bytes.length / limits.json_piece_chars / 2);
  });

  test('with very many short parts is written in several turns, and a short one in one', async () => {
    const many = Array.from({ length: 100_000 }, (_, at) => (at % 2 === 0 ? ',' : { value: { at, text: 'a text' } }));
    const { value: bytes, turns } = await turnsOf(writeParts(many) as Promise<Buffer>);
    expect(bytes.toString()).toBe(joinParts(many));
    expect(turns).toBeGreaterThanOrEqual(10);
    expect(writeParts(['{"a":', { value: [1] }, ',"b":', { object: '' }, ',"c":', { object: '[]' }, '}'])).toBe(
      '{"a":[1],"b":{},"c":{"_raw":"[]"}}',
    );
  });
});

describe('chunks of a long text', () => {
  const text = 'She said "yes" 🙂. '.repeat(100_000);
  const slot = (n: number) => ({ n, open: { kind: 'text' as const }, close: { ext: { wire: 'a', rest: { b: 1 } } } });
  const usage = { in_uncached: 3, out_text: 5 };
  const annotation = {
    type: 'url_citation' as const,
    url_citation: { url: 'https://a', start_index: 0, end_index: 1 },
  };
  const long: ChatChunk[] = [
    { delta: { role: 'assistant', content: 'Short. ' }, service_tier: 'default' },
    { delta: { content: text, annotations: [annotation] }, ext: { slot: slot(0) as never } },
    {
      delta: { tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: `"${text}"` } }] },
      ext: { slot: { n: 1, open: { kind: 'call' }, close: {} } },
    },
    { delta: { content: text }, finish_reason: 'stop', native_finish_reason: 'end', ext: { response: { usage } } },
  ];

  test('are as many as a stream would have, and accumulate to the same answer', () => {
    const chunks = dividedChunks(long);
    const { stream_chunk_chars_max } = limits;
    for (const { delta } of chunks) {
      const chars = (delta.content ?? '').length + (delta.tool_calls?.[0]?.function.arguments ?? '').length;
      expect(chars).toBeLessThanOrEqual(stream_chunk_chars_max + 1);
    }
    expect(accumulate(chunks, 0)).toEqual(accumulate(long, 0));
    expect(chunks.filter(({ finish_reason }) => finish_reason != null)).toEqual(chunks.slice(-1));
    expect(chunks.filter(({ ext }) => ext?.slot?.open !== undefined)).toHaveLength(2);
    expect(chunks.filter(({ ext }) => ext?.slot?.close !== undefined)).toHaveLength(2);
    expect(dividedChunks(long.slice(0, 1))).toEqual(long.slice(0, 1));
  });

  test('are passed on in bounded parts, one a turn', () => {
    const chunks = dividedChunks(long);
    let slices = 0;
    for (let at = 0; at < chunks.length; at = sliceEnd(chunks, at)) {
      expect(sliceEnd(chunks, at) - at).toBeLessThanOrEqual(
        limits.stream_slice_chars / limits.stream_chunk_chars_max + 2,
      );
      slices += 1;
    }
    expect(slices).toBeGreaterThanOrEqual((3 * text.length) / limits.stream_slice_chars - 1);
  });
});

test('a text of half surrogates, which take longest to write, is passed on in slices of less than 2 MiB of JSON', () => {
  const chunks = dividedChunks([{ delta: { content: '\ud83d'.repeat(1_500_000) }, finish_reason: 'stop' }]);
  const sizes: number[] = [];
  for (let at = 0; at < chunks.length; at = sliceEnd(chunks, at)) {
    const texts = chunks.slice(at, sliceEnd(chunks, at)).map(({ delta }) => JSON.stringify(delta.content));
    sizes.push(texts.join('').length);
  }
  expect(Math.max(...sizes)).toBeLessThan(2 * 1024 * 1024);
});

describe('an answer with very many parts of reasoning', () => {
  const PARTS = 9_000;
  const text = 'She said "yes". '.repeat(70);
  const completionOf = (made: (index: number) => ReasoningDetail) =>
    accumulate(
      [
        { delta: { reasoning_details: Array.from({ length: PARTS }, (_, index) => made(index)), content: 'a' } },
        { delta: {}, finish_reason: 'stop', ext: { response: { usage: { in_uncached: 3, out_text: 5 } } } },
      ],
      0,
    );
  const answers = {
    'long texts': completionOf((index) => ({ type: 'reasoning.text', text, index, format: 'anthropic-claude-v1' })),
    'short texts': completionOf((index) => ({ type: 'reasoning.text', text: 'a', index })),
    summaries: completionOf((index) => ({ type: 'reasoning.summary', summary: text, index })),
    'encrypted data': completionOf((index) => ({
      type: 'reasoning.encrypted',
      data: text,
      index,
      format: 'openai-responses-v1',
    })),
  };

  test.each(Object.entries(answers))('is passed on in bounded parts, one a turn: %s', (_, completion) => {
    const chunks = dividedChunks(chunksOf(completion));
    expect(accumulate(chunks, 0)).toEqual(completion);
    let slices = 0;
    for (let at = 0; at < chunks.length; slices += 1) {
      const end = sliceEnd(chunks, at);
      const details = chunks.slice(at, end).flatMap(({ delta }) => delta.reasoning_details ?? []);
      expect(details.length).toBeLessThanOrEqual(1_200);
      at = end;
    }
    expect(slices).toBeGreaterThanOrEqual(8);
  });

  test.each(Object.entries(answers))('is written for a client of whole Messages in many steps: %s', (_, completion) => {
    const usage = {} as WholeAnswer['usage'];
    const answer = { completion, served: { model: 'a/b', provider: 'A' }, usage, classes: null, metadata: undefined };
    const envelope = createEnvelopes('a secret of at least thirty-two characters')('organization');
    const { value, steps } = stepped(messageParts(answer, { id: 'gen-1', envelope, reasoning: 'shown' }));
    expect(steps).toBeGreaterThanOrEqual(8);
    const { content } = JSON.parse(joinParts(value)) as { content: { thinking?: string }[] };
    const shown = content.map(({ thinking = '' }) => thinking).join('');
    const { reasoning } = completion.choices[0].message;
    expect(shown.replaceAll('\n', '')).toBe((reasoning ?? '').replaceAll('\n', ''));
  });
});

test('a turn that is too long to be sealed or kept is not written as JSON', () => {
  let writes = 0;
  const block = {
    type: 'x',
    text: 'a'.repeat(10_000_000),
    toJSON() {
      writes += 1;
      return {};
    },
  };
  const turn = { w: 'openai-responses', i: 'a', t: [], c: [], d: [], n: [{ wire: 'openai-responses', block }] };
  const sealer = createSealer('a secret of at least thirty-two characters');
  const seal = sealer.seal(turn as never, { organization_id: 'o', generation_id: 'gen-1' });
  expect(writes).toBe(0);
  expect(seal?.is_whole).toBe(false);
});
