/**
 * Answers beyond what the gateway reads: more parts, values or levels than real answers have, and endless heads and
 * bodies. Before any content was shown, another endpoint answers; after that the answer ends as a failure. The received
 * part is charged.
 */
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { limits } from '../../src/limits.ts';
import { type FailoverSite, startFailoverSite, wire } from '../routing/failover-site.ts';
import { responseHead, type Step } from '../wires/wire-server.ts';

let site: FailoverSite;
beforeAll(async () => {
  site = await startFailoverSite({ timeouts: { upstream_first_token_ms_max: 2_000 } });
  site.scripts['b'] = ({ body }) =>
    (JSON.parse(body) as { stream?: boolean }).stream === true
      ? [wire.head, wire.text('From b'), wire.end(2), 'END']
      : whole({ content: 'From b' });
});
afterAll(() => site.stop());

const times = <T>(n: number, make: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => make(i));
const usage = { prompt_tokens: 10, completion_tokens: 7, total_tokens: 17 };
const json = (body: string): Step[] => [responseHead(200, 'application/json'), body, 'END'];
const bodyOf = (message: object) =>
  JSON.stringify({ id: 'up-1', choices: [{ index: 0, message, finish_reason: 'stop' }], usage });
const whole = (message: object): Step[] => json(bodyOf(message));
const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
const DEEP = 10_000;

const call = (index: number) => ({
  index,
  id: `c${index}`,
  type: 'function',
  function: { name: 'f', arguments: '{}' },
});
const citation = (i: number) => ({
  type: 'url_citation',
  url_citation: { url: `https://a.example/${i}`, title: 't', start_index: 0, end_index: 1 },
});
const image = (i: number) => ({ type: 'image_url', image_url: { url: `data:,${i}` } });
const thought = (index: number) => ({ type: 'reasoning.text', text: 'a', index });

const quote = 'She said "yes".\n'.repeat(1_024);
const quoted = (i: number) => ({ type: 'url_citation', url_citation: { ...citation(i).url_citation, content: quote } });
const file = (chars: number) => ({
  type: 'file',
  file: { hash: 'h', name: 'a.pdf', content: [{ type: 'text', text: 'a'.repeat(chars) }] },
});

/** One more of each than is read. */
const TOO_MANY: [what: string, message: object][] = [
  ['tool calls', { tool_calls: times(limits.answer_calls_max + 1, call) }],
  ['annotations', { content: 'a', annotations: times(limits.answer_annotations_max + 1, citation) }],
  [
    'characters of citations',
    { content: 'a', annotations: times(Math.ceil(limits.answer_citations_chars_max / quote.length), quoted) },
  ],
  ['characters of files', { content: 'a', annotations: [file(limits.answer_files_chars_max)] }],
  ['parts of reasoning', { reasoning_details: times(limits.answer_details_max + 1, thought) }],
  ['images', { content: 'a', images: times(limits.answer_images_max + 1, image) }],
  ['values', { content: 'a', x: times(limits.answer_values_max, () => 0) }],
];

interface AnswerBody {
  error?: { code?: number; status?: number; message: string };
}

async function attemptsOf(body: object, options?: { key: string }) {
  const seen = await site.stream(body, options);
  const { attempts } = seen.last.gateway_metadata!;
  return { seen, attempts };
}

describe('before the first content', () => {
  test.each(TOO_MANY)(
    'a whole answer with too many %s leads to the next endpoint, and its usage is charged',
    async (what, message) => {
      site.scripts['a'] = () => whole(message);
      const response = await site.ask({});
      const answer = (await response.json()) as {
        choices: { message: { content: string } }[];
        gateway_metadata: { attempts: { provider: string; failure: string | null; cost: number }[] };
      };
      expect([response.status, answer.choices[0]?.message.content]).toEqual([200, 'From b']);
      const [failed] = answer.gateway_metadata.attempts;
      expect(failed).toMatchObject({ provider: 'A', failure: 'invalid_response' });
      // Nothing is known of JSON that was not parsed.
      expect(failed!.cost > 0).toBe(what !== 'values');
    },
  );

  test('a whole answer that cannot be decoded leads to the next endpoint, and both are charged by their usage', async () => {
    site.scripts['a'] = () => json(JSON.stringify({ choices: {}, usage }));
    const response = await site.ask({});
    const answer = (await response.json()) as { id: string; gateway_metadata: { attempts: object[] } };
    // Prices in USD per million: 1 and 1,000 at A, 2 and 2,000 at B.
    expect(answer.gateway_metadata.attempts).toMatchObject([
      { provider: 'A', failure: 'invalid_response', cost: 0.00701, estimated: false },
      { provider: 'B', failure: null, cost: 0.01402 },
    ]);
    expect((await site.generation(answer.id)).total_cost).toBe(0.02103);
    await site.expectSound();
  });

  test.each(TOO_MANY)(
    'a whole answer with too many %s to a request for a stream leads to the next endpoint',
    async (_what, message) => {
      site.scripts['a'] = () => whole(message);
      const { seen, attempts } = await attemptsOf({});
      expect([seen.status, seen.text]).toEqual([200, 'From b']);
      expect(attempts[0]).toMatchObject({ provider: 'A', failure: 'invalid_response' });
    },
  );

  test.each<[string, string]>([
    [
      'a whole answer',
      `{"id":"up-1","choices":[{"index":0,"message":{"content":"a","annotations":[{"type":"file","x":${deep(DEEP)}}]}}]}`,
    ],
    ['an error inside a 200', `{"error":{"message":"x","detail":${deep(DEEP)}}}`],
    ['an error of nested details', `{"detail":${'{"detail":'.repeat(DEEP)}1${'}'.repeat(DEEP)}}`],
    ['a body of brackets only', deep(DEEP)],
    ['brackets that are never closed', '['.repeat(DEEP)],
  ])('%s with thousands of levels leads to the next endpoint, whole and streamed', async (_what, body) => {
    for (const head of [responseHead(200, 'application/json'), responseHead(500, 'application/json')]) {
      site.scripts['a'] = () => [head, body, 'END'];
      const response = await site.ask({});
      expect(response.status).toBe(200);
      expect(await response.text()).toContain('From b');
    }
    site.scripts['a'] = () => [wire.head, `data: ${body}\n\n`, 'END'];
    const seen = await site.stream({});
    expect([seen.status, seen.text]).toEqual([200, 'From b']);
  });

  test.each<[string, () => Step[]]>([
    [
      'a head of 100,000 lines',
      () => [`HTTP/1.1 200 OK\r\n${times(100_000, (i) => `x-${i}: 1\r\n`).join('')}\r\n{}`, 'END'],
    ],
    ['a head of one endless line', () => [`HTTP/1.1 200 OK\r\nx-a: ${'a'.repeat(1_000_000)}\r\n\r\n{}`, 'END']],
    [
      'endless interim answers',
      () => [{ repeat: 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(100), times: 1_000_000 }],
    ],
    [
      'a compressed body that was not requested',
      () => [
        responseHead(200, 'application/json', { 'content-encoding': 'gzip' }),
        gzipSync(Buffer.alloc(50_000_000, 32)),
        'END',
      ],
    ],
  ])('%s leads to the next endpoint', async (_what, steps) => {
    site.scripts['a'] = steps;
    const seen = await site.stream({});
    expect([seen.status, seen.text]).toEqual([200, 'From b']);
  });
});

describe('after the answer has begun', () => {
  const flood =
    wire.text('Hello') + times(limits.answer_calls_max + 1, (i) => wire.delta({ tool_calls: [call(i)] })).join('');

  test('a stream with too many calls ends as a failure, with everything before it, and is charged', async () => {
    site.scripts['a'] = () => [wire.head, flood, wire.end(5), 'END'];
    // A bounded cost would cut the answer before.
    const key = await site.key();
    const { seen, attempts } = await attemptsOf({ max_tokens: undefined }, { key });
    expect(seen.text).toBe('Hello');
    expect(seen.finishes).toEqual(['error']);
    const calls = seen.chunks.flatMap(({ choices: [choice] }) => choice?.delta.tool_calls ?? []);
    expect(new Set(calls.map((one) => (one as { index: number }).index)).size).toBe(limits.answer_calls_max);
    expect(seen.chunks.find(({ error }) => error !== undefined)?.error).toMatchObject({
      code: 502,
      message: expect.stringContaining(`more than ${limits.answer_calls_max} tool calls`),
    });
    expect(attempts).toMatchObject([{ provider: 'A', failure: 'invalid_response' }]);
    expect((await site.generation(seen.id, key)).total_cost).toBeGreaterThan(0);
    await site.expectSound();
  });

  test('a stream with citations that are too long together ends as a failure, with those before it, and is charged', async () => {
    const most = Math.floor(limits.answer_citations_chars_max / (quote.length + 200));
    const cited = times(most + 10, (i) => wire.delta({ annotations: [quoted(i)] })).join('');
    site.scripts['a'] = () => [wire.head, wire.text('Hello'), cited, wire.end(5), 'END'];
    const key = await site.key();
    const { seen, attempts } = await attemptsOf({ max_tokens: undefined }, { key });
    expect([seen.text, seen.finishes]).toEqual(['Hello', ['error']]);
    const shown = seen.chunks.flatMap(
      ({ choices: [choice] }) => (choice?.delta as { annotations?: object[] })?.annotations ?? [],
    );
    expect(shown.length).toBeGreaterThanOrEqual(most);
    expect(shown.length).toBeLessThan(most + 10);
    expect(seen.chunks.find(({ error }) => error !== undefined)?.error?.message).toContain('characters of citations');
    expect(attempts).toMatchObject([{ provider: 'A', failure: 'invalid_response' }]);
    expect((await site.generation(seen.id, key)).total_cost).toBeGreaterThan(0);
    await site.expectSound();
  });

  test('an event with thousands of levels ends a stream in the same way', async () => {
    site.scripts['a'] = () => [
      wire.head,
      wire.text('Hello'),
      `data: {"choices":[{"delta":{"x":${deep(DEEP)}}}]}\n\n`,
      'END',
    ];
    const seen = await site.stream({});
    expect([seen.text, seen.finishes]).toEqual(['Hello', ['error']]);
    await site.expectSound();
  });

  test.each(['/messages', '/responses', '/completions'])(
    'a client of %s receives it like every late failure',
    async (path) => {
      site.scripts['a'] = () => [wire.head, wire.text('Hello'), `data: ${deep(DEEP)}\n\n`, 'END'];
      const response = await site.gateway.call('POST', path, {
        model: 'wire/model',
        stream: true,
        max_tokens: 100,
        provider: { order: ['a'] },
        ...(path === '/responses'
          ? { input: 'x' }
          : path === '/completions'
            ? { prompt: 'x' }
            : { messages: [{ role: 'user', content: 'x' }] }),
      });
      const text = await response.text();
      expect(response.status).toBe(200);
      expect(text).toContain('Hello');
      expect(text).toContain(`deeper than ${limits.answer_levels_max} levels`);
    },
  );
});

test.each(['/chat/completions', '/messages', '/responses'])(
  'arguments with thousands of levels are text for a client of %s',
  async (path) => {
    const args = `{"a":${deep(DEEP)}}`;
    site.scripts['a'] = () => whole({ tool_calls: [{ ...call(0), function: { name: 'f', arguments: args } }] });
    const response = await site.gateway.call('POST', path, {
      model: 'wire/model',
      max_tokens: 100,
      ...(path === '/responses' ? { input: 'x' } : { messages: [{ role: 'user', content: 'x' }] }),
    });
    expect([response.status, ((await response.json()) as AnswerBody).error]).toEqual([
      200,
      path === '/responses' ? null : undefined,
    ]);
  },
);
