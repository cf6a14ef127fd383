import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { messagesClient } from '../../api/messages/client.ts';
import type { Endpoint, Model } from '../../catalog/model.ts';
import { atOnce } from '../../http/turn-work.ts';
import { limits } from '../../limits.ts';
import { dialects } from '../../providers/dialects.ts';
import type { Provider } from '../../providers/provider.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest, InnerPart, Message, TokenClasses, Wire } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { Prices } from '../../schemas/prices.ts';
import { type PreparedAttempt, prepareAttempt } from '../attempt/prepare-attempt.ts';
import { priceAttempt } from './attempt-cost.ts';
import {
  costOf,
  exposureOf,
  type Media,
  mediaOf,
  outputFor,
  PROMPT_TOKENS_UNKNOWN,
  promptTokens,
  TEMPLATE_SCHEMA_TOKENS_MAX,
  textBytes,
  textSteps,
} from './worst-case.ts';

const textOf = (attempt: PreparedAttempt, media: Media): string => atOnce(textSteps(attempt, media));

interface Facts extends Partial<Endpoint> {
  tokenizer?: string;
  makes?: string[];
}

function candidateOf(wire: Wire, { tokenizer = 'Other', makes = ['text'], ...facts }: Facts): Candidate {
  const endpoint = {
    id: 'a|b/c',
    model: 'b/c',
    provider: 'a',
    tag: 'a',
    upstream_model: 'model',
    context_length: undefined,
    max_completion_tokens: undefined,
    max_prompt_tokens: undefined,
    pricing: {},
    supported_parameters: undefined,
    quantization: 'unknown',
    supports_implicit_caching: false,
    input_modalities: ['text', 'image', 'file', 'audio', 'video'],
    quirks: {},
    ...facts,
  };
  const model = { id: 'b/c', tokenizer, output_modalities: makes } as unknown as Model;
  return { model, endpoint, provider: { slug: 'a', name: 'A', dialect: wire } as Provider, excluded: undefined };
}

function preparing(request: Partial<ChatRequest>, facts: Facts = {}, wire: Wire = 'openai-chat') {
  const whole = { messages: [{ role: 'user', content: 'Hello' }], ...request } as ChatRequest;
  return prepareAttempt(whole, candidateOf(wire, facts));
}

/** For a request that is not long. */
function prepared(...of: Parameters<typeof preparing>): PreparedAttempt {
  return preparing(...of) as PreparedAttempt;
}

function promptOf(attempt: PreparedAttempt) {
  const media = mediaOf(attempt);
  return promptTokens(attempt, textBytes(attempt, media), media);
}

/** The most that the attempt can cost with this number of output tokens. */
function worst(attempt: PreparedAttempt, outputTokens: number): number {
  return costOf(exposureOf(attempt, promptOf(attempt), outputTokens), outputTokens);
}

const parts = (...content: InnerPart[]): Partial<ChatRequest> => ({ messages: [{ role: 'user', content }] });
const base64 = 'QUJD'.repeat(25_000);
const text: InnerPart = { type: 'text', text: 'What is this?' };

describe('crafted data', () => {
  const bare = (data: string): InnerPart => ({
    type: 'image_url',
    image_url: { url: `data:image/png;base64,${data}` },
  });
  const long = 'A'.repeat(4_000_000);

  test('that is nearly equal does not take quadratic time', async () => {
    const near = `${'A'.repeat(1_000_000)}B${'A'.repeat(1_000_000)}`;
    const attempt = await preparing(parts(text, bare(long), bare(near)));
    const media = mediaOf(attempt);
    expect(media.data).toEqual([long, near]);
    expect(textOf(attempt, media).length).toBeLessThan(500);
    expect(textBytes(attempt, media)).toBe(Buffer.byteLength(textOf(attempt, media)));
  });

  test('in a hundred thousand different parts is searched once', async () => {
    const many = Array.from({ length: 100_000 }, (_, at) => bare(String(at).padStart(120, 'A')));
    const attempt = await preparing(parts(text, ...many));
    const media = mediaOf(attempt);
    expect(media.data.length).toBe(many.length);
    expect(textBytes(attempt, media)).toBe(Buffer.byteLength(textOf(attempt, media)));
  });

  test('that is also in a text is subtracted once', () => {
    const data = 'A'.repeat(1_000);
    const attempt = prepared(parts({ type: 'text', text: data }, bare(data)));
    const media = mediaOf(attempt);
    expect(media.data).toEqual([data]);
    expect(textOf(attempt, media).length).toBe(attempt.payload.length - data.length);
  });
});

test.each<[Wire, InnerPart, boolean]>([
  ['gemini-generate-content', { type: 'text', text: '"fileUri":"https://a' }, false],
  ['gemini-generate-content', { type: 'video_url', video_url: { url: 'https://youtu.be/a' } }, true],
])(
  'references to content in %s are detected in a body written in pieces as in a short one',
  async (wire, part, isOpen) => {
    for (const chars of [10, limits.json_long_chars_min - 5, 3 * limits.json_long_chars_min]) {
      const attempt = await preparing(parts({ type: 'text', text: 'x'.repeat(chars) }, part), {}, wire);
      expect([chars, typeof attempt.payload === 'string', mediaOf(attempt).is_open]).toEqual([
        chars,
        chars < 1e6,
        isOpen,
      ]);
      expect(JSON.parse(attempt.payload.toString())).toEqual(attempt.encoded.body);
    }
  },
);

test('a file with an id and null as its data is a file whose content is unknown', () => {
  const file = (more: object): Partial<ChatRequest> =>
    parts(text, { type: 'file', file: { file_id: 'file-1', ...more } } as InnerPart);
  const attempt = prepared(file({ file_data: null }));
  expect(mediaOf(attempt)).toEqual(mediaOf(prepared(file({}))));
  expect(mediaOf(attempt).is_open).toBe(true);
});

describe('fetched media', () => {
  const url = 'https://files.example/a.png';
  const request = {
    messages: [{ role: 'user', content: [text, { type: 'image_url', image_url: { url } }] }],
  } as ChatRequest;
  const media = new Map([[url, { mime_type: 'image/png', base64 }]]);

  test('is an image if its bytes are sent, and not their base64 text', () => {
    const candidate = candidateOf('openai-chat', { quirks: { inline_images: true } });
    const attempt = prepareAttempt(request, candidate, { media }) as PreparedAttempt;
    expect(attempt.payload).toContain(base64);
    expect(promptOf(attempt)).toMatchObject({ image: 16_384 });
    expect(promptOf(attempt).text).toBeLessThan(1_000);
    expect(textOf(attempt, mediaOf(attempt))).not.toContain(base64);
  });

  test('is counted by its address if the address is sent', () => {
    const candidate = candidateOf('openai-chat', {});
    const attempt = prepareAttempt(request, candidate, { media }) as PreparedAttempt;
    expect(attempt.payload).toContain(url);
    expect(promptOf(attempt)).toMatchObject({ image: 16_384 });
  });
});

describe('the prompt', () => {
  test('every byte of a text is at most one token, in any script', () => {
    for (const content of ['plain words', '人工智能是计算机科学', '🌍☕', '\n\n\t"quoted"']) {
      const attempt = prepared({ messages: [{ role: 'user', content }] });
      expect(promptOf(attempt).text).toBeGreaterThanOrEqual(Buffer.byteLength(content) + limits.template_tokens_max);
    }
  });

  test.each([
    ['tools', { tools: [{ type: 'function', function: { name: 'f' } }] }, limits.template_tools_tokens_max],
    [
      'a schema',
      { response_format: { type: 'json_schema', json_schema: { name: 's', schema: {} } } },
      TEMPLATE_SCHEMA_TOKENS_MAX,
    ],
  ] as [string, Partial<ChatRequest>, number][])('%s have a template of their own', (_name, more, allowance) => {
    expect(promptOf(prepared(more)).text - promptOf(prepared({})).text).toBeGreaterThan(allowance);
  });

  test.each([
    [
      'an image',
      { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } },
      {},
      { image: 16_384, audio: 0 },
    ],
    [
      'an image by URL',
      { type: 'image_url', image_url: { url: 'https://a.example/b.png' } },
      {},
      { image: 16_384, audio: 0 },
    ],
    [
      'an image for a GPT model',
      { type: 'image_url', image_url: { url: 'https://a.example/b.png' } },
      { tokenizer: 'GPT' },
      { image: 10_000, audio: 0 },
    ],
    [
      'an image for GPT-4o mini',
      { type: 'image_url', image_url: { url: 'https://a.example/b.png' } },
      { tokenizer: 'GPT', upstream_model: 'gpt-4o-mini-2024-07-18' },
      { image: 48_169, audio: 0 },
    ],
    ['sound', { type: 'input_audio', input_audio: { data: base64, format: 'wav' } }, {}, { image: 0, audio: 4_688 }],
    [
      'a document',
      { type: 'file', file: { file_data: `data:application/pdf;base64,${base64}` } },
      {},
      { image: 166_384, audio: 0 },
    ],
  ] as [string, InnerPart, Facts, object][])(
    '%s counts by its kind, not by its base64',
    (_name, part, facts, expected) => {
      const prompt = promptOf(prepared(parts(text, part), facts));
      expect(prompt).toMatchObject(expected);
      expect(prompt.text).toBeLessThan(1_000);
    },
  );

  test.each([
    ['a document by URL', parts({ type: 'file', file: { file_data: 'https://a.example/b.pdf' } })],
    ['an uploaded file', parts({ type: 'file', file: { file_id: 'file-1' } })],
    ['a video by URL', parts({ type: 'video_url', video_url: { url: 'https://a.example/b.mp4' } })],
    ['a short video', parts({ type: 'video_url', video_url: { url: `data:video/mp4;base64,${base64}` } })],
    ['a search tool', { web_search_options: {} }],
    ['a provider-side tool', { tools: [{ type: 'native', wire: 'openai-chat', block: { type: 'web_search' } }] }],
    ['a search parameter of xAI', { search_parameters: { mode: 'on' } }],
    ['a search parameter of Alibaba', { enable_search: true }],
    ['an MCP server', { mcp_servers: [{ url: 'https://a.example' }] }],
  ] as [string, Partial<ChatRequest>][])('%s may fill the whole context', (_name, request) => {
    expect(promptOf(prepared(request, { context_length: 123_456 })).text).toBe(123_456);
    expect(promptOf(prepared(request)).text).toBe(PROMPT_TOKENS_UNKNOWN);
  });

  test('the audio of a video is priced as audio', () => {
    const film: InnerPart = { type: 'video_url', video_url: { url: `data:video/mp4;base64,${base64}` } };
    expect(promptOf(prepared(parts(film), { context_length: 9_000 })).audio).toBe(3_000);
    expect(promptOf(prepared(parts(film), {}, 'gemini-generate-content')).audio).toBe(349_526);
  });

  const film = `data:video/mp4;base64,${base64}`;
  test.each([
    ['a file part', { type: 'file', file: { file_data: film } }, 'openai-chat'],
    ['an image part', { type: 'image_url', image_url: { url: film } }, 'gemini-generate-content'],
    ['sound', { type: 'input_audio', input_audio: { data: film, format: 'mp3' } }, 'gemini-generate-content'],
    [
      'an image part at an address that Google reads',
      { type: 'image_url', image_url: { url: 'https://www.youtube.com/watch?v=a' } },
      'gemini-generate-content',
    ],
    [
      'a file with its name',
      { type: 'file', file: { file_data: base64, filename: 'a.mp4' } },
      'gemini-generate-content',
    ],
    [
      'a file of Nova with its name',
      { type: 'file', file: { file_data: `data:application/octet-stream;base64,${base64}`, filename: 'a.mp4' } },
      'bedrock-converse',
    ],
  ] as [string, InnerPart, Wire][])('a video as %s is counted as a video', (_name, part, wire) => {
    const prompt = promptOf(prepared(parts(text, part), { context_length: 123_456 }, wire));
    expect(prompt).toMatchObject({ text: 123_456, audio: 41_152 });
  });

  test('a document in an image part counts as a document, and audio in a file part as audio', () => {
    const url = `data:application/pdf;base64,${base64}`;
    const document = prepared(parts({ type: 'image_url', image_url: { url } }), {}, 'gemini-generate-content');
    expect(promptOf(document)).toMatchObject({ image: 166_384, audio: 0 });
    const fileData = `data:audio/mp3;base64,${base64}`;
    const sound = prepared(parts({ type: 'file', file: { file_data: fileData } }), {}, 'gemini-generate-content');
    expect(promptOf(sound)).toMatchObject({ image: 0, audio: 4_688 });
  });

  test('audio at an address may fill the context, at the price of audio', () => {
    const url = 'https://a.example/b.mp3';
    const fetched = parts(text, { type: 'input_audio', input_audio: { data: url, format: 'mp3' } });
    expect(promptOf(prepared(fetched, { context_length: 9_000 }))).toMatchObject({ text: 9_000, audio: 9_000 });
    const fileData = 'https://generativelanguage.googleapis.com/v1beta/files/a';
    const uploaded = parts(text, { type: 'file', file: { file_data: fileData } });
    const prompt = promptOf(prepared(uploaded, { context_length: 9_000 }, 'gemini-generate-content'));
    expect(prompt).toMatchObject({ text: 9_000, audio: 9_000 });
  });

  test('audio of few bytes counts by its duration', () => {
    const seconds = 600;
    const wav = Buffer.alloc(44 + 100 * seconds, 0x80);
    wav.write('RIFF', 0);
    wav.writeUInt32LE(wav.length - 8, 4);
    wav.write('WAVEfmt ', 8);
    // The size of the chunk; PCM, one channel; 100 samples a second, one byte each.
    for (const [nth, value] of [16, 0x1_0001, 100, 100, 0x8_0001].entries()) wav.writeUInt32LE(value, 16 + 4 * nth);
    wav.write('data', 36);
    wav.writeUInt32LE(100 * seconds, 40);
    const part: InnerPart = { type: 'input_audio', input_audio: { data: wav.toString('base64'), format: 'wav' } };
    expect(promptOf(prepared(parts(part))).audio).toBeGreaterThanOrEqual(seconds * 32);
  });

  test('a percent-encoded image counts as an image, also on a wire that encodes it again', () => {
    const svg: InnerPart = { type: 'image_url', image_url: { url: 'data:image/svg+xml,%3Csvg/%3E' } };
    for (const wire of ['openai-chat', 'gemini-generate-content'] as const) {
      expect(promptOf(prepared(parts(svg), {}, wire))).toMatchObject({ image: 16_384 });
    }
  });

  test('an image of the model counts if it is sent back to it', () => {
    const images = [{ type: 'image_url' as const, image_url: { url: `data:image/png;base64,${base64}` } }];
    const request = {
      messages: [
        { role: 'user', content: 'Draw.' },
        { role: 'assistant', content: 'So.', images },
      ],
    } as ChatRequest;
    const back = promptOf(prepared(request, {}, 'gemini-generate-content'));
    expect(back.image).toBe(16_384);
    expect(back.text).toBeLessThan(1_000);
    expect(promptOf(prepared(request, {}, 'anthropic-messages')).image).toBe(0);
  });

  test("Google's own tools in a body, beside functions and in one object with them, may fill the context", () => {
    const tool = { type: 'function' as const, function: { name: 'a' } };
    const wire = 'gemini-generate-content';
    const options = (tools: object) =>
      ({ tools: [tool], provider: { options: { a: { tools } } } }) as unknown as ChatRequest;
    const declared = { functionDeclarations: [{ name: 'a' }] };
    const text = (tools: object) => promptOf(prepared(options(tools), { context_length: 123_456 }, wire)).text;
    expect(text([declared])).toBeLessThan(10_000);
    expect(text([declared, { googleSearch: {} }])).toBe(123_456);
    expect(text([{ ...declared, urlContext: {} }])).toBe(123_456);
    expect(text({ googleSearch: {} })).toBe(123_456);
    expect(text(declared)).toBeLessThan(10_000);
  });

  test('a disabled search adds nothing', () => {
    expect(promptOf(prepared({ enable_search: false }, { context_length: 123_456 })).text).toBeLessThan(1_000);
  });

  test('a model with built-in search may fill its context too', () => {
    expect(promptOf(prepared({}, { upstream_model: 'sonar-pro', context_length: 200_000 })).text).toBe(200_000);
    expect(promptOf(prepared({}, { upstream_model: 'compound-beta', context_length: 131_072 })).text).toBe(131_072);
  });

  test('no prompt counts as longer than the model’s context', () => {
    const content = 'word '.repeat(10_000);
    const facts = { context_length: 8_192, max_prompt_tokens: 6_000 };
    expect(promptOf(prepared({ messages: [{ role: 'user', content }] }, facts)).text).toBe(6_000);
  });

  test('data that the dialect dropped is not subtracted from the text', () => {
    const audio: InnerPart = { type: 'input_audio', input_audio: { data: base64, format: 'wav' } };
    const attempt = prepared(parts(text), {});
    const dropped = { ...attempt, request: { ...attempt.request, ...parts(text, audio) } as ChatRequest };
    expect(promptOf(dropped)).toEqual(promptOf(attempt));
  });

  test.each([...dialects.keys()])(
    'data with line breaks, or in a URL in capitals, still counts as an image on %s',
    (wire) => {
      const facts = { upstream_model: 'anthropic.claude' };
      for (const url of [
        `data:image/png;base64,${base64.replace(/.{76}/g, '$&\r\n')}`,
        `DATA:image/png;BASE64,${base64}`,
      ]) {
        const prompt = promptOf(prepared(parts(text, { type: 'image_url', image_url: { url } }), facts, wire));
        expect(prompt.image).toBe(16_384);
        expect(prompt.text).toBeLessThan(1_000);
      }
    },
  );

  test('audio in a data URL in capitals counts as audio', () => {
    const data = `DATA:audio/wav;base64,${base64}`;
    const sound: InnerPart = { type: 'input_audio', input_audio: { data, format: 'wav' } };
    expect(promptOf(prepared(parts(sound), {}, 'gemini-generate-content')).audio).toBe(4_688);
  });

  test('a text that looks like base64 is text', () => {
    const content = `data:image/png;base64,${base64}`;
    expect(promptOf(prepared({ messages: [{ role: 'user', content }] })).text).toBeGreaterThan(base64.length);
  });

  test('the tokenizer gets the text without the base64', () => {
    const attempt = prepared(parts(text, { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } }));
    expect(textOf(attempt, mediaOf(attempt))).toContain('What is this?');
    expect(textOf(attempt, mediaOf(attempt)).length).toBeLessThan(500);
  });
});

describe('the price', () => {
  const cached = {
    messages: [
      {
        role: 'user' as const,
        content: [{ type: 'text' as const, text: 'Hi', cache_control: { type: 'ephemeral' as const } }],
      },
    ],
  };
  const hour = {
    messages: [
      {
        role: 'user' as const,
        content: [
          { type: 'text' as const, text: 'Hi', cache_control: { type: 'ephemeral' as const, ttl: '1h' as const } },
        ],
      },
    ],
  };
  const pricing = {
    prompt: 4_000,
    completion: 10_000,
    input_cache_read: 400,
    input_cache_write: 5_000,
    input_cache_write_1h: 8_000,
  };

  test.each([
    ['input if nothing is cached', {}, 4],
    ['a five-minute write if a breakpoint is set', cached, 5],
    ['an hour-long write if a breakpoint asks for it', hour, 8],
  ] as [string, Partial<ChatRequest>, number][])('an input token is priced as %s', (_name, request, nano) => {
    const attempt = prepared(request, { pricing }, 'anthropic-messages');
    expect(worst(attempt, 0)).toBe(promptOf(attempt).text * nano);
  });

  test('an input token is priced as a cache write if only that price is higher than the prompt price', () => {
    const { input_cache_write: fiveMinutes, input_cache_write_1h: anHour, ...plain } = pricing;
    for (const [request, more, nano] of [
      [hour, { input_cache_write_1h: anHour }, 8],
      [cached, { input_cache_write: fiveMinutes, input_cache_write_1h: 0 }, 5],
    ] as const) {
      const attempt = prepared(request, { pricing: { ...plain, ...more } }, 'anthropic-messages');
      expect(worst(attempt, 0)).toBe(promptOf(attempt).text * nano);
    }
  });

  test('on the Converse wire an hour-long cache point and media are priced as on the Messages wire', () => {
    const model = { pricing, upstream_model: 'us.anthropic.claude-sonnet-4-5-20250929-v1:0' };
    for (const [request, nano] of [
      [cached, 5],
      [hour, 8],
    ] as const) {
      const attempt = prepared(request, model, 'bedrock-converse');
      expect(worst(attempt, 0)).toBe(promptOf(attempt).text * nano);
    }
    const image: InnerPart = { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } };
    const file: InnerPart = { type: 'file', file: { file_data: `data:application/pdf;base64,${base64}` } };
    const converse = promptOf(prepared(parts(text, image, file), model, 'bedrock-converse'));
    const messages = promptOf(prepared(parts(text, image, file), model, 'anthropic-messages'));
    expect(converse.image).toBe(messages.image);
    expect(Math.abs(converse.text - messages.text)).toBeLessThan(200);
  });

  test('the output bound of every Bedrock model is sent, and is readable in the body', () => {
    for (const upstreamModel of ['anthropic.claude-sonnet-4-5', 'amazon.nova-2-lite-v1:0', 'qwen.qwen3-32b-v1:0']) {
      const requests: Partial<ChatRequest>[] = [
        {},
        { reasoning: { effort: 'high' } },
        { reasoning: { max_tokens: 2_000 } },
      ];
      for (const request of requests) {
        const attempt = prepared(
          { max_tokens: 3_000, ...request },
          { upstream_model: upstreamModel },
          'bedrock-converse',
        );
        expect(attempt.output_tokens, upstreamModel).toBe(3_000);
      }
    }
  });

  test('if the upstream caches automatically, every token is priced as a cache write', () => {
    const attempt = prepared({}, { pricing });
    expect(worst(attempt, 0)).toBe(promptOf(attempt).text * 5);
  });

  test('the most expensive output class that the model may produce counts', () => {
    const dear = { prompt: 0, completion: 10_000, internal_reasoning: 12_000, audio_output: 80_000 };
    expect(worst(prepared({}, { pricing: dear }), 100)).toBe(1_200);
    expect(worst(prepared({}, { pricing: dear, makes: ['text', 'audio'] }), 100)).toBe(8_000);
    const drawn = { ...dear, image_output: 90_000 };
    expect(worst(prepared({}, { pricing: drawn }), 100)).toBe(1_200);
    expect(worst(prepared({}, { pricing: drawn, makes: ['text', 'image'] }), 100)).toBe(9_000);
  });

  test('request, image and search fees count, the last for the most searches that may run', () => {
    const fees = { prompt: 0, completion: 0, request: 1_000_000, image: 50_000, web_search: 10_000_000 };
    const image: InnerPart = { type: 'image_url', image_url: { url: 'https://a.example/b.png' } };
    expect(worst(prepared({}, { pricing: fees }), 9)).toBe(1_000);
    expect(worst(prepared(parts(image, image), { pricing: fees }), 9)).toBe(1_100);
    expect(worst(prepared({ web_search_options: {} }, { pricing: fees }), 9)).toBe(
      1_000 + 10_000 * limits.web_searches_assumed,
    );
    // On this wire the field becomes a tool; the request itself has none.
    const searching = prepared(
      { web_search_options: {} },
      { pricing: fees, context_length: 99_999 },
      'openai-responses',
    );
    expect(worst(searching, 9)).toBe(1_000 + 10_000 * limits.web_searches_assumed);
    expect(promptOf(searching).text).toBe(99_999);
    const custom = {
      type: 'native' as const,
      wire: 'openai-responses' as const,
      block: { type: 'custom', name: 'run' },
    };
    const own = prepared({ tools: [custom] }, { pricing: fees }, 'openai-responses');
    expect(worst(own, 9)).toBe(1_000 + 10_000 * limits.web_searches_assumed);
    const block = { type: 'web_search_20250305', name: 'web_search', max_uses: 3 };
    const tools = [{ type: 'native' as const, wire: 'anthropic-messages' as const, block }];
    expect(worst(prepared({ tools }, { pricing: fees }, 'anthropic-messages'), 9)).toBe(31_000);
  });

  test('a tool that the provider defines and the client runs counts as a client tool', () => {
    const fees = { prompt: 0, completion: 0, web_search: 10_000_000 };
    const tool = (type: string) => ({
      tools: [{ type: 'native' as const, wire: 'anthropic-messages' as const, block: { type, name: 'x' } }],
    });
    for (const type of ['bash_20250124', 'text_editor_20250728', 'computer_20251124', 'memory_20250818']) {
      const run = prepared(tool(type), { pricing: fees, context_length: 99_999 }, 'anthropic-messages');
      expect([type, worst(run, 9), promptOf(run).text < 99_999]).toEqual([type, 0, true]);
    }
    const search = prepared(
      tool('web_search_20250305'),
      { pricing: fees, context_length: 99_999 },
      'anthropic-messages',
    );
    expect([worst(search, 9), promptOf(search).text]).toEqual([10_000 * limits.web_searches_assumed, 99_999]);
  });

  test("OpenAI's client-side tools, and functions in a namespace, count as client tools", () => {
    const fees = { pricing: { prompt: 0, completion: 0, web_search: 10_000_000 }, context_length: 99_999 };
    const holding = (...blocks: JsonObject[]) => {
      const tools = blocks.map((block) => ({ type: 'native' as const, wire: 'openai-responses' as const, block }));
      return worst(prepared({ tools }, fees, 'openai-responses'), 9);
    };
    const inside = (...tools: JsonObject[]) => ({ type: 'namespace', name: 'n', tools });
    const own = inside({ type: 'function', name: 'f' }, { type: 'custom', name: 'c' });
    expect(holding({ type: 'apply_patch' }, { type: 'local_shell' }, { type: 'computer' }, own)).toBe(0);
    expect(holding(inside({ type: 'web_search' }))).toBe(10_000 * limits.web_searches_assumed);
  });

  describe('fields of a single wire', () => {
    const fees = { pricing: { prompt: 0, completion: 0, web_search: 10_000_000 }, context_length: 99_999 };
    const native = (wire: Wire, block: JsonObject) => ({ type: 'native' as const, wire, block });
    const added = (definition: JsonObject) => ({
      type: 'tool_addition',
      tool: { type: 'tool_definition', definition },
    });
    const own = { wire: 'anthropic-messages' as const, client: messagesClient, rest: {} };

    test.each<[string, number, Partial<ChatRequest>, Wire]>([
      [
        'a block of the conversation adds a search tool',
        3,
        { ...parts(native('anthropic-messages', added({ type: 'web_search_20260209', max_uses: 3 }))), ext: own },
        'anthropic-messages',
      ],
      [
        'a compaction contains an added search tool',
        2,
        {
          messages: [
            {
              role: 'user',
              content: [
                native('anthropic-messages', {
                  type: 'compaction',
                  tool_changes: [added({ type: 'web_search_20260209', max_uses: 2 })],
                }),
              ],
            },
          ],
          ext: own,
        },
        'anthropic-messages',
      ],
      [
        'an item adds a search tool',
        limits.web_searches_assumed,
        parts(native('openai-responses', { type: 'additional_tools', tools: [{ type: 'web_search' }] })),
        'openai-responses',
      ],
      [
        'a tool search returned a search tool',
        limits.web_searches_assumed,
        parts(native('openai-responses', { type: 'tool_search_output', tools: [{ type: 'web_search' }] })),
        'openai-responses',
      ],
    ])('%s: the hold is the same as for a tool of the request', (_, searches, request, wire) => {
      const attempt = prepared(request, fees, wire);
      expect([worst(attempt, 9), promptOf(attempt).text]).toEqual([searches * 10_000, 99_999]);
    });

    test.each<[Wire, JsonObject]>([
      ['anthropic-messages', { type: 'image', source: { type: 'file', file_id: 'file_1' } }],
      ['openai-responses', { type: 'input_image', file_id: 'file-1' }],
      [
        'openai-responses',
        { type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot', file_id: 'file-1' } },
      ],
    ])('an image that %s references by id counts as one image', (wire, block) => {
      const turn: Message = {
        role: 'assistant',
        content: 'Hi',
        ext: { wire, rest: {}, natives: [native(wire, block)] },
      };
      for (const request of [parts(text, native(wire, block)), parts(native(wire, block)), { messages: [turn] }]) {
        expect(promptOf(prepared(request, {}, wire)).image).toBe(16_384);
      }
    });

    test('a conversation that the provider compacts counts its prompt and its output twice', () => {
      const pricing = { prompt: 1000, completion: 5000 };
      const once = prepared({ ext: own }, { pricing }, 'anthropic-messages');
      const rest = { context_management: { edits: [{ type: 'compact_20260112' }] } };
      const twice = prepared({ ext: { ...own, rest } }, { pricing }, 'anthropic-messages');
      expect(worst(twice, 100)).toBe(2 * (promptOf(twice).text + 100 * 5));
      expect(worst(once, 100)).toBe(promptOf(once).text + 100 * 5);
    });
  });

  test('a document in the data of the Responses wire is counted by its pages, not as text', () => {
    const file = { filename: 'a.pdf', file_data: `data:application/pdf;base64,${base64}` };
    const prompt = promptOf(prepared(parts(text, { type: 'file', file }), { tokenizer: 'GPT' }, 'openai-responses'));
    expect(prompt.text).toBeLessThan(1_000);
    expect(prompt.image).toBeGreaterThanOrEqual((base64.length * 3) / 2);
  });

  test('the highest price tier that the prompt may reach counts', () => {
    const priceTiers = [{ prompt_tokens_over: 5_000, price: { prompt: 2_000, completion: 3_000 } }];
    const facts = { pricing: { prompt: 1_000, completion: 1_000 }, price_tiers: priceTiers };
    const short = prepared({}, facts);
    expect(worst(short, 10)).toBe(promptOf(short).text + 10);
    const long = prepared({ messages: [{ role: 'user', content: 'x'.repeat(6_000) }] }, facts);
    expect(worst(long, 10)).toBe(promptOf(long).text * 2 + 30);
  });

  test('the most expensive service tier that may be used counts', () => {
    const dear = { pricing: { prompt: 4_000, completion: 5_000 } };
    const serviceTiers = { priority: dear, flex: { pricing: { prompt: 500, completion: 500 } } };
    const facts = { pricing: { prompt: 1_000, completion: 1_000 }, service_tiers: serviceTiers };
    const inTier = (serviceTier: string) => prepared({ service_tier: serviceTier }, facts);
    for (const tier of ['priority', 'auto']) {
      expect(worst(inTier(tier), 10)).toBe(promptOf(inTier(tier)).text * 4 + 50);
    }
    for (const tier of ['flex', 'default']) expect(worst(inTier(tier), 10)).toBe(promptOf(inTier(tier)).text + 10);
    const options = prepared({ provider: { options: { a: { service_tier: 'priority' } } } }, facts);
    expect(worst(options, 10)).toBe(promptOf(options).text * 4 + 50);
  });

  test('reasoning beyond the output bound is included', () => {
    const facts = {
      pricing: { prompt: 0, completion: 1_000 },
      max_completion_tokens: 8_000,
      quirks: { reasoning_field: 'enable_thinking' as const },
    };
    expect(worst(prepared({}, facts), 100)).toBe(8_100);
    expect(worst(prepared({ reasoning: { max_tokens: 2_000 } }, facts), 100)).toBe(2_100);
    expect(worst(prepared({ reasoning: { enabled: false } }, facts), 100)).toBe(100);
    const research = { pricing: facts.pricing, upstream_model: 'sonar-deep-research' };
    expect(worst(prepared({}, research), 100)).toBe(limits.thinking_budget_tokens_max + 100);
  });

  test('a discount is subtracted, and fractions are rounded up once', () => {
    expect(worst(prepared({}, { pricing: { prompt: 0, completion: 1_500, discount: 0.5 } }), 1)).toBe(1);
    expect(worst(prepared({}, { pricing: { prompt: 0, completion: 1_500 } }), 1)).toBe(2);
  });
});

test('an amount pays for the largest output bound that costs at most that amount', () => {
  const price = fc.integer({ min: 0, max: 10_000_000 });
  fc.assert(
    fc.property(
      price,
      price,
      fc.integer({ min: 1, max: 100_000 }),
      fc.integer({ min: 0, max: 1_000_000_000 }),
      (fixed, output, bound, granted) => {
        const exposure = {
          lines: [{ fixed_pico: fixed, output_pico: output, afterDiscountPpm: 900_000 }],
          output_tokens: bound,
        };
        const paid = outputFor(exposure, granted);
        if (paid > 0) expect(costOf(exposure, paid)).toBeLessThanOrEqual(granted);
        if (paid < bound) expect(costOf(exposure, paid + 1)).toBeGreaterThan(granted);
      },
    ),
  );
});

test('no usage within the bounds is charged more than the worst case', () => {
  const price = fc.integer({ min: 0, max: 100_000_000 });
  const maybe = fc.option(price, { nil: undefined });
  const prices = fc.record({
    prompt: price,
    completion: price,
    internal_reasoning: maybe,
    input_cache_read: maybe,
    input_cache_write: maybe,
    request: maybe,
    image_token: maybe,
    audio: maybe,
    discount: fc.constantFrom(undefined, 0.25, 0.333333),
  });
  const share = fc.double({ min: 0, max: 1, noNaN: true });
  const image: InnerPart = { type: 'image_url', image_url: { url: 'https://a.example/b.png' } };
  const audio: InnerPart = { type: 'input_audio', input_audio: { data: base64, format: 'wav' } };
  fc.assert(
    fc.property(
      prices,
      fc.tuple(share, share, share),
      fc.integer({ min: 0, max: 5_000 }),
      (drawn, [read, write, thought], bound) => {
        const pricing = Object.fromEntries(Object.entries(drawn).filter(([, value]) => value !== undefined)) as Prices;
        const attempt = prepared(parts(text, image, audio), { pricing });
        const prompt = promptOf(attempt);
        const inCacheRead = Math.floor(prompt.text * read);
        const inCacheWrite5m = Math.floor((prompt.text - inCacheRead) * write);
        const outReasoning = Math.floor(bound * thought);
        const usage: TokenClasses = {
          in_uncached: prompt.text - inCacheRead - inCacheWrite5m,
          in_cache_read: inCacheRead,
          in_cache_write_5m: inCacheWrite5m,
          in_image: prompt.image,
          in_audio: prompt.audio,
          out_reasoning: outReasoning,
          out_text: bound - outReasoning,
        };
        const { cost_nano } = priceAttempt(usage, attempt.request, attempt.candidate, undefined);
        expect(cost_nano).toBeLessThanOrEqual(worst(attempt, bound));
      },
    ),
  );
});
