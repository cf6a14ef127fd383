import { describe, expect, test } from 'vitest';
import { messagesClient } from '../../api/messages/client.ts';
import { GatewayError } from '../../errors.ts';
import type { ChatRequest, Message } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { asObject } from '../shared/json-shape.ts';
import { bedrockConverse } from './index.ts';

const CLAUDE = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0';

function encode(request: Partial<ChatRequest>, upstreamModel = CLAUDE, stripState = false, model = 'a/b') {
  const whole = { messages: [{ role: 'user', content: 'Hello' }], ...request } as ChatRequest;
  const endpoint = {
    model,
    provider: 'amazon-bedrock',
    upstream_model: upstreamModel,
    max_completion_tokens: 64_000,
    context_length: 200_000,
    input_modalities: ['text', 'image'],
    quirks: {},
  };
  return bedrockConverse.encodeRequest(whole, endpoint, { media: new Map(), strip_state: stripState });
}

const turns = (...messages: Message[]): Partial<ChatRequest> => ({
  messages: [{ role: 'user', content: 'Hello' }, ...messages, { role: 'user', content: 'Go on.' }],
});
const contentOf = (body: JsonObject, at: number) => asObject((body['messages'] as JsonObject[])[at])?.['content'];

describe('the family of a model', () => {
  const topK = (upstreamModel: string, model?: string) =>
    encode({ top_k: 5 }, upstreamModel, false, model).body['additionalModelRequestFields'];

  test('follows from its upstream name, or else from its public name', () => {
    expect(topK(CLAUDE)).toEqual({ top_k: 5 });
    expect(topK('eu.amazon.nova-lite-v1:0')).toEqual({ inferenceConfig: { topK: 5 } });
    expect(topK('arn:aws:bedrock:eu-west-1:1:application-inference-profile/x', 'amazon/nova-pro')).toEqual({
      inferenceConfig: { topK: 5 },
    });
    expect(topK('arn:aws:bedrock:eu-west-1:1:application-inference-profile/x')).toBeUndefined();
  });

  test('Claude has the rules of its generation, also behind an ARN', () => {
    const arn = 'arn:aws:bedrock:eu-west-1:1:application-inference-profile/x';
    const { body } = encode({ reasoning: { effort: 'high' } }, arn, false, 'anthropic/claude-opus-4.7');
    expect(body).toMatchObject({
      additionalModelRequestFields: { thinking: { type: 'adaptive' } },
      outputConfig: { effort: 'high' },
    });
  });
});

describe('an effort that a client of the Messages API requests of Claude', () => {
  const encodedThinking = (upstreamModel: string, thinking?: JsonObject, reasoning: ChatRequest['reasoning'] = {}) => {
    const rest: JsonObject = thinking === undefined ? {} : { thinking };
    const ext = { wire: 'anthropic-messages', client: messagesClient, rest } as const;
    const { body } = encode({ reasoning: { effort: 'medium', ...reasoning }, ext }, upstreamModel);
    return [body['additionalModelRequestFields'], body['outputConfig']];
  };

  test('does not enable thinking by itself', () => {
    expect(encodedThinking(CLAUDE)).toEqual([undefined, undefined]);
    expect(encodedThinking('anthropic.claude-opus-4-6-v1')).toEqual([undefined, { effort: 'medium' }]);
  });

  test('is the effort of the requested thinking', () => {
    expect(encodedThinking('anthropic.claude-opus-4-6-v1', { type: 'adaptive' }, { enabled: true })).toEqual([
      { thinking: { type: 'adaptive' } },
      { effort: 'medium' },
    ]);
  });
});

describe('a schema for Nova', () => {
  const NOVA = 'us.amazon.nova-lite-v1:0';
  const sent = (parameters: JsonObject, model = NOVA) => {
    const { body, report } = encode({ tools: [{ type: 'function', function: { name: 'f', parameters } }] }, model);
    const { tools } = body['toolConfig'] as { tools: [{ toolSpec: { inputSchema: { json: JsonObject } } }] };
    return { json: tools[0].toolSpec.inputSchema.json, report };
  };
  const text = { type: 'string' };

  test('has its references replaced, and no keyword at its top level that Nova refuses', () => {
    const parameters = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      description: 'Where.',
      type: 'object',
      properties: {
        a: { $ref: '#/$defs/place', description: 'First.' },
        b: { type: 'array', items: { $ref: '#/definitions/name' } },
      },
      required: ['a'],
      additionalProperties: false,
      $defs: {
        place: { type: 'object', description: 'A place.', properties: { name: { $ref: '#/definitions/name' } } },
      },
      definitions: { name: text },
    };
    const { json, report } = sent(parameters);
    expect(json).toEqual({
      type: 'object',
      properties: {
        a: { type: 'object', description: 'First.', properties: { name: text } },
        b: { type: 'array', items: text },
      },
      required: ['a'],
      additionalProperties: false,
    });
    expect(report).toMatchObject([{ kind: 'dropped', field: 'tools[0].function.parameters' }]);
    expect(sent(parameters, CLAUDE).json).toEqual(parameters);
    expect(sent({}).json).toEqual({ type: 'object', properties: {} });
  });

  test('that is recursive, or expands to a huge one, is bounded', () => {
    const tree = { type: 'object', properties: { left: { $ref: '#/$defs/tree' } } };
    const of = ($defs: JsonObject) => sent({ properties: { a: { $ref: '#/$defs/tree' } }, $defs }).json;
    expect(of({ tree })).toMatchObject({ properties: { a: { type: 'object', properties: { left: {} } } } });
    const twice = (name: string) => ({ properties: { a: { $ref: name }, b: { $ref: name } } });
    const bomb = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`d${n}`, twice(`#/$defs/d${n + 1}`)]));
    expect(JSON.stringify(of({ ...bomb, tree: twice('#/$defs/d0') })).length).toBeLessThan(1_000_000);
  });

  test('is changed also in a response format that becomes a tool', () => {
    const schema = { type: 'object', properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: text } };
    const { body } = encode({ response_format: { type: 'json_schema', json_schema: { name: 'a', schema } } }, NOVA);
    expect(body['toolConfig']).toMatchObject({
      tools: [{ toolSpec: { inputSchema: { json: { properties: { a: text } } } } }],
    });
    expect(JSON.stringify(body)).not.toContain('$defs');
  });
});

describe('reasoning of previous turns', () => {
  const signed: Message = {
    role: 'assistant',
    content: 'Yes.',
    reasoning_details: [
      { type: 'reasoning.text', text: 'Hm.', signature: 'c2ln', format: 'anthropic-claude-v1', index: 0 },
      { type: 'reasoning.encrypted', data: 'b3BhcXVl', format: 'unknown', index: 1 },
    ],
  };
  const thought = { reasoningContent: { reasoningText: { text: 'Hm.', signature: 'c2ln' } } };

  test('is sent to Claude with its signature, unless it was refused', () => {
    expect(contentOf(encode(turns(signed)).body, 1)).toEqual([thought, { text: 'Yes.' }]);
    expect(contentOf(encode(turns(signed), CLAUDE, true).body, 1)).toEqual([{ text: 'Yes.' }]);
  });

  test('that is encrypted is sent to OpenAI models only if the turn is of this wire', () => {
    const gpt = 'us.openai.gpt-5.6-sol';
    expect(contentOf(encode(turns(signed), gpt).body, 1)).toEqual([{ text: 'Yes.' }]);
    const own = { ...signed, ext: { wire: 'bedrock-converse' as const, rest: {} } };
    expect(contentOf(encode(turns(own), gpt).body, 1)).toEqual([
      { reasoningContent: { redactedContent: 'b3BhcXVl' } },
      { text: 'Yes.' },
    ]);
  });
});

test('blocks that only this wire has are sent back unchanged, in the order of the turn', () => {
  const use = { toolUse: { toolUseId: 't', name: 'nova_code_interpreter', input: {}, type: 'server_tool_use' } };
  const result = { toolResult: { toolUseId: 't', content: [{ json: { stdOut: '2' } }], type: 'nova_result' } };
  const message: Message = {
    role: 'assistant',
    content: [
      { type: 'text', text: 'First.' },
      { type: 'text', text: 'Then.' },
    ],
    ext: {
      wire: 'bedrock-converse',
      rest: {},
      order: [
        { kind: 'text', at: 0 },
        { kind: 'native', at: 0 },
        { kind: 'native', at: 1 },
        { kind: 'text', at: 1, ext: { wire: 'bedrock-converse', rest: { citations: [{ title: 'A' }] } } },
      ],
      natives: [
        { type: 'native', wire: 'bedrock-converse', block: use },
        { type: 'native', wire: 'bedrock-converse', block: result },
      ],
    },
  };
  const cited = { citationsContent: { content: [{ text: 'Then.' }], citations: [{ title: 'A' }] } };
  const blocks = contentOf(encode(turns(message), 'us.amazon.nova-2-lite-v1:0').body, 1);
  expect(blocks).toEqual([{ text: 'First.' }, use, result, cited]);
});

test('a failed tool result is marked as an error, for clients of any API', () => {
  const call = { id: 'c', type: 'function' as const, function: { name: 'f', arguments: '{}' } };
  const { body } = encode(
    turns(
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'c', content: 'no', ext: { wire: 'anthropic-messages', rest: { is_error: true } } },
    ),
  );
  expect(contentOf(body, 2)).toEqual([
    { toolResult: { status: 'error', toolUseId: 'c', content: [{ text: 'no' }] } },
    { text: 'Go on.' },
  ]);
});

test('media are fetched for roles whose media are sent', () => {
  const image = { type: 'image_url' as const, image_url: { url: 'https://a.example/b.png' } };
  const film = { type: 'video_url' as const, video_url: { url: 's3://bucket/c.mp4' } };
  const file = { type: 'file' as const, file: { file_data: 'https://a.example/d.pdf' } };
  const messages: Message[] = [
    { role: 'system', content: [image] },
    { role: 'user', content: [film, file] },
    { role: 'assistant', content: [image] },
    { role: 'tool', tool_call_id: 'x', content: [image] },
  ];
  const facts = {} as Parameters<typeof bedrockConverse.requiredMedia>[1];
  expect(bedrockConverse.requiredMedia({ messages }, facts)).toEqual([
    { url: 'https://a.example/d.pdf', kind: 'file' },
    { url: 'https://a.example/b.png', kind: 'image' },
  ]);
  expect(() => encode({ messages: [{ role: 'user', content: [image] }] })).toThrow(GatewayError);
});

test.each([
  ['modelId', 'toolConfig', 'promptVariables', 'performanceConfig', 'inferenceConfig.maxTokens'],
  ['max_tokens', 'inferenceConfig', 'tools', 'anthropic_beta'].map((name) => `additionalModelRequestFields.${name}`),
])('clients cannot set fields that lift a bound or have another price', (...names) => {
  for (const name of names) expect(bedrockConverse.reserved.has(name)).toBe(true);
});

test('the output bound and the service tier are read from the body', () => {
  const { body } = encode({ max_tokens: 77, service_tier: 'flex' });
  expect(bedrockConverse.outputBound(body)).toBe(77);
  expect(bedrockConverse.serviceTier(body)).toBe('flex');
  expect(bedrockConverse.outputBound({})).toBeUndefined();
  expect(bedrockConverse.serviceTier({})).toBeUndefined();
});

test('documents of a request have unique names within the length limit of the wire', () => {
  const file = (filename?: string) => ({
    type: 'file' as const,
    file: { file_data: 'data:text/plain;base64,SGk=', ...(filename === undefined ? {} : { filename }) },
  });
  const { body } = encode({
    messages: [
      { role: 'user', content: [file('ä/ö.txt'), file(), file(), file(`${'x'.repeat(400)}.pdf`), file('a  b.md')] },
    ],
  });
  const names = (contentOf(body, 0) as JsonObject[]).flatMap((block) => asObject(block['document'])?.['name'] ?? []);
  expect(new Set(names).size).toBe(5);
  for (const name of names) expect(name).toMatch(/^(?!.* {2})[A-Za-z0-9 ()[\]-]{1,200}$/);
});
