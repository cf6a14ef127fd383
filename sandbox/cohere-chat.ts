import { checkCohereChat, promptTooLong } from './cohere-chat-checks.ts';
import type { JsonObject, JsonValue } from './json.ts';
import { type Answer, type Block, isObject, objectsOf, type Prompt, Refusal, textOf } from './prompt.ts';
import { countTokens } from './tokens.ts';
import type { Envelope, SandboxWire } from './wire.ts';

/** Fixed numbers of tokens of an image and of a message's frame, which tests can add up. */
const image_tokens = 85;
const message_tokens = 4;
/** The provider's own preamble. It is counted, but not billed. */
const preamble_tokens = 490;

function partText(part: JsonObject): string {
  const { document } = part;
  return part['type'] === 'document'
    ? JSON.stringify(isObject(document) ? document['data'] : {})
    : textOf(part['text']);
}

function contentText(content: JsonValue | undefined): string {
  return typeof content === 'string' ? content : objectsOf(content).map(partText).join('');
}

function messageTokens(message: JsonObject): number {
  const parts = objectsOf(message['content']);
  const images = parts.filter((part) => part['type'] === 'image_url').length;
  const thoughts = parts.map((part) => textOf(part['thinking'])).join('');
  const calls = objectsOf(message['tool_calls'])
    .map((call) => JSON.stringify(call['function']))
    .join('');
  const text = contentText(message['content']) + textOf(message['tool_plan']) + thoughts;
  return message_tokens + countTokens(text) + images * image_tokens + countTokens(calls);
}

function wantedSchema(format: JsonValue | undefined): JsonObject | undefined {
  if (!isObject(format) || format['type'] !== 'json_object') return undefined;
  return isObject(format['json_schema']) ? format['json_schema'] : {};
}

function readPrompt(body: JsonObject): Prompt {
  const messages = objectsOf(body['messages']);
  const last = messages.at(-1);
  const user = messages.findLast((message) => message['role'] === 'user');
  const results: string[] = [];
  for (let at = messages.length - 1; messages[at]?.['role'] === 'tool'; at -= 1) {
    results.unshift(contentText(messages[at]!['content']));
  }
  const tools = objectsOf(body['tools']).map((tool) => (isObject(tool['function']) ? tool['function'] : {}));
  const { max_tokens, thinking, stop_sequences } = body;
  const choice = body['tool_choice'];
  return {
    user_text: contentText(user?.['content']),
    images: objectsOf(user?.['content']).filter((part) => part['type'] === 'image_url').length,
    files: 0,
    tool_results: results,
    prefill: last?.['role'] === 'assistant' ? contentText(last['content']) : '',
    tools: tools.map((tool) => ({
      name: textOf(tool['name']),
      parameters: isObject(tool['parameters']) ? tool['parameters'] : {},
    })),
    tool_choice: choice === 'NONE' ? 'none' : choice === 'REQUIRED' ? 'required' : 'auto',
    parallel: true,
    schema: wantedSchema(body['response_format']),
    reasoning: isObject(thinking) && thinking['type'] === 'enabled',
    tokens_max: typeof max_tokens === 'number' ? max_tokens : Number.POSITIVE_INFINITY,
    stop: Array.isArray(stop_sequences) ? stop_sequences.map((one) => textOf(one)) : [],
    conversation: messages.map((message) => contentText(message['content'])).join('\n'),
    input_tokens:
      messages.reduce((sum, message) => sum + messageTokens(message), 0) +
      (tools.length > 0 ? countTokens(JSON.stringify(tools)) : 0),
    cache_prefixes: [],
  };
}

const finish_reasons: Record<Answer['finish'], string> = {
  stop: 'COMPLETE',
  stop_sequence: 'STOP_SEQUENCE',
  // The wire has no refusals: they are plain text.
  refusal: 'COMPLETE',
  length: 'MAX_TOKENS',
  calls: 'TOOL_CALL',
};

function usageOf({ answer, prompt, cache, faults }: Envelope): { usage?: JsonObject } {
  if (faults.no_usage) return {};
  const { input_tokens } = prompt;
  const { output_tokens } = answer;
  return {
    usage: {
      billed_units: { input_tokens, output_tokens },
      tokens: { input_tokens: input_tokens + preamble_tokens, output_tokens: output_tokens + 2 },
      // The whole prompt, including the preamble.
      ...(cache.read_tokens > 0 ? { cached_tokens: cache.read_tokens + preamble_tokens } : {}),
    },
  };
}

function callOf(block: Block & { kind: 'call' }, text: string): JsonObject {
  return { id: `${block.name}_${block.id}`, type: 'function', function: { name: block.name, arguments: text } };
}

function finishOf({ answer, faults }: Envelope): string {
  return faults.finish || finish_reasons[answer.finish];
}

function encodeBody(envelope: Envelope): JsonObject {
  const content: JsonObject[] = [];
  const calls: JsonObject[] = [];
  for (const block of envelope.answer.blocks) {
    const text = block.pieces.join('');
    if (block.kind === 'call') calls.push(callOf(block, text));
    else if (block.kind === 'reasoning') content.push({ type: 'thinking', thinking: text });
    else content.push({ type: 'text', text: text });
  }
  return {
    id: envelope.id,
    finish_reason: finishOf(envelope),
    message: {
      role: 'assistant',
      ...(content.length > 0 ? { content } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    },
    ...usageOf(envelope),
  };
}

function event(payload: JsonObject): string {
  return `event: ${payload['type']}\ndata: ${JSON.stringify(payload)}\n\n`;
}

function* encodeProse(block: Block, index: number): Generator<string> {
  const kind = block.kind === 'reasoning' ? 'thinking' : 'text';
  yield event({ type: 'content-start', index, delta: { message: { content: { type: kind, [kind]: '' } } } });
  const head = `event: content-delta\ndata: {"type":"content-delta","index":${index},"delta":{"message":{"content":{"${kind}":`;
  for (const piece of block.pieces) yield `${head}${JSON.stringify(piece)}}}}}\n\n`;
  yield event({ type: 'content-end', index });
}

function* encodeCall(block: Block & { kind: 'call' }, index: number): Generator<string> {
  yield event({ type: 'tool-call-start', index, delta: { message: { tool_calls: callOf(block, '') } } });
  const head = `event: tool-call-delta\ndata: {"type":"tool-call-delta","index":${index},"delta":{"message":{"tool_calls":{"function":{"arguments":`;
  for (const piece of block.pieces) yield `${head}${JSON.stringify(piece)}}}}}}\n\n`;
  yield event({ type: 'tool-call-end', index });
}

function* encodeStream(envelope: Envelope): Generator<string> {
  const message = { role: 'assistant', content: [], tool_plan: '', tool_calls: [], citations: [] };
  yield event({ id: envelope.id, type: 'message-start', delta: { message } });
  let contents = 0;
  let calls = 0;
  for (const block of envelope.answer.blocks) {
    if (block.kind === 'call') {
      yield* encodeCall(block, calls);
      calls += 1;
    } else {
      yield* encodeProse(block, contents);
      contents += 1;
    }
  }
  if (envelope.faults.no_done) return;
  yield event({ type: 'message-end', delta: { finish_reason: finishOf(envelope), ...usageOf(envelope) } });
}

/** The wire of `POST /v2/chat`. https://docs.cohere.com/reference/chat */
export const cohereChat: SandboxWire = {
  path: /^\/v2\/chat$/,
  credentialOf: (headers) => headers.authorization?.replace(/^Bearer /i, ''),
  credentialRefused: () => new Refusal(401, 'invalid api token'),
  modelUnknown: (model) =>
    new Refusal(
      404,
      `model '${model}' not found, make sure the correct model ID was used and that you have access to the model.`,
    ),
  check: checkCohereChat,
  promptTooLong,
  readPrompt,
  encodeBody,
  encodeStream,
  errorBody: (refusal, id) => ({ id, message: refusal.message }),
  errorEvent: (refusal) => event({ type: 'message-end', delta: { finish_reason: 'ERROR', error: refusal.message } }),
  answerHeaders: (id) => ({ 'x-debug-trace-id': id }),
};
