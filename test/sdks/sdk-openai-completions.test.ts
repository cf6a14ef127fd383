/** Older clients: OpenAI's SDK at `/completions`, and LangChain's client of it, over every wire. */
import { OpenAI as LangChainCompletions } from '@langchain/openai';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  checkedFetch,
  clientWires,
  modelOf,
  openaiOf,
  refuseWarnings,
  type SdkGateway,
  startSdkGateway,
  wireFacts,
} from './sdk-gateway.ts';

let served: SdkGateway;
let openai: OpenAI;
beforeAll(async () => {
  served = await startSdkGateway(['echo;split_bytes=1']);
  openai = openaiOf(served.gateway);
});
afterAll(() => served.stop());
refuseWarnings();

type Ask = Omit<OpenAI.CompletionCreateParamsNonStreaming, 'stream'>;

/** The text of each choice, and the usage, of a stream. */
async function read(stream: AsyncIterable<OpenAI.Completion>) {
  const texts: string[] = [];
  const finishes: string[] = [];
  const usages: OpenAI.CompletionUsage[] = [];
  for await (const { choices, usage, object } of stream) {
    expect(object).toBe('text_completion');
    for (const { index, text, finish_reason } of choices) {
      texts[index] = (texts[index] ?? '') + text;
      if (finish_reason) finishes[index] = finish_reason;
    }
    if (usage) usages.push(usage);
  }
  return { texts, finishes, usages };
}

describe.each(clientWires('openai'))('over %s', (wire) => {
  const ask = (slug: string, prompt: Ask['prompt'] = 'Good morning, world.'): Ask => ({
    model: modelOf(wire, slug),
    prompt,
  });
  const completionTokens = wireFacts.thinks_unasked.has(wire) ? 12 : 4;
  const counted = { prompt_tokens: 8, completion_tokens: completionTokens, total_tokens: 8 + completionTokens };

  test('a whole answer has text, a finish reason and a usage that adds up', async () => {
    const answer = await openai.completions.create(ask('echo'));
    expect(answer).toMatchObject({
      object: 'text_completion',
      model: modelOf(wire, 'echo'),
      choices: [{ index: 0, text: 'Good morning, world.', finish_reason: 'stop', logprobs: null }],
      usage: counted,
    });
    expect(answer.id).toMatch(/^gen-/);
  });

  test('a stream has the same content, and its usage once', async () => {
    const { texts, finishes, usages } = await read(await openai.completions.create({ ...ask('echo'), stream: true }));
    expect([texts, finishes]).toEqual([['Good morning, world.'], ['stop']]);
    expect(usages).toMatchObject([counted]);
  });

  test('several prompts are answered in their order, whole and streamed', async () => {
    const request = ask('echo', ['One', 'Two', 'Three']);
    const whole = await openai.completions.create(request);
    expect(whole.choices.map(({ text, index }) => [index, text])).toEqual([
      [0, 'One'],
      [1, 'Two'],
      [2, 'Three'],
    ]);
    const { texts, usages } = await read(await openai.completions.create({ ...request, stream: true }));
    expect(texts).toEqual(['One', 'Two', 'Three']);
    expect(usages).toHaveLength(1);
    expect(usages[0]?.total_tokens).toBe(whole.usage?.total_tokens);
  });

  test('an answer that is cut reports it', async () => {
    const answer = await openai.completions.create({ ...ask('story'), max_tokens: 17 });
    expect(answer.choices[0]?.finish_reason).toBe('length');
    expect(answer.usage?.completion_tokens).toBe(17);
  });

  test('the prompt is echoed if that is requested', async () => {
    const answer = await openai.completions.create({ ...ask('echo', 'Hello'), echo: true });
    expect(answer.choices[0]?.text).toBe('HelloHello');
    const { texts } = await read(
      await openai.completions.create({ ...ask('echo', 'Hello'), echo: true, stream: true }),
    );
    expect(texts).toEqual(['HelloHello']);
  });

  test('characters of several bytes stay whole, however the upstream splits them', async () => {
    const spoken = 'Grüße 👩‍👩‍👧‍👦 — 日本語 \u2028 العربية "quoted" \\ end';
    const { texts } = await read(
      await openai.completions.create({ ...ask('echo;split_bytes=1', spoken), stream: true }),
    );
    expect(texts).toEqual([spoken]);
  });

  test('fields that are null count as absent', async () => {
    const names = [
      ...['best_of', 'echo', 'frequency_penalty', 'logit_bias', 'logprobs', 'max_tokens', 'n', 'presence_penalty'],
      ...['seed', 'stop', 'stream_options', 'suffix', 'temperature', 'top_p'],
    ];
    const nothing = Object.fromEntries(names.map((name) => [name, null]));
    expect((await openai.completions.create({ ...ask('echo'), ...nothing })).choices[0]?.text).toContain('morning');
  });

  test.each(['fail-mid-stream', 'fail-late', 'truncate'])('an answer that breaks off is an error: %s', async (slug) => {
    await expect(openai.completions.create(ask(slug))).rejects.toBeInstanceOf(OpenAI.InternalServerError);
    const stream = openai.completions.create({ ...ask(slug), stream: true }).then(read);
    await expect(stream).rejects.toBeInstanceOf(OpenAI.APIError);
  });

  test('a rate limit is an error of its class', async () => {
    await expect(openai.completions.create(ask('fail-429'))).rejects.toBeInstanceOf(OpenAI.RateLimitError);
    const stream = openai.completions.create({ ...ask('fail-429'), stream: true });
    await expect(stream).rejects.toBeInstanceOf(OpenAI.RateLimitError);
  });

  test("LangChain's completions client reads the answer, whole and streamed", async () => {
    const client = new LangChainCompletions({
      model: modelOf(wire, 'echo'),
      apiKey: served.gateway.key,
      configuration: { baseURL: served.gateway.base_url, fetch: checkedFetch },
      maxRetries: 0,
    });
    expect(await client.invoke('Good morning, world.')).toBe('Good morning, world.');
    let text = '';
    for await (const piece of await client.stream('Good morning, world.')) text += piece;
    expect(text).toBe('Good morning, world.');
    expect(await client.batch(['One', 'Two'])).toEqual(['One', 'Two']);
  });
});

test.each<[string, Partial<Ask>]>([
  ['prompt', { prompt: [1, 2, 3] }],
  ['suffix', { suffix: 'end' }],
  ['temperature', { temperature: 3 }],
])('unsupported fields are refused with their names: %s', async (field, more) => {
  const request = { model: 'openai-chat/echo', prompt: 'Hello', ...more };
  const error = await openai.completions.create(request).then(undefined, (thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OpenAI.BadRequestError);
  expect((error as Error).message).toContain(field);
});
