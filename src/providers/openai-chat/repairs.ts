import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { addReport, type Encoding } from './encoding.ts';
import { isObject } from './wire.ts';

/** Makes user and assistant messages alternate, with system messages only at the beginning, by merging neighbours. */
export function alternateRoles(encoding: Encoding, messages: JsonObject[]): JsonObject[] {
  const turns: JsonObject[][] = [];
  let isStarted = false;
  for (const message of messages) {
    const isLate = isStarted && message['role'] === 'system';
    isStarted ||= message['role'] !== 'system';
    const turn = isLate ? { ...message, role: 'user' } : message;
    const last = turns.at(-1) ?? [];
    const isSame = isMergeable(turn) && last[0]?.['role'] === turn['role'] && isMergeable(last[0]!);
    if (isSame) last.push(turn);
    else turns.push([turn]);
    if (isSame || isLate) {
      addReport(
        encoding,
        'changed',
        'messages',
        'consecutive turns of one role are merged, because the provider requires alternating roles',
      );
    }
  }
  return turns.map((turn) => (turn.length === 1 ? turn[0]! : { ...turn[0], content: joined(turn) }));
}

function isMergeable({ role, tool_calls: toolCalls }: JsonObject): boolean {
  return role === 'user' || (role === 'assistant' && toolCalls === undefined);
}

function joined(turn: readonly JsonObject[]): JsonValue {
  const contents = turn.map(({ content }) => content);
  if (contents.every((content) => typeof content === 'string')) return contents.join('\n\n');
  return contents.flatMap(partsOf);
}

function partsOf(content: JsonValue | undefined): JsonValue[] {
  if (Array.isArray(content)) return content;
  return typeof content === 'string' && content !== '' ? [{ type: 'text', text: content }] : [];
}

/** DeepSeek and Moonshot, while they think, require the reasoning of former turns that called tools: handles turns without it. */
export function mendLostReasoning(encoding: Encoding, body: JsonObject): void {
  // Models that do not think accept no reasoning, and need none.
  const { lost_reasoning: lostReasoning, replay_reasoning: replayReasoning } = encoding.quirks;
  const repair = replayReasoning === 'reasoning_content' ? lostReasoning : undefined;
  const { messages, thinking } = body;
  if (repair === undefined || !Array.isArray(messages) || (isObject(thinking) && thinking['type'] === 'disabled'))
    return;
  const lacks = (message: JsonValue): message is JsonObject =>
    isObject(message) && Array.isArray(message['tool_calls']) && !message['reasoning_content'];
  if (!messages.some(lacks)) return;
  const lost = 'the reasoning of former tool calls is missing';
  if (repair === 'off') {
    // https://api-docs.deepseek.com/guides/thinking_mode: a request without the reasoning is a 400.
    body['thinking'] = { type: 'disabled' };
    delete body['reasoning_effort'];
    addReport(encoding, 'changed', 'reasoning', `thinking disabled: ${lost}`);
  } else {
    // "thinking is enabled but reasoning_content is missing in assistant tool call message at index …"; for models whose
    // thinking cannot be turned off.
    body['messages'] = messages.map((message) => (lacks(message) ? { ...message, reasoning_content: '.' } : message));
    addReport(encoding, 'changed', 'messages[].reasoning', `a marker replaces it: ${lost}`);
  }
}

/** Alibaba's open models that think by default, and only in streams. */
const THINKS_IN_STREAMS = /^qwen3-\d+b/;

/** Turns thinking off for whole answers: "parameter.enable_thinking must be set to false for non-streaming calls" (https://github.com/QuantumNous/new-api/pull/1109). */
export function thinkInStreams(encoding: Encoding, body: JsonObject): void {
  const { request, endpoint } = encoding;
  if (!THINKS_IN_STREAMS.test(endpoint.upstream_model)) return;
  if (request.stream === true || body['enable_thinking'] === false) return;
  body['enable_thinking'] = false;
  delete body['thinking_budget'];
  addReport(encoding, 'changed', 'reasoning', 'thinking disabled: the model reasons only in streams');
}

/** Models whose thinking cannot be turned off. */
const ALWAYS_THINKS = /thinking|kimi-k2\.7|^q[vw]q/;

/** Resolves forced tool calls for upstreams that refuse them while they think ("Thinking mode does not support this tool_choice"). */
export function thinkOrForceTool(encoding: Encoding, body: JsonObject): void {
  const { quirks, endpoint } = encoding;
  const { tool_choice: toolChoice, thinking, enable_thinking: enableThinking } = body;
  if (toolChoice !== 'required' && !isObject(toolChoice)) return;
  const isBySwitch = quirks.reasoning_field === 'enable_thinking';
  const isThinking = isBySwitch ? enableThinking : isObject(thinking) ? thinking['type'] !== 'disabled' : undefined;
  if (isThinking === false) return;
  if (isThinking !== undefined || ALWAYS_THINKS.test(endpoint.upstream_model)) {
    body['tool_choice'] = 'auto';
    addReport(encoding, 'clamped', 'tool_choice', 'reasoning does not allow a forced tool: auto was used');
  } else {
    if (isBySwitch) body['enable_thinking'] = false;
    else body['thinking'] = { type: 'disabled' };
    addReport(encoding, 'changed', 'reasoning', 'thinking disabled: it allows no forced tool');
  }
}

/** Continues the last message, which servers otherwise close (https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html). */
export function continueFinalMessage(body: JsonObject): void {
  const last = Array.isArray(body['messages']) ? body['messages'].at(-1) : undefined;
  if (!isObject(last) || last['role'] !== 'assistant' || last['tool_calls']) return;
  body['continue_final_message'] ??= true;
  body['add_generation_prompt'] ??= false;
}

/** Drops a format that the upstream does not accept with tools. Returns whether a format is left, which requires a whole answer. */
export function keepFormatAlone(encoding: Encoding, body: JsonObject): boolean {
  const format = body['response_format'];
  const type = isObject(format) ? format['type'] : undefined;
  if (type !== 'json_schema' && type !== 'json_object') return false;
  if (type === 'json_schema' && body['tools'] !== undefined) {
    delete body['response_format'];
    addReport(encoding, 'dropped', 'response_format', 'this provider accepts a schema only without tools');
    return false;
  }
  return true;
}
