/**
 * Requests of coding agents built on Anthropic's SDK: many tools, cached prompts, betas, reasoning between calls,
 * images in results, aborted turns.
 */
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Wire } from '../../src/schemas/inner.ts';
import { clientWires, modelOf, refuseWarnings, type SdkGateway, startSdkGateway, wireFacts } from './sdk-gateway.ts';

let site: SdkGateway;
let anthropic: Anthropic;

beforeAll(async () => {
  site = await startSdkGateway(['story;tokens=3000', 'tools;chunk_delay_ms=20']);
  anthropic = new Anthropic({ baseURL: site.gateway.url, apiKey: null, authToken: site.gateway.key, maxRetries: 0 });
});
afterAll(() => site.stop());
refuseWarnings();

type Message = Anthropic.Beta.BetaMessageParam;
type Params = Anthropic.Beta.MessageCreateParamsNonStreaming;

const cacheControl = { type: 'ephemeral' as const };
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const tools = Array.from({ length: 30 }, (_, i) => ({
  name: `Tool_${i}`,
  description: `The tool of number ${i}. ${'It reads and writes, and says what it did. '.repeat(20)}`,
  input_schema: {
    type: 'object' as const,
    properties: { file_path: { type: 'string' }, limit: { type: 'number', description: 'How many lines.' } },
    required: ['file_path'],
    additionalProperties: false,
    $schema: 'http://json-schema.org/draft-07/schema#',
  },
  ...(i === 29 ? { cache_control: cacheControl } : {}),
}));

/** The request of a coding agent's turn. */
function turn(wire: Wire, messages: Message[], slug = 'tools'): Params {
  return {
    model: modelOf(wire, slug),
    max_tokens: 16_000,
    system: [
      { type: 'text', text: 'You are a coding agent.', cache_control: cacheControl },
      {
        type: 'text',
        text: `Follow these rules. ${'Be careful with files. '.repeat(300)}`,
        cache_control: cacheControl,
      },
    ],
    tools,
    messages,
    thinking: { type: 'enabled', budget_tokens: 8_000 },
    // The SDK's types no longer contain it, but older agents send it.
    ...{ temperature: 1 },
    metadata: { user_id: 'user_0123_account__session_4567' },
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    betas: [
      'claude-code-20250219',
      'interleaved-thinking-2025-05-14',
      'context-management-2025-06-27',
      'fine-grained-tool-streaming-2025-05-14',
    ],
  };
}

/** The user's text, with the marker that agents move along: only on the newest turn. */
function say(messages: Message[], text: string): void {
  for (const message of messages) {
    if (message.role === 'user' && Array.isArray(message.content)) {
      message.content = message.content.map((block) =>
        block.type === 'text' ? { type: 'text', text: block.text } : block,
      );
    }
  }
  messages.push({ role: 'user', content: [{ type: 'text', text, cache_control: cacheControl }] });
}

function textOf({ content }: Anthropic.Beta.BetaMessage): string {
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

function resultsOf({ content }: Anthropic.Beta.BetaMessage): Anthropic.Beta.BetaToolResultBlockParam[] {
  const calls = content.filter((block) => block.type === 'tool_use');
  return calls.map(({ id, name, input }, i) => {
    expect(input).toMatchObject({ file_path: expect.any(String) });
    if (i === 1) return { type: 'tool_result', tool_use_id: id, content: `${name} found no file`, is_error: true };
    return { type: 'tool_result', tool_use_id: id, content: [{ type: 'text', text: `${name} is done` }] };
  });
}

describe.each(clientWires('anthropic'))('over %s', (wire) => {
  test('a session of many turns streams to its end', async () => {
    const messages: Message[] = [];
    for (let nth = 0; nth < 3; nth += 1) {
      say(messages, `Turn ${nth}: do all of it. ☕`);
      const first = await anthropic.beta.messages.stream(turn(wire, messages)).finalMessage();
      expect(first.stop_reason).toBe('tool_use');
      expect(first.content.filter(({ type }) => type === 'tool_use')).toHaveLength(30);
      messages.push({ role: 'assistant', content: first.content }, { role: 'user', content: resultsOf(first) });
      const second = await anthropic.beta.messages.stream(turn(wire, messages)).finalMessage();
      expect(second.stop_reason).toBe('end_turn');
      const toolResults = tools.map(({ name }, i) => (i === 1 ? `${name} found no file` : `${name} is done`));
      expect(textOf(second)).toBe(`The tools answered: ${toolResults.join('; ')}`);
      expect(second.usage.input_tokens).toBeGreaterThanOrEqual(0);
      messages.push({ role: 'assistant', content: second.content });
    }
    if (wire !== 'anthropic-messages') return;
    say(messages, 'Once more.');
    const last = await anthropic.beta.messages.stream(turn(wire, messages)).finalMessage();
    expect(last.usage.cache_read_input_tokens).toBeGreaterThan(1_000);
  });

  test('an aborted turn continues with its received text', async () => {
    const messages: Message[] = [{ role: 'user', content: 'Tell me a story.' }];
    const before = site.sandbox.requests().aborted;
    const stream = anthropic.beta.messages.stream({ ...turn(wire, messages, 'slow'), tools: [] });
    let receivedText = '';
    stream.on('text', (delta) => {
      receivedText += delta;
      if (receivedText.length > 20) stream.abort();
    });
    await expect(stream.finalMessage()).rejects.toBeInstanceOf(Anthropic.APIUserAbortError);
    await expect.poll(() => site.sandbox.requests().aborted).toBe(before + 1);
    messages.push({ role: 'assistant', content: receivedText.trimEnd() }, { role: 'user', content: 'Go on.' });
    const next = await anthropic.beta.messages.stream({ ...turn(wire, messages, 'echo'), tools: [] }).finalMessage();
    expect(textOf(next)).toBe('Go on.');
  });

  test('a call that is aborted leaves a turn that can be answered without it', async () => {
    const messages: Message[] = [{ role: 'user', content: 'Call them.' }];
    const first = await anthropic.beta.messages.stream(turn(wire, messages)).finalMessage();
    const calls = first.content.filter((block) => block.type === 'tool_use');
    messages.push({ role: 'assistant', content: first.content });
    messages.push({
      role: 'user',
      content: [
        ...calls.map(({ id }) => ({
          type: 'tool_result' as const,
          tool_use_id: id,
          content: '[interrupted]',
          is_error: true,
        })),
        { type: 'text', text: 'Stop, and do something else.' },
      ],
    });
    const next = await anthropic.beta.messages.stream(turn(wire, messages, 'echo')).finalMessage();
    expect(textOf(next)).toMatch(/Stop, and do something else\.|The tools answered: \[interrupted\]/);
  });

  test('a screenshot in a result, and an empty result, are accepted', async () => {
    const messages: Message[] = [{ role: 'user', content: 'Look.' }];
    const params = { ...turn(wire, messages), tools: tools.slice(0, 2) };
    const first = await anthropic.beta.messages.create(params);
    const [one, two] = first.content.filter((block) => block.type === 'tool_use');
    messages.push({ role: 'assistant', content: first.content });
    messages.push({
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: one!.id,
          content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel } }],
        },
        { type: 'tool_result', tool_use_id: two!.id },
      ],
    });
    const second = await anthropic.beta.messages.create({ ...params, messages });
    expect(second.stop_reason).toMatch(/end_turn|tool_use/);
  });

  test('a probe for one token is answered', async () => {
    const probe = {
      model: modelOf(wire, 'story'),
      max_tokens: 1,
      messages: [{ role: 'user' as const, content: 'quota' }],
    };
    const answer = await anthropic.messages.create(probe);
    expect(['max_tokens', 'end_turn']).toContain(answer.stop_reason);
  });

  test('a prefilled answer is continued, or the wire refuses it', async () => {
    const messages: Message[] = [
      { role: 'user', content: 'echo this' },
      { role: 'assistant', content: 'echo' },
    ];
    const { thinking: _, ...params } = turn(wire, messages, 'echo');
    const answer = await anthropic.beta.messages.create({ ...params, tools: [] }).catch((error: unknown) => error);
    if (answer instanceof Error) expect(answer).toBeInstanceOf(Anthropic.BadRequestError);
    else expect(textOf(answer as Anthropic.Beta.BetaMessage).length).toBeGreaterThan(0);
  });

  test('a turn is counted before it is sent', async () => {
    const { max_tokens: _, metadata: __, ...params } = turn(wire, [{ role: 'user', content: 'Go.' }]);
    const { input_tokens } = await anthropic.beta.messages.countTokens(params);
    expect(input_tokens).toBeGreaterThan(3_000);
  });

  test('concurrent long answers are complete', async () => {
    const params = (i: number) => ({
      model: modelOf(wire, 'story;tokens=3000'),
      max_tokens: 8_000,
      messages: [{ role: 'user' as const, content: `Story ${i}` }],
    });
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, i) => anthropic.messages.stream(params(i)).finalMessage()),
    );
    const texts = answers.map((message) =>
      message.content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    );
    expect(new Set(texts).size).toBe(6);
    for (const { usage } of answers) {
      expect(usage.output_tokens).toBeGreaterThanOrEqual(3_000);
      if (!wireFacts.thinks_unasked.has(wire)) expect(usage.output_tokens).toBe(3_000);
    }
    expect(texts.every((text) => text.isWellFormed())).toBe(true);
  });
});

test("Anthropic's own tools at a model of another maker are served, or refused with a message", async () => {
  const search = { type: 'web_search_20250305' as const, name: 'web_search' as const, max_uses: 2 };
  const params = { max_tokens: 1_000, tools: [search], messages: [{ role: 'user' as const, content: 'Search.' }] };
  for (const wire of clientWires('anthropic')) {
    const answer = await anthropic.messages.create({ ...params, model: modelOf(wire, 'echo') }).catch((error) => error);
    if (!(answer instanceof Error)) continue;
    expect(answer).toBeInstanceOf(Anthropic.APIError);
    expect((answer as InstanceType<typeof Anthropic.APIError>).status).toBeLessThan(500);
  }
});
