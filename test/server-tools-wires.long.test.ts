/** The gateway's own tools over six wires and through three client APIs, whole and streamed, with the official SDKs as clients. */
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { JsonObject } from '../src/schemas/json.ts';
import { checkedFetch, modelOf, refuseWarnings, type SdkGateway, startSdkGateway, wires } from './sdks/sdk-gateway.ts';
import { type SearchStandIn, startSearchEngine } from './search-engine.ts';

const PAGES = [
  { url: 'https://a.example/one', title: 'One', text: 'The first page.' },
  { url: 'https://b.example/two?x=1', title: 'Two', text: 'The second page.' },
];
const ANSWER =
  '🌍 a.example knows it: [a.example](https://a.example/one).\n🌍 b.example knows it: [b.example](https://b.example/two?x=1).';
const LINKS = ['[a.example](https://a.example/one)', '[b.example](https://b.example/two?x=1)'];
const SEARCH = { type: 'gateway:web_search' };

let engine: SearchStandIn;
let made: SdkGateway;
let openai: OpenAI;
let anthropic: Anthropic;

refuseWarnings();
beforeAll(async () => {
  engine = await startSearchEngine(PAGES);
  made = await startSdkGateway([], {
    plugins: { web: { engines: { exa: { api_key: 'k', base_url: engine.url, price_per_search_usd: 0.01 } } } },
  });
  const { base_url, key } = made.gateway;
  openai = new OpenAI({ baseURL: base_url, apiKey: key, fetch: checkedFetch, maxRetries: 0 });
  anthropic = new Anthropic({
    baseURL: base_url.replace(/\/v1$/, ''),
    apiKey: key,
    fetch: checkedFetch,
    maxRetries: 0,
  });
});
beforeEach(() => {
  engine.searches.length = 0;
});
afterAll(async () => {
  await made.stop();
  await engine.stop();
});

/** The content of an answer in one form for every client API. */
interface Answer {
  text: string;
  links: string[];
  cost: number | undefined;
  searches: number | undefined;
  calls: string[];
  /** The turn to send back. */
  turn: JsonObject[];
}

interface Request {
  model: string;
  history?: JsonObject[];
  tools?: 'search' | 'both';
  reasons?: boolean;
}

const slice = (text: string, start: number, end: number) => [...text].slice(start, end).join('');
const FUNCTION = { name: 'weather', description: 'Tells it.' };
const SCHEMA: JsonObject = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };

interface ChatUsage {
  cost: number;
  server_tool_use?: { web_search_requests: number };
}

interface ChatDelta {
  content?: string;
  annotations?: { url_citation: { start_index: number; end_index: number } }[];
  tool_calls?: { index: number; id: string; function: { name: string; arguments: string } }[];
  reasoning_details?: (Record<string, string | number> & { index: number })[];
}
interface ReceivedChunk {
  usage?: ChatUsage;
  choices: { delta: ChatDelta }[];
}

async function chat({ model, history = [], tools, reasons }: Request, stream: boolean): Promise<Answer> {
  const own = { type: 'function', function: { ...FUNCTION, parameters: SCHEMA } };
  const body = {
    model,
    messages: [{ role: 'user', content: 'Hi' }, ...history],
    tools: tools === 'both' ? [SEARCH, own] : [SEARCH],
    ...(reasons ? { reasoning: { max_tokens: 1024 } } : {}),
    max_tokens: 4_000,
    stream,
  };
  const message: Record<string, unknown> & { content: string } = { role: 'assistant', content: '' };
  const annotations: NonNullable<ChatDelta['annotations']> = [];
  const calls: NonNullable<ChatDelta['tool_calls']> = [];
  const details: Record<string, unknown>[] = [];
  let usage: ChatUsage | undefined;
  if (stream) {
    const chunks = await openai.chat.completions.create(body as never);
    for await (const chunk of chunks as unknown as AsyncIterable<ReceivedChunk>) {
      usage = chunk.usage ?? usage;
      const delta = chunk.choices[0]?.delta;
      if (delta === undefined) continue;
      message.content += delta.content ?? '';
      annotations.push(...(delta.annotations ?? []));
      for (const call of delta.tool_calls ?? []) {
        calls[call.index] ??= { ...call, function: { name: call.function.name, arguments: '' } };
        calls[call.index]!.function.arguments += call.function.arguments ?? '';
      }
      for (const detail of delta.reasoning_details ?? []) {
        const known = details[detail.index];
        if (known === undefined) details[detail.index] = { ...detail };
        else Object.assign(known, detail, { text: `${known['text'] ?? ''}${detail['text'] ?? ''}` });
      }
    }
  } else {
    const answer = (await openai.chat.completions.create(body as never)) as unknown as {
      usage: ChatUsage;
      choices: [{ message: ChatDelta }];
    };
    usage = answer.usage;
    const received = answer.choices[0].message;
    message.content = received.content ?? '';
    annotations.push(...(received.annotations ?? []));
    calls.push(...(received.tool_calls ?? []));
    details.push(...(received.reasoning_details ?? []));
  }
  if (calls.length > 0) message['tool_calls'] = calls;
  if (details.length > 0) message['reasoning_details'] = details;
  const results = calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'Sunny' }));
  return {
    text: message.content,
    links: annotations.map(({ url_citation: one }) => slice(message.content, one.start_index, one.end_index)),
    cost: usage!.cost,
    searches: usage!.server_tool_use?.web_search_requests,
    calls: calls.map((call) => call.function.name),
    turn: [message as unknown as JsonObject, ...results],
  };
}

async function responses({ model, history = [], tools, reasons }: Request, stream: boolean): Promise<Answer> {
  const own = { type: 'function', ...FUNCTION, parameters: SCHEMA, strict: false };
  const body = {
    model,
    input: [{ role: 'user', content: 'Hi' }, ...history],
    tools: tools === 'both' ? [SEARCH, own] : [SEARCH],
    ...(reasons ? { reasoning: { effort: 'low', summary: 'auto' }, include: ['reasoning.encrypted_content'] } : {}),
    max_output_tokens: 4_000,
    store: false,
    stream,
  };
  let answer: OpenAI.Responses.Response | undefined;
  if (stream) {
    const events = await openai.responses.create(body as never);
    for await (const event of events as unknown as AsyncIterable<OpenAI.Responses.ResponseStreamEvent>) {
      if (event.type === 'response.completed') answer = event.response;
    }
  } else answer = (await openai.responses.create(body as never)) as OpenAI.Responses.Response;
  const { output } = answer!;
  const usage = answer!.usage as unknown as ChatUsage;
  const links: string[] = [];
  const texts: string[] = [];
  for (const item of output) {
    if (item.type !== 'message') continue;
    for (const part of item.content) {
      if (part.type !== 'output_text') continue;
      texts.push(part.text);
      for (const one of part.annotations) {
        if (one.type === 'url_citation') links.push(slice(part.text, one.start_index, one.end_index));
      }
    }
  }
  const kinds = output.map(({ type }) => type);
  if (!kinds.includes('function_call') && !kinds.every((type) => type === 'message' || type === 'reasoning')) {
    expect(kinds.filter((type) => type !== 'reasoning')).toEqual(['message', 'web_search_call', 'message']);
  }
  const calls = output.flatMap((item) => (item.type === 'function_call' ? [item] : []));
  const results = calls.map(({ call_id }) => ({ type: 'function_call_output', call_id, output: 'Sunny' }));
  return {
    text: texts.join(''),
    links,
    cost: usage.cost,
    searches: usage.server_tool_use?.web_search_requests,
    calls: calls.map(({ name }) => name),
    turn: [...(output as unknown as JsonObject[]), ...results],
  };
}

async function messages({ model, history = [], tools, reasons }: Request, stream: boolean): Promise<Answer> {
  const own = { ...FUNCTION, input_schema: SCHEMA };
  const body = {
    model,
    messages: [{ role: 'user', content: 'Hi' }, ...history],
    tools: tools === 'both' ? [SEARCH, own] : [SEARCH],
    ...(reasons ? { thinking: { type: 'enabled', budget_tokens: 1024 } } : {}),
    max_tokens: 4_000,
  };
  const answer = stream
    ? await anthropic.messages.stream(body as never).finalMessage()
    : await anthropic.messages.create(body as never);
  const { content } = answer as Anthropic.Message;
  const usage = (answer as Anthropic.Message).usage as unknown as ChatUsage;
  const text = content.map((block) => (block.type === 'text' ? block.text : '')).join('');
  const cited = content.flatMap((block) => (block.type === 'text' ? (block.citations ?? []) : []));
  const urls = new Set(cited.map((one) => (one.type === 'web_search_result_location' ? one.url : '')));
  const kinds = content.map(({ type }) => type).filter((type) => type !== 'thinking');
  if (kinds.includes('server_tool_use')) {
    expect(kinds.slice(0, 4)).toEqual(['text', 'server_tool_use', 'web_search_tool_result', 'text']);
  }
  const calls = content.flatMap((block) => (block.type === 'tool_use' ? [block] : []));
  const results = calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'Sunny' }));
  return {
    text,
    links: LINKS.filter((link) => [...urls].some((url) => link.includes(`(${url})`))),
    cost: usage.cost,
    searches: usage.server_tool_use?.web_search_requests,
    calls: calls.map(({ name }) => name),
    turn: [
      { role: 'assistant', content: content as unknown as JsonObject[] },
      ...(results.length === 0 ? [] : [{ role: 'user', content: results }]),
    ],
  };
}

const APIS = { chat, responses, messages };
const NEXT: Record<keyof typeof APIS, JsonObject> = {
  chat: { role: 'user', content: 'Go on' },
  responses: { role: 'user', content: 'Go on' },
  messages: { role: 'user', content: 'Go on' },
};

describe.each(wires)('%s', (wire) => {
  describe.each(Object.keys(APIS) as (keyof typeof APIS)[])('%s', (api) => {
    const ask = APIS[api];

    test.each([false, true])('searches, answers and cites in place; reasoning: %s', async (reasons) => {
      const request = { model: modelOf(wire, 'research'), reasons };
      const [whole, streamed] = [await ask(request, false), await ask(request, true)];
      expect(whole.text).toBe(`Let me look.\n\n${ANSWER}`);
      expect(whole.links).toEqual(LINKS);
      expect(whole.searches).toBe(1);
      expect(whole.cost).toBeGreaterThan(0.01);
      // The SDK of Messages keeps only the members of a stream's usage that it knows.
      const { turn: _, cost = whole.cost, ...expected } = streamed;
      expect(cost).toBe(whole.cost);
      expect(whole).toMatchObject(expected);
      expect(engine.searches).toHaveLength(2);
    });

    test.each([false, true])('accepts the turn back, and continues; streamed: %s', async (stream) => {
      const request = { model: modelOf(wire, 'research'), reasons: true };
      const first = await ask(request, stream);
      const second = await ask({ ...request, history: [...first.turn, NEXT[api]] }, stream);
      expect(second.text).toBe(`Let me look.\n\n${ANSWER}`);
    });

    test.each([false, true])(
      'returns the client’s calls beside its own, and continues; streamed: %s',
      async (stream) => {
        const request: Request = { model: modelOf(wire, 'research'), tools: 'both', reasons: true };
        const first = await ask(request, stream);
        expect(first.calls).toEqual(['weather']);
        expect(engine.searches).toHaveLength(0);
        const second = await ask({ ...request, history: first.turn }, stream);
        expect(second.text).toBe('The tools answered: Sunny');
      },
    );
  });
});
