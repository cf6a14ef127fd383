import {
  BedrockRuntimeClient,
  ConverseCommand,
  type ConverseCommandInput,
  ConverseStreamCommand,
  type ConverseStreamOutput,
} from '@aws-sdk/client-bedrock-runtime';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bedrockModelPrefix } from './bedrock-converse.ts';
import { type Sandbox, startSandbox } from './server.ts';
import { countTokens } from './tokens.ts';

let sandbox: Sandbox;
let client: BedrockRuntimeClient;

beforeAll(async () => {
  sandbox = await startSandbox();
  client = new BedrockRuntimeClient({
    endpoint: sandbox.url,
    region: 'eu-west-1',
    credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
    maxAttempts: 1,
    // The sandbox speaks HTTP/1.1.
    requestHandler: new NodeHttpHandler(),
  });
});
afterAll(async () => {
  client.destroy();
  await sandbox.stop();
});

const ask = (model: string, change: Partial<ConverseCommandInput> = {}): ConverseCommandInput => ({
  modelId: bedrockModelPrefix + model,
  messages: [{ role: 'user', content: [{ text: 'Good morning.' }] }],
  ...change,
});

async function stream(input: ConverseCommandInput): Promise<ConverseStreamOutput[]> {
  const events: ConverseStreamOutput[] = [];
  for await (const event of (await client.send(new ConverseStreamCommand(input))).stream ?? []) events.push(event);
  return events;
}

const weather = {
  toolSpec: {
    name: 'get_weather',
    inputSchema: { json: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } },
  },
};

describe("bedrock-converse, through AWS's own client", () => {
  test('an answer has content, a stop reason and a usage that adds up', async () => {
    const { output, stopReason, usage } = await client.send(new ConverseCommand(ask('echo')));
    expect(output?.message?.content).toEqual([{ text: 'Good morning.' }]);
    expect(stopReason).toBe('end_turn');
    expect(usage).toMatchObject({ inputTokens: 4 + countTokens('Good morning.'), outputTokens: 3, totalTokens: 10 });
  });

  test.each(['echo', 'story', 'think', 'json', 'refuse'])(
    'a stream has the same content as the whole answer: %s',
    async (model) => {
      const whole = await client.send(new ConverseCommand(ask(model)));
      const events = await stream(ask(model));
      const text = events.map(({ contentBlockDelta }) => contentBlockDelta?.delta?.text ?? '').join('');
      expect(text).toBe(whole.output?.message?.content?.map(({ text }) => text ?? '').join(''));
      expect(events.find(({ messageStop }) => messageStop)?.messageStop?.stopReason).toBe(whole.stopReason);
      expect(events.at(-1)?.metadata?.usage?.totalTokens).toBe(whole.usage?.totalTokens);
    },
  );

  test('a tool is called, its result is answered, and reasoning is signed', async () => {
    const thinking = { thinking: { type: 'enabled', budget_tokens: 1024 } };
    const input = ask('tools', { toolConfig: { tools: [weather] }, additionalModelRequestFields: thinking });
    const { output, stopReason } = await client.send(new ConverseCommand(input));
    const content = output!.message!.content!;
    expect(stopReason).toBe('tool_use');
    expect(content.map((block) => Object.keys(block).find((key) => key !== '$unknown'))).toEqual([
      'reasoningContent',
      'toolUse',
    ]);
    const toolUseId = content[1]!.toolUse!.toolUseId;
    const next = (first: object) => [
      ...input.messages!,
      { role: 'assistant' as const, content: [first, content[1]!] as typeof content },
      { role: 'user' as const, content: [{ toolResult: { toolUseId, content: [{ text: 'warm' }] } }] },
    ];
    const answered = await client.send(new ConverseCommand({ ...input, messages: next(content[0]!) }));
    expect(answered.output?.message?.content?.at(-1)).toEqual({ text: 'The tools answered: warm' });
    const changed = { reasoningContent: { reasoningText: { text: 'another', signature: 'x' } } };
    await expect(client.send(new ConverseCommand({ ...input, messages: next(changed) }))).rejects.toThrow('signature');
  });

  test('a marked prefix is written to the cache once and read from then on', async () => {
    const system = [
      { text: 'A long beginning, of Bedrock.' },
      { cachePoint: { type: 'default' as const, ttl: '1h' as const } },
    ];
    const first = await client.send(new ConverseCommand(ask('echo', { system })));
    const second = await client.send(new ConverseCommand(ask('echo', { system })));
    const tokens = countTokens('A long beginning, of Bedrock.');
    expect(first.usage).toMatchObject({
      cacheWriteInputTokens: tokens,
      cacheDetails: [{ ttl: '1h', inputTokens: tokens }],
    });
    expect(second.usage).toMatchObject({ cacheWriteInputTokens: 0, cacheReadInputTokens: tokens });
  });

  test('faults are exceptions, before the answer and within its stream', async () => {
    await expect(client.send(new ConverseCommand(ask('fail-429')))).rejects.toMatchObject({
      name: 'ThrottlingException',
    });
    await expect(client.send(new ConverseCommand(ask('nothing')))).rejects.toMatchObject({
      name: 'ValidationException',
    });
    await expect(stream(ask('fail-late'))).rejects.toMatchObject({ name: 'ServiceUnavailableException' });
  });

  const user = (...content: object[]) => ({ messages: [{ role: 'user', content }] });
  test.each<[string, object]>([
    ['is blank', user({ text: ' ' })],
    ['must start with a user message', { messages: [] }],
    ['must alternate', { messages: [...user({ text: 'a' }).messages, ...user({ text: 'b' }).messages] }],
    ['toolConfig field must be defined', user({ toolResult: { toolUseId: 'a', content: [{ text: 'b' }] } })],
    ['needs a text beside it', user({ document: { format: 'txt', name: 'a', source: { bytes: Buffer.from('b') } } })],
    [
      'document file name',
      user({ text: 'a' }, { document: { format: 'txt', name: 'a.b', source: { bytes: Buffer.from('b') } } }),
    ],
    ['between 0 and 1', { inferenceConfig: { temperature: 1.5 } }],
    [
      'greater than `thinking.budget_tokens`',
      {
        inferenceConfig: { maxTokens: 1024 },
        additionalModelRequestFields: { thinking: { type: 'enabled', budget_tokens: 1024 } },
      },
    ],
    ['length greater than or equal to 1', { toolConfig: { tools: [] } }],
    [
      'the text of a JSON schema',
      { outputConfig: { textFormat: { type: 'json_schema', structure: { jsonSchema: { schema: '{' } } } } },
    ],
    [
      'A maximum of 4',
      { system: Array.from({ length: 5 }, () => [{ text: 'a' }, { cachePoint: { type: 'default' } }]).flat() },
    ],
  ])('refuses what the service refuses: %s', async (message, change) => {
    await expect(client.send(new ConverseCommand(ask('echo', change)))).rejects.toThrow(message);
  });
});
