import type { JsonObject, JsonValue } from './json.ts';
import { checkOpenAiChat, promptTooLong } from './openai-chat-checks.ts';
import { type Answer, isObject, objectsOf, type Prompt, Refusal, textOf } from './prompt.ts';
import { countTokens } from './tokens.ts';
import type { Envelope, SandboxWire } from './wire.ts';

/** Fixed numbers of tokens of an image and of a message's frame, which tests can add up. */
const image_tokens = 85;
const message_tokens = 4;

function partsText(content: JsonValue | undefined): string {
  if (typeof content === 'string') return content;
  return objectsOf(content)
    .map((part) => textOf(part['text']))
    .join('');
}

function countParts(content: JsonValue | undefined, types: string[]): number {
  return objectsOf(content).filter((part) => types.includes(textOf(part['type']))).length;
}

function messageTokens(message: JsonObject): number {
  const calls = objectsOf(message['tool_calls']);
  const media = countParts(message['content'], ['image_url', 'file', 'input_audio', 'video_url']);
  const call_tokens = calls.reduce(
    (sum, call) => sum + countTokens(JSON.stringify(call['function'] ?? call['custom'] ?? null)),
    0,
  );
  return message_tokens + countTokens(partsText(message['content'])) + media * image_tokens + call_tokens;
}

function toolChoice(choice: JsonValue | undefined): Prompt['tool_choice'] {
  if (choice === 'none' || choice === 'required') return choice;
  if (isObject(choice) && isObject(choice['function'])) return { name: textOf(choice['function']['name']) };
  return 'auto';
}

function wantedSchema(format: JsonValue | undefined): JsonObject | undefined {
  if (!isObject(format)) return undefined;
  if (format['type'] === 'json_object') return {};
  const schema = isObject(format['json_schema']) ? format['json_schema']['schema'] : undefined;
  return format['type'] === 'json_schema' ? (isObject(schema) ? schema : {}) : undefined;
}

function readPrompt(body: JsonObject): Prompt {
  const messages = objectsOf(body['messages']);
  const last = messages.at(-1);
  const user = messages.findLast((message) => message['role'] === 'user');
  const results: string[] = [];
  for (let at = messages.length - 1; messages[at]?.['role'] === 'tool'; at -= 1) {
    results.unshift(partsText(messages[at]!['content']));
  }
  const tools = objectsOf(body['tools']).map((tool) => (isObject(tool['function']) ? tool['function'] : {}));
  const bound = body['max_completion_tokens'] ?? body['max_tokens'];
  const stop = body['stop'];
  const input_tokens =
    messages.reduce((sum, message) => sum + messageTokens(message), 0) +
    (tools.length > 0 ? countTokens(JSON.stringify(tools)) : 0);
  return {
    user_text: partsText(user?.['content']),
    images: countParts(user?.['content'], ['image_url']),
    files: countParts(user?.['content'], ['file', 'input_audio', 'video_url']),
    tool_results: results,
    prefill: last?.['role'] === 'assistant' ? partsText(last['content']) : '',
    tools: tools.map((tool) => ({
      name: textOf(tool['name']),
      parameters: isObject(tool['parameters']) ? tool['parameters'] : {},
    })),
    tool_choice: toolChoice(body['tool_choice']),
    parallel: body['parallel_tool_calls'] !== false,
    schema: wantedSchema(body['response_format']),
    reasoning: typeof body['reasoning_effort'] === 'string' && body['reasoning_effort'] !== 'none',
    tokens_max: typeof bound === 'number' ? bound : Number.POSITIVE_INFINITY,
    stop: typeof stop === 'string' ? [stop] : Array.isArray(stop) ? stop.map((one) => textOf(one)) : [],
    choices: typeof body['n'] === 'number' ? body['n'] : 1,
    conversation: textOf(body['user']) || messages.map((message) => partsText(message['content'])).join('\n'),
    input_tokens,
    cache_prefixes: [],
  };
}

function usageOf({ answer, prompt, cache }: Envelope): JsonObject {
  return {
    prompt_tokens: prompt.input_tokens,
    completion_tokens: answer.output_tokens,
    total_tokens: prompt.input_tokens + answer.output_tokens,
    prompt_tokens_details: { cached_tokens: cache.read_tokens, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: answer.reasoning_tokens,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}

const finish_reasons: Record<Answer['finish'], string> = {
  stop: 'stop',
  stop_sequence: 'stop',
  refusal: 'stop',
  length: 'length',
  calls: 'tool_calls',
};

function logprobOf(token: string, top: number): JsonObject {
  const bytes = [...Buffer.from(token)];
  const one = { token, logprob: -0.1, bytes };
  return { ...one, top_logprobs: Array.from({ length: top }, (_, at) => ({ ...one, logprob: -0.1 - at })) };
}

function joined(answer: Answer, kind: 'text' | 'refusal' | 'reasoning'): string | null {
  const pieces = answer.blocks.flatMap((block) => (block.kind === kind ? block.pieces : []));
  return pieces.length === 0 ? null : pieces.join('');
}

function encodeBody(envelope: Envelope): JsonObject {
  const { answer, faults, id, created, body, prompt } = envelope;
  const message: JsonObject = {
    role: 'assistant',
    content: joined(answer, 'text'),
    refusal: joined(answer, 'refusal'),
  };
  const reasoning = joined(answer, 'reasoning');
  if (reasoning !== null) message['reasoning_content'] = reasoning;
  const calls = answer.blocks.flatMap((block) => {
    if (block.kind !== 'call') return [];
    return [
      { id: `call_${block.id}`, type: 'function', function: { name: block.name, arguments: block.pieces.join('') } },
    ];
  });
  if (calls.length > 0) message['tool_calls'] = calls;
  else if (message['content'] === null && message['refusal'] === null) message['content'] = '';
  const top = typeof body['top_logprobs'] === 'number' ? body['top_logprobs'] : 0;
  const texts = answer.blocks.flatMap((block) => (block.kind === 'text' ? block.pieces : []));
  const logprobs =
    body['logprobs'] === true ? { content: texts.map((piece) => logprobOf(piece, top)), refusal: null } : null;
  return {
    id: `chatcmpl-${id}`,
    object: 'chat.completion',
    created,
    model: textOf(body['model']),
    choices: Array.from({ length: prompt.choices ?? 1 }, (_, index) => ({
      index,
      message,
      logprobs,
      finish_reason: faults.finish || finish_reasons[answer.finish],
    })),
    ...(faults.no_usage ? {} : { usage: usageOf(envelope) }),
    service_tier: 'default',
    system_fingerprint: 'fp_sandbox',
  };
}

/** The common fields of the events of one choice. */
interface EventFrame {
  head: string;
  tail: string;
}

/** The events of one choice. */
function* encodeChoice(
  { answer, faults, body }: Envelope,
  index: number,
  { head, tail }: EventFrame,
): Generator<string> {
  const open = `${head}{"index":${index},"delta":`;
  const close = `,"logprobs":null,"finish_reason":null}${tail}`;
  const top = typeof body['top_logprobs'] === 'number' ? body['top_logprobs'] : 0;
  let calls = 0;
  yield `${open}{"role":"assistant","content":${answer.blocks[0]?.kind === 'text' ? '""' : 'null'},"refusal":null}${close}`;
  for (const block of answer.blocks) {
    if (block.kind === 'call') {
      const id = index === 0 ? `call_${block.id}` : `call_${block.id}_${index}`;
      const opening = { index: calls, id, type: 'function', function: { name: block.name, arguments: '' } };
      yield `${open}{"tool_calls":[${JSON.stringify(opening)}]}${close}`;
      for (const piece of block.pieces) {
        yield `${open}{"tool_calls":[{"index":${calls},"function":{"arguments":${JSON.stringify(piece)}}}]}${close}`;
      }
      calls += 1;
      continue;
    }
    const field = block.kind === 'text' ? 'content' : block.kind === 'reasoning' ? 'reasoning_content' : 'refusal';
    for (const piece of block.pieces) {
      if (block.kind === 'text' && body['logprobs'] === true) {
        const logprobs = JSON.stringify({ content: [logprobOf(piece, top)], refusal: null });
        yield `${open}{"content":${JSON.stringify(piece)}},"logprobs":${logprobs},"finish_reason":null}${tail}`;
      } else yield `${open}{"${field}":${JSON.stringify(piece)}}${close}`;
    }
  }
  const finish = JSON.stringify(faults.finish || finish_reasons[answer.finish]);
  yield `${open}{},"logprobs":null,"finish_reason":${finish}}`;
}

function* encodeStream(envelope: Envelope): Generator<string> {
  const { prompt, faults, id, created, body } = envelope;
  const options = body['stream_options'];
  const include_usage = isObject(options) && options['include_usage'] === true && !faults.no_usage;
  const usage = JSON.stringify(usageOf(envelope));
  const head = `data: {"id":"chatcmpl-${id}","object":"chat.completion.chunk","created":${created},"model":${JSON.stringify(textOf(body['model']))},"service_tier":"default","system_fingerprint":"fp_sandbox","choices":[`;
  const plain_tail = `]${include_usage ? ',"usage":null' : ''}}\n\n`;
  const tail = faults.usage_every_chunk ? `],"usage":${usage}}\n\n` : plain_tail;
  const on_finish = faults.usage_on_finish && !faults.no_usage;
  const finish_tail = on_finish ? `],"usage":${usage}}\n\n` : tail;
  let running = Array.from({ length: prompt.choices ?? 1 }, (_, index) =>
    encodeChoice(envelope, index, { head, tail }),
  );
  // The events of several choices alternate.
  while (running.length > 0) {
    const left: typeof running = [];
    for (const choice of running) {
      const { value } = choice.next();
      if (value === undefined) continue;
      const has_ended = !value.endsWith('\n\n');
      yield has_ended ? value + finish_tail : value;
      if (!has_ended) left.push(choice);
    }
    running = left;
  }
  if (include_usage && !on_finish && !faults.usage_every_chunk) yield `${head}],"usage":${usage}}\n\n`;
  if (!faults.no_done) yield 'data: [DONE]\n\n';
}

function errorBody(refusal: Refusal): JsonObject {
  const type =
    refusal.status === 429 ? 'rate_limit_error' : refusal.status >= 500 ? 'server_error' : 'invalid_request_error';
  return { error: { message: refusal.message, type, param: refusal.field, code: refusal.code } };
}

/** The wire of `POST /v1/chat/completions`. https://platform.openai.com/docs/api-reference/chat */
export const openAiChat: SandboxWire = {
  path: /^\/v1\/chat\/completions$/,
  credentialOf: (headers) => headers.authorization?.replace(/^Bearer /, ''),
  credentialRefused: () => new Refusal(401, 'Incorrect API key provided.', 'invalid_api_key'),
  modelUnknown: (model) =>
    new Refusal(
      404,
      `The model \`${model}\` does not exist or you do not have access to it.`,
      'model_not_found',
      'model',
    ),
  check: checkOpenAiChat,
  promptTooLong,
  readPrompt,
  encodeBody,
  encodeStream,
  errorBody,
  errorEvent: (refusal) => `data: ${JSON.stringify(errorBody(refusal))}\n\n`,
  answerHeaders: (id) => ({ 'x-request-id': `req_${id}`, 'openai-version': '2020-10-01' }),
};
