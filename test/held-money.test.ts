/**
 * The hold of requests on every wire, with the numbers in `held-money.txt`. A change of them changes what callers with
 * a spend limit may do: make it on purpose, with `npm test -- test/held-money.test.ts --update=all`, and explain it in
 * the commit.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { messagesClient } from '../src/api/messages/client.ts';
import type { Endpoint, Model } from '../src/catalog/model.ts';
import { GatewayError } from '../src/errors.ts';
import { prepareAttempt } from '../src/inference/attempt/prepare-attempt.ts';
import { createMeasure } from '../src/inference/money/measure.ts';
import { costOf } from '../src/inference/money/worst-case.ts';
import { dialects } from '../src/providers/dialects.ts';
import type { Provider } from '../src/providers/provider.ts';
import type { Candidate } from '../src/routing/plan.ts';
import type { ChatRequest, InnerPart, InnerTool, Message, Native, Wire } from '../src/schemas/inner.ts';
import type { JsonObject } from '../src/schemas/json.ts';
import type { Prices } from '../src/schemas/prices.ts';
import { inTier } from './tier.ts';

const wires: readonly Wire[] = [...dialects.keys()];
const GOLDEN = join(import.meta.dirname, 'held-money.txt');

const PRICES: Prices = {
  prompt: 3_000_017,
  completion: 15_000_011,
  input_cache_read: 300_007,
  input_cache_write: 3_750_019,
  input_cache_write_1h: 6_000_023,
  audio: 40_000_003,
  audio_output: 80_000_009,
  image: 1_000_003,
  image_token: 5_000_011,
  web_search: 10_000_000_019,
  request: 5_000_011,
  discount: 0.07,
};

const MODELS = [
  'claude-sonnet-4-5',
  'gemini-2.5-flash',
  'gemini-3-pro-preview',
  'gpt-4o-mini',
  'groq/compound',
  'sonar-deep-research',
  'qwen3-max',
] as const;

interface Case {
  name: string;
  request: Partial<ChatRequest>;
  endpoint?: Partial<Endpoint>;
  tokenizer?: string;
}

const text = (value: string): InnerPart => ({ type: 'text', text: value });
const user = (...content: InnerPart[]): Partial<ChatRequest> => ({ messages: [{ role: 'user', content }] });
const native = (wire: Wire, block: JsonObject): Native => ({ type: 'native', wire, block });
const base64 = Buffer.from('a picture, a sound or a document'.repeat(40)).toString('base64');
const functionTool: InnerTool = { type: 'function', function: { name: 'look', parameters: { type: 'object' } } };
const options = (fields: JsonObject): Partial<ChatRequest> => ({ provider: { options: { a: fields } } });

const PARTS: Record<string, InnerPart> = {
  picture: { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } },
  'a picture by its address': { type: 'image_url', image_url: { url: 'https://files.example/a.png' } },
  sound: { type: 'input_audio', input_audio: { data: base64, format: 'wav' } },
  film: { type: 'video_url', video_url: { url: `data:video/mp4;base64,${base64}` } },
  'a film of YouTube': { type: 'video_url', video_url: { url: 'https://youtu.be/abc' } },
  document: { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${base64}` } },
  'a file of Google': { type: 'file', file: { file_data: 'https://generativelanguage.googleapis.com/v1beta/files/a' } },
  'a file by its id': { type: 'file', file: { file_id: 'file-1' } },
};

/** Declarations of tools of several providers: some run at the provider, some at the client. */
const DECLARED: JsonObject[] = [
  { type: 'web_search_20250305', name: 'web_search', max_uses: 3 },
  { type: 'web_search_20250305', name: 'web_search' },
  { type: 'advisor_20260101', name: 'advisor', model: 'claude-opus-4-8' },
  { type: 'bash_20250124', name: 'bash' },
  { type: 'web_search' },
  { type: 'code_interpreter', container: { type: 'auto' } },
  { type: 'apply_patch' },
  { type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'f' }, { type: 'computer' }] },
  { type: 'namespace', name: 'n', tools: [{ type: 'web_search' }] },
  { googleSearch: {} },
  { googleSearch: {}, urlContext: {}, functionDeclarations: [] },
];

/** Fields that clients add to a body by `provider.options`. */
const OPTIONS: JsonObject[] = [
  { mcp_servers: [{ type: 'url', url: 'https://tools.example/mcp', name: 'm' }] },
  { web_search_options: {} },
  { search_parameters: { mode: 'on' } },
  { enable_search: true },
  { enable_search: false },
  { speed: 'fast', inference_geo: 'us' },
  {
    tools: [
      { type: 'web_search_20250305', name: 'web_search' },
      { type: 'advisor_20260101', name: 'advisor' },
    ],
  },
  { tools: [{ googleSearch: {} }, { urlContext: {} }] },
  { tools: { googleSearch: {} } },
  { context_management: { edits: [{ type: 'compact_20260112' }] } },
  { context_management: { edits: [null, { type: 'clear_tool_uses_20250919' }] } },
  { compaction: { enabled: true } },
  { thinking: { type: 'enabled', budget_tokens: 5_000 } },
  { thinking_budget: 2_345, enable_thinking: true },
  { enable_thinking: false },
  { prediction: { type: 'content', content: 'predicted words' } },
  { cachePoint: { type: 'default' } },
  { input: [{ type: 'additional_tools', tools: [{ type: 'web_search' }, { type: 'function', name: 'f' }] }] },
];

const BLOCKS: JsonObject[] = [
  { type: 'image', source: { type: 'file', file_id: 'file-1' } },
  { type: 'input_image', file_id: 'file-1' },
  { type: 'tool_result', content: [{ type: 'image' }, { type: 'computer_screenshot' }] },
  { type: 'tool_addition', tool: { definition: { type: 'web_search_20250305', name: 'web_search' } } },
  { type: 'compaction', tool_changes: [{ tool: { definition: { type: 'advisor_20260101', name: 'advisor' } } }] },
  { type: 'additional_tools', tools: [{ type: 'web_search' }, { type: 'local_shell' }] },
];

const CASES: readonly Case[] = [
  { name: 'a text', request: {} },
  { name: 'a bound', request: { max_tokens: 1_000 } },
  { name: 'several answers', request: { n: 3, max_tokens: 100 } },
  { name: 'a schema', request: { response_format: { type: 'json_schema', json_schema: { name: 's', schema: {} } } } },
  { name: 'a function', request: { tools: [functionTool] } },
  { name: 'effort', request: { reasoning: { effort: 'high' }, max_tokens: 20_000 } },
  { name: 'a prediction', request: { prediction: { type: 'content', content: 'what may come' } } },
  {
    name: 'a cache hint',
    request: user({ type: 'text', text: 'Hello', cache_control: { type: 'ephemeral' } }),
  },
  {
    name: 'a cache hint of an hour',
    request: user({ type: 'text', text: 'Hello', cache_control: { type: 'ephemeral', ttl: '1h' } }),
  },
  {
    name: 'its own thinking budget',
    request: {
      max_tokens: 9_000,
      reasoning: { max_tokens: 4_000 },
      ext: {
        wire: 'anthropic-messages',
        client: messagesClient,
        rest: { thinking: { type: 'enabled', budget_tokens: 4_000 } },
      },
    },
  },
  {
    name: 'thinking that is enabled by a quirk',
    request: {},
    endpoint: { quirks: { reasoning_field: 'enable_thinking' } },
  },
  ...MODELS.map((upstreamModel) => ({ name: upstreamModel, request: {}, endpoint: { upstream_model: upstreamModel } })),
  ...Object.entries(PARTS).map(([name, part]) => ({ name, request: user(text('What is this?'), part) })),
  { name: 'an image for GPT', request: user(PARTS['picture']!), tokenizer: 'GPT' },
  ...DECLARED.flatMap((block, at) =>
    (['anthropic-messages', 'openai-responses', 'gemini-generate-content'] as const).map((wire) => ({
      name: `declared ${at} of ${wire}`,
      request: { tools: [functionTool, native(wire, block)] },
    })),
  ),
  ...OPTIONS.map((fields, at) => ({ name: `options ${at}`, request: options(fields) })),
  ...BLOCKS.flatMap((block, at) =>
    wires.map((wire) => ({
      name: `block ${at} of ${wire}`,
      request: user(text('Look'), native(wire, block)),
    })),
  ),
];

function candidateOf(
  wire: Wire,
  { endpoint = {}, tokenizer = 'Other' }: Pick<Case, 'endpoint' | 'tokenizer'>,
): Candidate {
  const facts: Endpoint = {
    id: 'a|b/c',
    model: 'b/c',
    provider: 'a',
    tag: 'a',
    upstream_model: 'model',
    context_length: 200_000,
    max_completion_tokens: 32_000,
    max_prompt_tokens: undefined,
    pricing: PRICES,
    supported_parameters: undefined,
    quantization: 'unknown',
    supports_implicit_caching: false,
    input_modalities: ['text', 'image', 'file', 'audio', 'video'],
    quirks: {},
    ...endpoint,
  };
  const model = { id: 'b/c', tokenizer, output_modalities: ['text'] } as unknown as Model;
  return { model, endpoint: facts, provider: { slug: 'a', name: 'A', dialect: wire } as Provider, excluded: undefined };
}

const measure = createMeasure({ count: async () => undefined } as unknown as Parameters<typeof createMeasure>[0]);
const media = new Map([['https://files.example/a.png', { mime_type: 'image/png', base64 }]]);

/** The hold of a request in strict and in soft mode, its lowest output bound, and what is sent and reported for it. */
async function held(wire: Wire, one: Case, hasLimit: boolean): Promise<string> {
  const request = { messages: [{ role: 'user', content: 'Hello' }], ...one.request } as ChatRequest;
  const spend = hasLimit ? { default_tokens: 4_096 } : undefined;
  try {
    const candidate = candidateOf(wire, one);
    const prepared = await prepareAttempt(request, candidate, { spend, media });
    const bound = prepared.output_tokens ?? 777;
    const strict = await measure(prepared, bound, 'strict');
    const soft = await measure(prepared, bound, 'soft');
    const sent = createHash('sha256')
      .update(JSON.stringify([prepared.encoded.body, prepared.report.map(({ kind, field }) => [kind, field])]))
      .digest('hex');
    const amounts = [strict.exposure, strict.floor(), soft.exposure].map((exposure) => costOf(exposure, bound));
    return [...amounts, strict.least_tokens, bound, sent.slice(0, 12)].join(' ');
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return `${error.status} ${error.message}`;
  }
}

/** The same sequence of numbers from 0 to 1 in every run. */
function draws(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function randomCase(draw: () => number): Case {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(draw() * list.length)]!;
  const some = <T>(list: readonly T[], share = 0.25): T[] => list.filter(() => draw() < share);
  const maybe = <T extends object>(value: () => T): T | object => (draw() < 0.4 ? value() : {});
  const conversation = (): Message[] => [
    { role: 'system', content: 'Be brief.' },
    {
      role: 'user',
      content: [
        text('Look'),
        ...some(Object.values(PARTS), 0.05),
        ...some(BLOCKS).map((block) => native(pick(wires), block)),
      ],
    },
    {
      role: 'assistant',
      content: 'I did.',
      ext: { wire: pick(wires), rest: {}, natives: some(BLOCKS).map((block) => native(pick(wires), block)) },
    },
    {
      role: 'user',
      content: [
        {
          type: 'text',
          text: 'Go on',
          ...maybe(() => ({ cache_control: { type: 'ephemeral' as const, ttl: pick(['5m', '1h'] as const) } })),
        },
      ],
    },
  ];
  return {
    name: '',
    tokenizer: pick(['GPT', 'Claude', 'Other']),
    request: {
      messages: conversation(),
      ...maybe(() => ({ max_tokens: pick([0, 1, 16, 1_000, 50_000]) })),
      ...maybe(() => ({ n: 2 })),
      ...maybe(() => ({ tools: [functionTool, ...some(DECLARED).map((block) => native(pick(wires), block))] })),
      ...maybe(() => ({ reasoning: pick([{ effort: 'low' as const }, { max_tokens: 2_048 }, { enabled: false }]) })),
      ...maybe(() => options(Object.assign({}, ...some(OPTIONS)) as JsonObject)),
      ...maybe(() => ({
        ext: {
          wire: 'anthropic-messages' as const,
          client: messagesClient,
          rest: { thinking: { type: 'enabled', budget_tokens: 1_500 } },
        },
      })),
    },
    endpoint: {
      upstream_model: pick(MODELS),
      ...maybe(() => ({ context_length: undefined })),
      quirks: pick([
        {},
        { reasoning_field: 'enable_thinking' as const },
        { google_cloud: true },
        { no_native_tools: true },
      ]),
      pricing: pick([
        PRICES,
        { prompt: 1_000, completion: 2_000 },
        { ...PRICES, input_cache_write: 1, input_cache_write_1h: 2 },
      ]),
    },
  };
}

test('the hold of each listed request is unchanged, on every wire', async () => {
  const lines: string[] = [];
  for (const wire of wires) {
    for (const one of CASES) {
      lines.push(
        `${wire} | ${one.name} | ${await held(wire, one, false)} | with a limit: ${await held(wire, one, true)}`,
      );
    }
  }
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot(GOLDEN);
});

/** A digest over the first random requests on each wire: it names no case, but any difference changes it. */
const DIGESTS: Readonly<Record<Wire, readonly [first: string, all: string]>> = {
  'openai-chat': ['e17f78a0ea13cd48', 'e9cbecc9f152c9c8'],
  'openai-responses': ['7c899efdd77c6258', '4624f78d8fac30e3'],
  'anthropic-messages': ['0587096b5101e5a8', '381cfd90c34c4071'],
  'gemini-generate-content': ['0c0a07d6a9912da6', '9e948d29ba6fd043'],
  'bedrock-converse': ['05e8943cf2169ac3', '844fb462e0a3d488'],
  'cohere-chat': ['b971a136e079f1d6', 'e29d02a16a166b84'],
};

test.each(wires)('the hold of random requests to %s is unchanged', async (wire) => {
  const draw = draws(20_261_123);
  const digest = createHash('sha256');
  for (let at = 0; at < inTier(100, 2_000); at += 1) {
    const one = randomCase(draw);
    digest.update(`${await held(wire, one, draw() < 0.5)}\n`);
  }
  expect(digest.digest('hex').slice(0, 16)).toBe(inTier(...DIGESTS[wire]));
});
