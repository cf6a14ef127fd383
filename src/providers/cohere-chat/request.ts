import { GatewayError } from '../../errors.ts';
import type { ChatRequest, ResponseFormat } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { DialectEndpoint, EncodedRequest, EncodeOptions } from '../dialect.ts';
import { asObject } from '../shared/json-shape.ts';
import { reportUnread } from '../shared/reports.ts';
import { createEncoding, type Encoding } from './encoding.ts';
import { encodeConversation } from './messages.ts';
import { planThinking, thinkingSetting } from './thinking.ts';
import { planTools } from './tools.ts';
import type { WireRequest } from './wire.ts';

/** The fields of a request that this dialect reads. The wire has no field for the others. */
const READ: ReadonlySet<string> = new Set([
  'messages',
  'model',
  'stream',
  'stream_options',
  'max_tokens',
  'max_completion_tokens',
  'temperature',
  'top_p',
  'top_k',
  'frequency_penalty',
  'presence_penalty',
  'seed',
  'stop',
  'logprobs',
  'response_format',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning',
  'reasoning_effort',
  'include_reasoning',
  'modalities',
]);

/** Builds the request of `POST /v2/chat` (https://docs.cohere.com/reference/chat). */
export function encodeRequest(
  request: ChatRequest,
  endpoint: DialectEndpoint,
  { strip_state: stripState }: EncodeOptions,
): EncodedRequest {
  const isThinking = endpoint.quirks.replay_reasoning === 'thinking_part' && thinkingSetting(request) !== 'off';
  const encoding = createEncoding(endpoint, isThinking && !stripState);
  reportUnread(request, READ, encoding.addReport);
  if (request.modalities?.some((modality) => modality !== 'text')) {
    throw new GatewayError(400, 'modalities: this model answers in text only.');
  }
  const conversation = encodeConversation(request.messages, encoding);
  const isJson = request.response_format?.type === 'json_object' || request.response_format?.type === 'json_schema';
  const planned = planTools(request, encoding);
  // The wire accepts a format or tools; tools that may not be called can be omitted.
  const tools = isJson && planned.tool_choice === 'NONE' ? {} : planned;
  const maxTokens = request.max_completion_tokens ?? request.max_tokens ?? undefined;
  const body: WireRequest = {
    model: endpoint.upstream_model,
    messages: conversation.messages,
    stream: request.stream === true,
    ...tools,
    ...(isJson ? responseFormat(request.response_format!, tools.tools !== undefined, encoding) : {}),
    ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }),
    ...stopSequences(request, encoding),
    ...sampling(request, encoding),
    ...(request.logprobs === true ? { logprobs: true } : {}),
    ...planThinking(request, maxTokens ?? endpoint.max_completion_tokens, encoding),
  };
  const state: EncodedRequest['state'] = {};
  if (Object.keys(encoding.renamed).length > 0) state['tool_names'] = encoding.renamed;
  if (conversation.call_ids.length > 0) state['call_ids'] = conversation.call_ids;
  return {
    method: 'POST',
    path: '/chat',
    // Without it the events of a stream are bare lines.
    headers: { accept: request.stream === true ? 'text/event-stream' : 'application/json' },
    body,
    report: encoding.report,
    state,
  };
}

function responseFormat(
  format: ResponseFormat,
  hasTools: boolean,
  encoding: Encoding,
): Pick<WireRequest, 'response_format'> {
  if (hasTools) {
    encoding.addReport('dropped', 'response_format', 'this provider accepts it only without tools');
    return {};
  }
  const schema = asObject(asObject((format as JsonObject)['json_schema'])?.['schema']);
  return { response_format: { type: 'json_object', ...(schema === undefined ? {} : { json_schema: schema }) } };
}

const STOP_SEQUENCES_MAX = 5;

function stopSequences({ stop }: ChatRequest, encoding: Encoding): Pick<WireRequest, 'stop_sequences'> {
  const sequences = (typeof stop === 'string' ? [stop] : (stop ?? [])).filter((sequence) => sequence !== '');
  if (sequences.length > STOP_SEQUENCES_MAX)
    encoding.addReport('clamped', 'stop', `at most ${STOP_SEQUENCES_MAX} sequences`);
  return sequences.length === 0 ? {} : { stop_sequences: sequences.slice(0, STOP_SEQUENCES_MAX) };
}

type Sampling = Pick<WireRequest, 'temperature' | 'p' | 'k' | 'frequency_penalty' | 'presence_penalty' | 'seed'>;

/** Ranges from the reference; for temperature: "must be between 0 and 1.0 inclusive" (https://docs.cohere.com/reference/errors). */
const RANGES = [
  ['temperature', 'temperature', 0, 1],
  ['top_p', 'p', 0.01, 0.99],
  ['top_k', 'k', 0, 500],
  ['frequency_penalty', 'frequency_penalty', 0, 1],
  ['presence_penalty', 'presence_penalty', 0, 1],
] as const;

function sampling(request: ChatRequest, encoding: Encoding): Sampling {
  const sent: Sampling = {};
  for (const [field, name, min, max] of RANGES) {
    const value = request[field];
    if (value == null) continue;
    const whole = name === 'k' ? Math.floor(value) : value;
    sent[name] = Math.min(Math.max(whole, min), max);
    if (sent[name] !== value) encoding.addReport('clamped', field, `${sent[name]}: from ${min} to ${max}`);
  }
  // "cannot specify both frequency_penalty and presence_penalty" (https://docs.cohere.com/reference/errors); zero means none.
  if (sent.frequency_penalty === 0) delete sent.frequency_penalty;
  if (sent.presence_penalty === 0) delete sent.presence_penalty;
  if (sent.frequency_penalty !== undefined && sent.presence_penalty !== undefined) {
    delete sent.presence_penalty;
    encoding.addReport('dropped', 'presence_penalty', 'the upstream accepts one of the two penalties');
  }
  const { seed } = request;
  if (seed != null && Number.isInteger(seed) && seed >= 0) sent.seed = seed;
  else if (seed != null) encoding.addReport('dropped', 'seed', 'whole numbers from 0 only');
  return sent;
}
