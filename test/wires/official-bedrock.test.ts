/**
 * The gateway's requests to Amazon Bedrock and the sandbox's answers, checked against the schemas with which AWS's own
 * client serialises, and against its lists of values.
 */
import {
  AudioFormat,
  CacheTTL,
  ConverseRequest$,
  ConverseResponse$,
  DocumentFormat,
  ImageFormat,
  ServiceTierType,
  StopReason,
  ToolResultStatus,
  VideoFormat,
} from '@aws-sdk/client-bedrock-runtime';
import { describe, expect, test } from 'vitest';
import { answerTo } from '../../sandbox/answer.ts';
import { bedrockConverse as sandboxWire } from '../../sandbox/bedrock-converse.ts';
import { checkBedrockConverse } from '../../sandbox/bedrock-converse-checks.ts';
import { readFaults } from '../../sandbox/faults.ts';
import { GatewayError } from '../../src/errors.ts';
import { bedrockConverse } from '../../src/providers/bedrock-converse/index.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { array, object } from '../readings/recordings.ts';
import { twentyMedia, twentyRequests } from '../twenty-requests.ts';

/** The allowed values of a shape's member. */
const VALUES: Record<string, object> = {
  'ImageBlock.format': ImageFormat,
  'DocumentBlock.format': DocumentFormat,
  'VideoBlock.format': VideoFormat,
  'AudioBlock.format': AudioFormat,
  'CachePointBlock.ttl': CacheTTL,
  'ServiceTier.type': ServiceTierType,
  'ToolResultBlock.status': ToolResultStatus,
  'ConverseResponse.stopReason': StopReason,
};

/** The client's form of a schema: numbers for simple types, lists that begin with their type for the others. */
type Schema = number | readonly unknown[] | (() => Schema);
const [LIST, MAP, STRUCTURE, UNION] = [1, 2, 3, 4];
const SIMPLE: Record<number, (value: JsonValue) => boolean> = {
  0: (value) => typeof value === 'string',
  1: (value) => typeof value === 'number',
  2: (value) => typeof value === 'boolean',
  // Bytes travel as base64.
  21: (value) => typeof value === 'string' && /^[A-Za-z0-9+/]*={0,2}$/.test(value),
  15: () => true,
};

function faultsOf(schema: Schema, value: JsonValue, path = ''): string[] {
  if (typeof schema === 'function') return faultsOf(schema(), value, path);
  if (typeof schema === 'number') {
    if (schema >= 64) return array(value).flatMap((one, i) => faultsOf(schema % 64, one, `${path}[${i}]`));
    return SIMPLE[schema]!(value) ? [] : [`${path}: not of type ${schema}`];
  }
  // A schema with traits of its own.
  if (schema.length <= 2) return faultsOf(schema[0] as Schema, value, path);
  const [kind, , name, , members, schemas, required = 0] = schema as [
    number,
    0,
    string,
    0,
    string[],
    Schema[],
    number?,
  ];
  if (kind === LIST) {
    if (!Array.isArray(value)) return [`${path}: no list`];
    return value.flatMap((one, i) => faultsOf(members as unknown as Schema, one, `${path}[${i}]`));
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${path}: no object`];
  if (kind === MAP) {
    return Object.entries(value).flatMap(([key, one]) =>
      faultsOf(schemas as unknown as Schema, one!, `${path}.${key}`),
    );
  }
  if (kind !== STRUCTURE && kind !== UNION) throw new Error(`a schema of kind ${kind}`);
  const faults = Object.entries(value).flatMap(([key, one]) => {
    const at = members.indexOf(key);
    if (at === -1) return [`${path}.${key}: ${name} has no such member`];
    const values = VALUES[`${name}.${key}`];
    if (values !== undefined && !Object.values(values).includes(one)) return [`${path}.${key}: ${one} is no value`];
    return faultsOf(schemas[at]!, one!, `${path}.${key}`);
  });
  if (kind === UNION && Object.keys(value).length !== 1) faults.push(`${path}: one member expected`);
  // The first members are the required ones; the model's id is in the address.
  for (const member of members.slice(0, required)) {
    if (value[member] === undefined && member !== 'modelId') faults.push(`${path}.${member}: missing`);
  }
  return faults;
}

const requestFaults = (body: JsonObject) => faultsOf(ConverseRequest$ as unknown as Schema, body);

test('the schemas reject invalid bodies', () => {
  const ask = (block: JsonObject, change: JsonObject = {}) => ({
    messages: [{ role: 'user', content: [block] }],
    ...change,
  });
  const bytes = { bytes: 'YQ==' };
  expect(requestFaults(ask({ text: 'Hello' }))).toEqual([]);
  expect(requestFaults(ask({ text: 1 }))).not.toEqual([]);
  expect(requestFaults(ask({ text: 'a', image: { format: 'png', source: bytes } }))).not.toEqual([]);
  expect(requestFaults(ask({ image: { format: 'image/png', source: bytes } }))).not.toEqual([]);
  expect(requestFaults(ask({ document: { format: 'txt', source: bytes } }))).not.toEqual([]);
  expect(requestFaults(ask({ text: 'a' }, { inferenceConfig: { topK: 1 } }))).not.toEqual([]);
  expect(requestFaults(ask({ text: 'a' }, { toolConfig: { tools: [{ toolSpec: { name: 'a' } }] } }))).not.toEqual([]);
});

const models = [
  'us.anthropic.claude-3-5-haiku-20241022-v1:0',
  'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
  'global.anthropic.claude-opus-4-7-v1',
  'us.amazon.nova-lite-v1:0',
  'us.amazon.nova-2-lite-v1:0',
  'us.mistral.pixtral-large-2502-v1:0',
  'us.meta.llama4-maverick-17b-instruct-v1:0',
  'openai.gpt-oss-120b-1:0',
  'us.openai.gpt-5.6-sol',
  'qwen.qwen3-235b-a22b-2507-v1:0',
  'us.deepseek.r1-v1:0',
  'moonshot.kimi-k2-thinking',
];

describe.each(models)('of the twenty requests, to %s', (upstreamModel) => {
  test.each(Object.entries(twentyRequests))('%s', (name, request) => {
    const endpoint = {
      model: 'unknown/unknown',
      provider: 'amazon-bedrock',
      upstream_model: upstreamModel,
      max_completion_tokens: 8_000,
      context_length: 256_000,
      input_modalities: ['text', 'image', 'file'],
      quirks: {},
    };
    const encode = () => bedrockConverse.encodeRequest(request, endpoint, { media: twentyMedia, strip_state: false });
    // Content that the model does not accept is refused here, before it would be there.
    if (name === 'audio' || (name === 'video' && !upstreamModel.includes('nova'))) {
      expect(encode).toThrow(GatewayError);
      return;
    }
    const { body } = encode();
    const sent = JSON.parse(JSON.stringify(body)) as JsonObject;
    expect(requestFaults(sent)).toEqual([]);
    if (name === 'replayed reasoning' && upstreamModel.includes('claude')) {
      // The sandbox checks signatures, and this one is made up.
      for (const { content } of array(sent['messages']).map(object)) {
        const blocks = array(content);
        const at = blocks.findIndex((block) => object(block)['reasoningContent'] !== undefined);
        if (at !== -1) blocks[at] = { reasoningContent: { redactedContent: 'YQ==' } };
      }
    }
    expect(() => checkBedrockConverse(sent)).not.toThrow();
  });
});

test('the sandbox’s answers match the schema', () => {
  const body: JsonObject = {
    model: 'tools',
    messages: [{ role: 'user', content: [{ text: 'Hello' }] }],
    toolConfig: { tools: [{ toolSpec: { name: 'a', inputSchema: { json: { type: 'object' } } } }] },
    additionalModelRequestFields: { thinking: { type: 'enabled', budget_tokens: 1024 } },
  };
  const prompt = sandboxWire.readPrompt(body);
  const faults = readFaults({}, {}, {});
  const cache = { read_tokens: 1, write_5m_tokens: 1, write_1h_tokens: 1 };
  for (const behaviour of ['echo', 'tools', 'refuse'] as const) {
    const answer = answerTo(prompt, behaviour, faults);
    const encoded = sandboxWire.encodeBody({ answer, prompt, cache, faults, id: 'a', created: 0, body });
    const { usage, ...others } = encoded;
    expect(faultsOf(ConverseResponse$ as unknown as Schema, others)).toEqual(['.usage: missing']);
    // On the wire two counts have a second name, and there is one more object, which the client ignores.
    const { cacheReadInputTokenCount, cacheWriteInputTokenCount, serverToolUsage, ...counts } = object(usage);
    expect([cacheReadInputTokenCount, cacheWriteInputTokenCount, serverToolUsage]).toEqual([1, 2, {}]);
    expect(faultsOf(ConverseResponse$ as unknown as Schema, { ...others, usage: counts })).toEqual([]);
  }
});
