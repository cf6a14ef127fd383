/**
 * Answers for which the gateway searched, as the usual frameworks request and read them: with their sources, and
 * without warnings.
 */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { ChatOpenAI } from '@langchain/openai';
import { createOpenRouter } from '@openrouter/ai-sdk-provider';
import { generateText, streamText, type ToolSet } from 'ai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';
import { type SearchStandIn, startSearchEngine } from '../search-engine.ts';
import { type ScriptedModel, startScriptedModel } from '../wires/scripted-model.ts';
import { checkedFetch, refuseWarnings } from './sdk-gateway.ts';

const PAGES = [
  { url: 'https://a.example/one', title: 'One', text: 'The first page.' },
  { url: 'https://b.example/two', title: 'Two', text: 'The second page.' },
];
const ANSWER = '🌍 See [a.example](https://a.example/one).';

let model: ScriptedModel;
let engine: SearchStandIn;
let gateway: TestGateway;
const warned: unknown[] = [];

refuseWarnings();
beforeAll(async () => {
  globalThis.AI_SDK_LOG_WARNINGS = (event) => void warned.push(...event.warnings);
  [model, engine] = await Promise.all([startScriptedModel(), startSearchEngine(PAGES)]);
  gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      plugins: { web: { engines: { exa: { api_key: 'k', base_url: engine.url } } } },
      providers: { one: { name: 'One', dialect: 'openai-chat', base_url: model.url } },
      models: {
        'test/tools': {
          context_length: 100_000,
          endpoints: [{ provider: 'one', upstream_model: 'scripted', pricing: { prompt: 1, completion: 1 } }],
        },
      },
    }),
  });
});
beforeEach(() => {
  warned.length = 0;
  engine.searches.length = 0;
  // Twice: whole, then streamed.
  const turns = [{ text: 'I look.', calls: [{ name: 'web_search', args: { query: 'x' } }] }, { text: ANSWER }];
  model.follow(...turns, ...turns);
});
afterAll(async () => {
  await gateway.stop();
  await Promise.all([model.stop(), engine.stop()]);
});

const settings = () => ({ baseURL: gateway.base_url, apiKey: gateway.key, fetch: checkedFetch });

describe('the Vercel AI SDK', () => {
  const asks = {
    'openai(), with its own search': () => {
      const openai = createOpenAI(settings());
      const tools = { web_search: openai.tools.webSearch({ searchContextSize: 'low' }) } as unknown as ToolSet;
      return { model: openai('test/tools'), tools, providerOptions: { openai: { store: false } } };
    },
    'anthropic(), with its own search': () => {
      const anthropic = createAnthropic(settings());
      const tools = { web_search: anthropic.tools.webSearch_20250305({ maxUses: 3 }) } as unknown as ToolSet;
      return { model: anthropic('test/tools'), tools, maxOutputTokens: 500 };
    },
    "openrouter(), with the public service's tool": () => {
      const openrouter = createOpenRouter({ ...settings(), compatibility: 'strict' });
      const extraBody = { tools: [{ type: 'openrouter:web_search' }] };
      return { model: openrouter('test/tools', { extraBody }) };
    },
  };

  test.each(Object.entries(asks))('%s', async (_name, ask) => {
    const whole = await generateText({ ...ask(), prompt: 'What news?', maxRetries: 0 });
    const streamed = streamText({ ...ask(), prompt: 'What news?', maxRetries: 0 });
    const parts = [];
    for await (const part of streamed.fullStream) parts.push(part.type);
    expect(parts).not.toContain('error');
    expect(engine.searches).toHaveLength(2);
    for (const [text, sources] of [
      [whole.text, whole.sources],
      [await streamed.text, await streamed.sources],
    ] as const) {
      expect(text).toContain(ANSWER);
      const urls = new Set(sources.map((one) => (one.sourceType === 'url' ? one.url : '')));
      expect(urls).toContain('https://a.example/one');
    }
    expect(warned).toEqual([]);
  });
});

describe.each([true, false])('LangChain, over Responses: %s', (useResponsesApi) => {
  test('reads the text of both turns, and its sources', async () => {
    const { baseURL, apiKey, fetch } = settings();
    const chat = new ChatOpenAI({
      model: 'test/tools',
      apiKey,
      configuration: { baseURL, fetch },
      maxRetries: 0,
      useResponsesApi,
    }).bindTools([{ type: 'web_search_preview' }] as never);
    const whole = await chat.invoke('What news?');
    expect(whole.text).toContain(ANSWER);
    let text = '';
    for await (const chunk of await chat.stream('What news?')) text += chunk.text;
    expect(text).toContain(ANSWER);
    expect(engine.searches).toHaveLength(2);
    if (useResponsesApi) expect(JSON.stringify(whole.content)).toContain('"url":"https://a.example/one"');
  });
});
