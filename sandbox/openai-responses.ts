import type { JsonObject, JsonValue } from './json.ts';
import { checkOpenAiResponses, encryptReasoning, promptTooLong } from './openai-responses-checks.ts';
import { type Block, isObject, objectsOf, type Prompt, Refusal, textOf } from './prompt.ts';
import { countTokens } from './tokens.ts';
import type { Envelope, SandboxWire } from './wire.ts';

/** Fixed numbers of tokens of an image and of a message's frame, which tests can add up. */
const image_tokens = 85;
const message_tokens = 4;

function itemsOf(input: JsonValue | undefined): JsonObject[] {
  return typeof input === 'string' ? [{ role: 'user', content: input }] : objectsOf(input);
}

function partsText(content: JsonValue | undefined): string {
  if (typeof content === 'string') return content;
  return objectsOf(content)
    .map((part) => textOf(part['text']))
    .join('');
}

function countParts(content: JsonValue | undefined, types: string[]): number {
  return objectsOf(content).filter((part) => types.includes(textOf(part['type']))).length;
}

function textIn(item: JsonObject): string {
  return partsText(item['output'] ?? item['content']);
}

function itemTokens(item: JsonObject): number {
  const content = item['output'] ?? item['content'];
  const media = countParts(content, ['input_image', 'input_file']) * image_tokens;
  const call = item['type'] === 'function_call' ? countTokens(textOf(item['name']) + textOf(item['arguments'])) : 0;
  return message_tokens + countTokens(partsText(content)) + media + call;
}

function toolChoice(choice: JsonValue | undefined): Prompt['tool_choice'] {
  if (choice === 'none' || choice === 'required') return choice;
  if (!isObject(choice)) return 'auto';
  if (choice['type'] === 'allowed_tools') return choice['mode'] === 'required' ? 'required' : 'auto';
  return choice['type'] === 'function' ? { name: textOf(choice['name']) } : 'auto';
}

/** Whether a call of a tool is allowed. */
function isAllowed(tool: JsonObject, choice: JsonValue | undefined): boolean {
  if (!isObject(choice) || choice['type'] !== 'allowed_tools') return true;
  return objectsOf(choice['tools']).some(({ name }) => name === tool['name']);
}

function wantedSchema(body: JsonObject): JsonObject | undefined {
  const format = isObject(body['text']) ? body['text']['format'] : undefined;
  if (!isObject(format) || (format['type'] !== 'json_object' && format['type'] !== 'json_schema')) return undefined;
  return isObject(format['schema']) ? format['schema'] : {};
}

function readPrompt(body: JsonObject): Prompt {
  const items = itemsOf(body['input']);
  const last = items.at(-1);
  const user = items.findLast((item) => item['role'] === 'user');
  const results: string[] = [];
  for (let at = items.length - 1; items[at]?.['type'] === 'function_call_output'; at -= 1) {
    results.unshift(textIn(items[at]!));
  }
  const tools = objectsOf(body['tools']).filter((tool) => tool['type'] === 'function');
  const reasoning = isObject(body['reasoning']) ? body['reasoning'] : {};
  const bound = body['max_output_tokens'];
  const instructions = textOf(body['instructions']);
  return {
    user_text: partsText(user?.['content']),
    images: countParts(user?.['content'], ['input_image']),
    files: countParts(user?.['content'], ['input_file']),
    tool_results: results,
    prefill: last?.['role'] === 'assistant' ? partsText(last['content']) : '',
    tools: tools
      .filter((tool) => isAllowed(tool, body['tool_choice']))
      .map((tool) => ({
        name: textOf(tool['name']),
        parameters: isObject(tool['parameters']) ? tool['parameters'] : {},
      })),
    tool_choice: toolChoice(body['tool_choice']),
    parallel: body['parallel_tool_calls'] !== false,
    schema: wantedSchema(body),
    reasoning: typeof reasoning['effort'] === 'string' && reasoning['effort'] !== 'none',
    tokens_max: typeof bound === 'number' ? bound : Number.POSITIVE_INFINITY,
    stop: [],
    conversation: textOf(body['safety_identifier']) || items.map(textIn).join('\n'),
    input_tokens:
      items.reduce((sum, item) => sum + itemTokens(item), 0) +
      (instructions === '' ? 0 : message_tokens + countTokens(instructions)) +
      (tools.length > 0 ? countTokens(JSON.stringify(tools)) : 0),
    cache_prefixes: [],
  };
}

function usageOf({ answer, prompt, cache }: Envelope): JsonObject {
  return {
    input_tokens: prompt.input_tokens,
    input_tokens_details: { cached_tokens: cache.read_tokens, cache_write_tokens: 0 },
    output_tokens: answer.output_tokens,
    output_tokens_details: { reasoning_tokens: answer.reasoning_tokens },
    total_tokens: prompt.input_tokens + answer.output_tokens,
  };
}

function summaryIsWanted({ body }: Envelope): boolean {
  return isObject(body['reasoning']) && typeof body['reasoning']['summary'] === 'string';
}

/** The finished item of a block. */
function itemOf(envelope: Envelope, block: Block, at: number): JsonObject {
  const text = block.pieces.join('');
  const id = `${envelope.id}${at}`;
  const { blocks, finish } = envelope.answer;
  const status = finish === 'length' && at === blocks.length - 1 ? 'incomplete' : 'completed';
  switch (block.kind) {
    case 'reasoning':
      return {
        id: `rs_${id}`,
        type: 'reasoning',
        summary: summaryIsWanted(envelope) ? [{ type: 'summary_text', text }] : [],
        encrypted_content: encryptReasoning(text),
      };
    case 'call':
      return {
        id: `fc_${id}`,
        type: 'function_call',
        status,
        call_id: `call_${block.id}`,
        name: block.name,
        arguments: text,
      };
    case 'refusal':
      return messageOf(id, status, [{ type: 'refusal', refusal: text }]);
    default:
      return messageOf(id, status, [
        { type: 'output_text', text, annotations: [], logprobs: logprobsOf(envelope, block.pieces) },
      ]);
  }
}

function messageOf(id: string, status: string, content: JsonObject[]): JsonObject {
  return { id: `msg_${id}`, type: 'message', status, role: 'assistant', content };
}

function logprobsOf({ body }: Envelope, pieces: string[]): JsonObject[] {
  const isWanted = Array.isArray(body['include']) && body['include'].includes('message.output_text.logprobs');
  if (!isWanted) return [];
  const top = typeof body['top_logprobs'] === 'number' ? body['top_logprobs'] : 0;
  return pieces.map((token) => {
    const one = { token, logprob: -0.1, bytes: [...Buffer.from(token)] };
    return { ...one, top_logprobs: Array.from({ length: top }, (_, at) => ({ ...one, logprob: -0.1 - at })) };
  });
}

function withoutBytes({ token, logprob, top_logprobs }: JsonObject): JsonObject {
  const entry = { token, logprob };
  return top_logprobs === undefined ? entry : { ...entry, top_logprobs: objectsOf(top_logprobs).map(withoutBytes) };
}

/** The response object in a given state. It repeats the request, as the provider's does. */
function responseOf(envelope: Envelope, status: string, output: JsonObject[], usage: JsonObject | null): JsonObject {
  const { body, id, created, answer, faults } = envelope;
  const reason = faults.finish || (answer.finish === 'length' ? 'max_output_tokens' : null);
  return {
    id: `resp_${id}`,
    object: 'response',
    created_at: created,
    status,
    error: null,
    incomplete_details: status === 'incomplete' ? { reason } : null,
    instructions: body['instructions'] ?? null,
    max_output_tokens: body['max_output_tokens'] ?? null,
    model: textOf(body['model']),
    output,
    parallel_tool_calls: body['parallel_tool_calls'] ?? true,
    previous_response_id: null,
    reasoning: body['reasoning'] ?? { effort: null, summary: null },
    service_tier: status === 'in_progress' ? (body['service_tier'] ?? 'auto') : 'default',
    store: body['store'] ?? true,
    temperature: body['temperature'] ?? 1,
    text: body['text'] ?? { format: { type: 'text' } },
    tool_choice: body['tool_choice'] ?? 'auto',
    tools: body['tools'] ?? [],
    top_p: body['top_p'] ?? 1,
    truncation: 'disabled',
    usage,
    metadata: {},
  };
}

function finalStatus({ answer, faults }: Envelope): string {
  return answer.finish === 'length' || faults.finish !== '' ? 'incomplete' : 'completed';
}

function encodeBody(envelope: Envelope): JsonObject {
  const output = envelope.answer.blocks.map((block, at) => itemOf(envelope, block, at));
  return responseOf(envelope, finalStatus(envelope), output, envelope.faults.no_usage ? null : usageOf(envelope));
}

type Say = (type: string, fields: JsonObject) => string;

function* encodeBlock(say: Say, envelope: Envelope, block: Block, output_index: number): Generator<string> {
  const item = itemOf(envelope, block, output_index);
  const place = { item_id: item['id'], output_index };
  const text = block.pieces.join('');
  const piece = (type: string, delta: string, fields: JsonObject) =>
    // The padding hides the length of a token.
    say(type, { ...fields, delta, obfuscation: 'x'.repeat(16 - (delta.length % 16)) });
  if (block.kind === 'call') {
    yield say('response.output_item.added', { output_index, item: { ...item, status: 'in_progress', arguments: '' } });
    for (const delta of block.pieces) yield piece('response.function_call_arguments.delta', delta, place);
    yield say('response.function_call_arguments.done', { ...place, arguments: text });
  } else if (block.kind === 'reasoning') {
    // The first content is a placeholder.
    const opening = { ...item, summary: [], encrypted_content: encryptReasoning('') };
    yield say('response.output_item.added', { output_index, item: opening });
    if (summaryIsWanted(envelope)) {
      const at = { ...place, summary_index: 0 };
      yield say('response.reasoning_summary_part.added', { ...at, part: { type: 'summary_text', text: '' } });
      for (const delta of block.pieces) yield piece('response.reasoning_summary_text.delta', delta, at);
      yield say('response.reasoning_summary_text.done', { ...at, text });
      yield say('response.reasoning_summary_part.done', { ...at, part: { type: 'summary_text', text } });
    }
  } else {
    const at = { ...place, content_index: 0 };
    const isText = block.kind === 'text';
    const part = isText
      ? { type: 'output_text', text: '', annotations: [], logprobs: [] }
      : { type: 'refusal', refusal: '' };
    yield say('response.output_item.added', { output_index, item: { ...item, status: 'in_progress', content: [] } });
    yield say('response.content_part.added', { ...at, part });
    // Streams have no bytes.
    const logprobs = logprobsOf(envelope, block.pieces).map(withoutBytes);
    const kind = isText ? 'response.output_text' : 'response.refusal';
    for (const [i, delta] of block.pieces.entries()) {
      yield piece(`${kind}.delta`, delta, isText ? { ...at, logprobs: logprobs.slice(i, i + 1) } : at);
    }
    yield say(`${kind}.done`, isText ? { ...at, text, logprobs } : { ...at, refusal: text });
    yield say('response.content_part.done', { ...at, part: objectsOf(item['content'])[0]! });
  }
  yield say('response.output_item.done', { output_index, item });
}

function* encodeStream(envelope: Envelope): Generator<string> {
  let sequence_number = 0;
  const say: Say = (type, fields) => {
    const text = event({ type, ...fields, sequence_number });
    sequence_number += 1;
    return text;
  };
  const begun = responseOf(envelope, 'in_progress', [], null);
  yield say('response.created', { response: begun });
  yield say('response.in_progress', { response: begun });
  for (const [at, block] of envelope.answer.blocks.entries()) yield* encodeBlock(say, envelope, block, at);
  // The wire has no terminator: the last event holds the end of the answer.
  yield say(`response.${finalStatus(envelope)}`, { response: encodeBody(envelope) });
}

function event(fields: JsonObject): string {
  return `event: ${textOf(fields['type'])}\ndata: ${JSON.stringify(fields)}\n\n`;
}

function errorBody(refusal: Refusal): JsonObject {
  const type =
    refusal.status === 429 ? 'rate_limit_error' : refusal.status >= 500 ? 'server_error' : 'invalid_request_error';
  return { error: { message: refusal.message, type, param: refusal.field, code: refusal.code } };
}

/** The wire of `POST /v1/responses`. https://platform.openai.com/docs/api-reference/responses */
export const openAiResponses: SandboxWire = {
  path: /^\/v1\/responses$/,
  credentialOf: (headers) => headers.authorization?.replace(/^Bearer /, ''),
  credentialRefused: () => new Refusal(401, 'Incorrect API key provided.', 'invalid_api_key'),
  modelUnknown: (model) =>
    new Refusal(400, `The requested model '${model}' does not exist.`, 'model_not_found', 'model'),
  check: checkOpenAiResponses,
  promptTooLong,
  readPrompt,
  encodeBody,
  encodeStream,
  errorBody,
  errorEvent: (refusal) => event({ type: 'error', ...errorBody(refusal) }),
  answerHeaders: (id) => ({ 'x-request-id': `req_${id}`, 'openai-version': '2020-10-01' }),
};
