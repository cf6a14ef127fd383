import { checkContent, invalid, members } from './bedrock-converse-content.ts';
import type { JsonObject, JsonValue } from './json.ts';
import { MODEL_CONTEXT_TOKENS, MODEL_OUTPUT_TOKENS } from './models.ts';
import { isObject, objectsOf, type Refusal, textOf } from './prompt.ts';

// Fields: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html; the sandbox adds `sandbox`.
const fields = new Set(
  (
    'messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields promptVariables ' +
    'additionalModelResponseFieldPaths requestMetadata performanceConfig serviceTier outputConfig sandbox'
  ).split(' '),
);
const cache_points_max = 4;
const budget_tokens_min = 1024;

function idsOf(content: JsonObject[], kind: 'toolUse' | 'toolResult'): string[] {
  return content.flatMap((block) => (isObject(block[kind]) ? [textOf(block[kind]['toolUseId'])] : []));
}

function checkMessages(body: JsonObject): void {
  const messages = objectsOf(body['messages']);
  if (messages.length === 0)
    throw invalid(
      'A conversation must start with a user message. Try again with a conversation that starts with a user message.',
    );
  const names = new Set<string>();
  let called: string[] = [];
  for (const [at, { role, content }] of messages.entries()) {
    if (role !== 'user' && role !== 'assistant') throw invalid(`messages.${at}.role must be user or assistant`);
    if (role !== (at % 2 === 0 ? 'user' : 'assistant')) {
      throw invalid(
        at === 0
          ? 'A conversation must start with a user message. Try again with a conversation that starts with a user message.'
          : 'A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.',
      );
    }
    const blocks = objectsOf(content);
    checkContent(blocks, members[role], `messages.${at}.content`, names);
    const results = role === 'user' ? idsOf(blocks, 'toolResult') : [];
    const unanswered = called.filter((id) => !results.includes(id));
    if (unanswered.length > 0) {
      throw invalid(
        `Expected toolResult blocks at messages.${at}.content for the following Ids: ${unanswered.join(', ')}`,
      );
    }
    if (results.length > called.length) {
      throw invalid(
        `The number of toolResult blocks at messages.${at}.content exceeds the number of toolUse blocks of previous turn.`,
      );
    }
    called = role === 'assistant' ? idsOf(blocks, 'toolUse') : [];
    if (new Set(called).size < called.length) throw invalid(`messages.${at}.content: ids of calls must be unique`);
    const last = blocks.at(-1);
    if (role === 'assistant' && at === messages.length - 1 && /\s$/.test(textOf(last?.['text']))) {
      throw invalid(
        'The model returned the following errors: messages: final assistant content cannot end with trailing whitespace',
      );
    }
  }
  const system = objectsOf(body['system']);
  if (system.length > 0) checkContent(system, members.system, 'system', names);
}

function checkTools(body: JsonObject): void {
  const config = body['toolConfig'];
  const blocks = objectsOf(body['messages']).flatMap(({ content }) => objectsOf(content));
  if (config === undefined) {
    if (blocks.some((block) => block['toolUse'] !== undefined || block['toolResult'] !== undefined)) {
      throw invalid('The toolConfig field must be defined when using toolUse and toolResult content blocks.');
    }
    return;
  }
  if (!isObject(config)) throw invalid('toolConfig must be an object');
  const tools = objectsOf(config['tools']);
  const names = new Set<string>();
  if (tools.length === 0) throw invalid('toolConfig.tools must have length greater than or equal to 1');
  for (const [at, tool] of tools.entries()) {
    const spec = tool['toolSpec'];
    if (tool['cachePoint'] !== undefined) continue;
    if (!isObject(spec)) throw invalid(`toolConfig.tools.${at}: no toolSpec`);
    const name = textOf(spec['name']);
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) throw invalid(`toolConfig.tools.${at}.toolSpec.name: ${name} is no name`);
    if (names.has(name)) throw invalid(`The tool ${name} is already defined.`);
    names.add(name);
    if (spec['description'] === '') throw invalid(`toolConfig.tools.${at}.toolSpec.description is empty`);
    const schema = isObject(spec['inputSchema']) ? spec['inputSchema']['json'] : undefined;
    if (!isObject(schema) || schema['type'] !== 'object') {
      throw invalid(
        `The value at toolConfig.tools.${at}.toolSpec.inputSchema.json.type must be one of the following: object.`,
      );
    }
  }
  const choice = config['toolChoice'];
  if (choice === undefined) return;
  const [kind = ''] = isObject(choice) ? Object.keys(choice) : [];
  if (!['auto', 'any', 'tool'].includes(kind)) throw invalid('toolConfig.toolChoice: one of auto, any, tool');
  const named = isObject(choice) && isObject(choice['tool']) ? textOf(choice['tool']['name']) : undefined;
  if (named !== undefined && !names.has(named)) throw invalid(`toolChoice names ${named}, which is no tool`);
  const thinking = thinkingOf(body);
  if (thinking?.['type'] === 'enabled' && kind !== 'auto') {
    throw invalid(
      'The model returned the following errors: Thinking may not be enabled when tool_choice forces tool use.',
    );
  }
}

function thinkingOf(body: JsonObject): JsonObject | undefined {
  const extra = body['additionalModelRequestFields'];
  return isObject(extra) && isObject(extra['thinking']) ? extra['thinking'] : undefined;
}

function within(value: JsonValue | undefined, least: number, most: number, name: string): void {
  if (value === undefined) return;
  if (typeof value !== 'number' || value < least || value > most) {
    throw invalid(
      `Value '${value}' at 'inferenceConfig.${name}' failed to satisfy constraint: Member must be between ${least} and ${most}`,
    );
  }
}

function checkInference(body: JsonObject): void {
  const config = isObject(body['inferenceConfig']) ? body['inferenceConfig'] : {};
  for (const name of Object.keys(config)) {
    if (!['maxTokens', 'temperature', 'topP', 'stopSequences'].includes(name))
      throw invalid(`inferenceConfig.${name} is unknown`);
  }
  within(config['maxTokens'], 1, MODEL_OUTPUT_TOKENS, 'maxTokens');
  within(config['temperature'], 0, 1, 'temperature');
  within(config['topP'], 0, 1, 'topP');
  const thinking = thinkingOf(body);
  if (thinking?.['type'] !== 'enabled') return;
  const budget = Number(thinking['budget_tokens']);
  if (!(budget >= budget_tokens_min)) throw invalid(`thinking.budget_tokens: at least ${budget_tokens_min}`);
  if (config['maxTokens'] !== undefined && budget >= Number(config['maxTokens'])) {
    throw invalid(
      'The model returned the following errors: `max_tokens` must be greater than `thinking.budget_tokens`.',
    );
  }
  if (config['temperature'] !== undefined && config['temperature'] !== 1) {
    throw invalid(
      'The model returned the following errors: `temperature` may only be set to 1 when thinking is enabled.',
    );
  }
  const messages = objectsOf(body['messages']);
  const results = idsOf(objectsOf(messages.at(-1)?.['content']), 'toolResult');
  const [first] = objectsOf(messages.at(-2)?.['content']);
  if (results.length > 0 && first?.['reasoningContent'] === undefined) {
    throw invalid(
      'The model returned the following errors: Expected `thinking` or `redacted_thinking`, but found `tool_use`.',
    );
  }
}

function checkOutput(body: JsonObject): void {
  const output = isObject(body['outputConfig']) ? body['outputConfig'] : {};
  const format = isObject(output['textFormat']) ? output['textFormat'] : undefined;
  if (format !== undefined && schemaOf(body) === undefined) {
    throw invalid('outputConfig.textFormat.structure.jsonSchema.schema must be the text of a JSON schema');
  }
  const tier = body['serviceTier'];
  if (
    tier !== undefined &&
    !(isObject(tier) && ['default', 'priority', 'flex', 'reserved'].includes(textOf(tier['type'])))
  ) {
    throw invalid('serviceTier.type: one of default, priority, flex, reserved');
  }
  const metadata = isObject(body['requestMetadata']) ? Object.entries(body['requestMetadata']) : [];
  if (metadata.length > 16 || metadata.flat().some((text) => !/^[a-zA-Z0-9\s:_@$#=/+,.-]{0,256}$/.test(String(text)))) {
    throw invalid('requestMetadata: at most 16 pairs of plain characters');
  }
}

/** The schema that the answer must satisfy. The wire carries it as text. */
export function schemaOf(body: JsonObject): JsonObject | undefined {
  const output = isObject(body['outputConfig']) ? body['outputConfig'] : {};
  const format = isObject(output['textFormat']) ? output['textFormat'] : {};
  const structure = isObject(format['structure']) ? format['structure'] : {};
  const schemaText = isObject(structure['jsonSchema']) ? structure['jsonSchema']['schema'] : undefined;
  try {
    const schema: unknown = JSON.parse(textOf(schemaText));
    return isObject(schema) ? schema : undefined;
  } catch {
    return undefined;
  }
}

/** Refuses what Converse refuses, including unknown fields. */
export function checkBedrockConverse(body: JsonObject): void {
  const unknown = Object.keys(body).find((field) => !fields.has(field));
  if (unknown !== undefined) throw invalid(`Malformed input request: extraneous key [${unknown}] is not permitted`);
  checkTools(body);
  checkMessages(body);
  checkInference(body);
  checkOutput(body);
  const tools = isObject(body['toolConfig']) ? objectsOf(body['toolConfig']['tools']) : [];
  const blocks = objectsOf(body['messages']).flatMap(({ content }) => objectsOf(content));
  const points = [...tools, ...objectsOf(body['system']), ...blocks].filter(
    (block) => block['cachePoint'] !== undefined,
  );
  if (points.length > cache_points_max) {
    throw invalid(`A maximum of ${cache_points_max} cache points may be provided. Found ${points.length}.`);
  }
}

/** The refusal of a prompt that does not fit the model. */
export function promptTooLong(input_tokens: number): Refusal {
  return invalid(
    `The model returned the following errors: prompt is too long: ${input_tokens} tokens > ${MODEL_CONTEXT_TOKENS} maximum`,
  );
}
