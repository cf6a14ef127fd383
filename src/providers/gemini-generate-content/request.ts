import type { ChatRequest } from '../../schemas/inner.ts';
import type { DialectEndpoint, EncodedRequest, EncodeOptions, Report } from '../dialect.ts';
import { asText } from '../shared/json-shape.ts';
import { NO_FIELD, reportInto, reportUnread } from '../shared/reports.ts';
import { encodeConversation } from './contents.ts';
import { createToolNames, type Encoding } from './encoding.ts';
import { modelFacts } from './model-facts.ts';
import { planThinking } from './thinking.ts';
import { planTools, type ToolPlan } from './tools.ts';
import type { DecoderState } from './turn.ts';
import type { WireGenerationConfig, WireRequest } from './wire.ts';

/** The fields of a request that this dialect reads. The wire has no field for the others. */
const READ: ReadonlySet<string> = new Set([
  'messages',
  'model',
  'stream',
  'max_tokens',
  'max_completion_tokens',
  'temperature',
  'top_p',
  'top_k',
  'seed',
  'stop',
  'frequency_penalty',
  'presence_penalty',
  'logprobs',
  'top_logprobs',
  'response_format',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning',
  'reasoning_effort',
  'include_reasoning',
  'modalities',
  'audio',
  'image_config',
  'service_tier',
  'metadata',
]);

/** Builds the request of `generateContent` (https://ai.google.dev/api/generate-content) for AI Studio or Vertex AI. */
export function encodeRequest(
  request: ChatRequest,
  endpoint: DialectEndpoint,
  { strip_state: stripState, media }: EncodeOptions,
): EncodedRequest {
  const report: Report[] = [];
  const names = createToolNames();
  const encoding: Encoding = {
    facts: modelFacts(endpoint.upstream_model, endpoint.quirks.google_cloud === true),
    is_cloud: endpoint.quirks.google_cloud === true,
    media,
    names,
    strip_state: stripState,
    addReport: reportInto(report),
  };
  reportUnread(request, READ, encoding.addReport);
  if (hasCacheHints(request)) {
    encoding.addReport('dropped', 'cache_control', 'this upstream caches prompts by itself');
  }

  const conversation = encodeConversation(request.messages, encoding);
  const tools = planTools(request, encoding);
  const generationConfig = configOf(request, endpoint, tools, encoding);
  const body: WireRequest = {
    contents: conversation.contents,
    ...(conversation.system.length > 0 ? { systemInstruction: { parts: conversation.system } } : {}),
    ...(tools.tools.length > 0 ? { tools: tools.tools } : {}),
    ...(tools.toolConfig === undefined ? {} : { toolConfig: tools.toolConfig }),
    ...(Object.keys(generationConfig).length > 0 ? { generationConfig } : {}),
    ...labelsOf(request, encoding),
    ...tierOf(request, encoding),
  };
  const state: Omit<DecoderState, 'generation_id'> = { tool_names: names.renamed(), call_ids: conversation.call_ids };
  if (tools.shim !== undefined) state.shim = tools.shim;
  if (encoding.facts.generation !== undefined) state.generation = encoding.facts.generation;
  const method = request.stream === true ? 'streamGenerateContent?alt=sse' : 'generateContent';
  return {
    method: 'POST',
    path: `/models/${encodeURIComponent(endpoint.upstream_model)}:${method}`,
    headers: {},
    body: { ...body },
    report,
    state: { ...state },
  };
}

function hasCacheHints({ messages, tools }: ChatRequest): boolean {
  return (
    messages.some(
      ({ cache_control: cacheControl, content }) =>
        cacheControl != null ||
        (Array.isArray(content) && content.some((part) => part.type !== 'native' && part.cache_control != null)),
    ) || (tools ?? []).some((tool) => (tool as { cache_control?: unknown }).cache_control != null)
  );
}

function configOf(
  request: ChatRequest,
  endpoint: DialectEndpoint,
  tools: ToolPlan,
  encoding: Encoding,
): WireGenerationConfig {
  const config: WireGenerationConfig = {
    ...sampling(request, encoding),
    ...tools.format,
    ...outputOf(request, encoding),
  };
  const requested = request.max_completion_tokens ?? request.max_tokens ?? undefined;
  const endpointMax = endpoint.max_completion_tokens;
  if (requested !== undefined)
    config.maxOutputTokens = endpointMax === undefined ? requested : Math.min(requested, endpointMax);
  if (endpointMax !== undefined && requested !== undefined && requested > endpointMax) {
    encoding.addReport('clamped', 'max_tokens', `the endpoint returns at most ${endpointMax} tokens`);
  }
  const thinkingConfig = planThinking(request, requested, encoding);
  if (thinkingConfig !== undefined) config.thinkingConfig = thinkingConfig;
  return config;
}

const STOP_SEQUENCES_MAX = 5;
const LOGPROBS_MAX = 20;
const SEED_MAX = 2 ** 31 - 1;

function sampling(request: ChatRequest, { facts, addReport }: Encoding): WireGenerationConfig {
  const config: WireGenerationConfig = {};
  if (request.temperature != null) config.temperature = request.temperature;
  if (request.top_p != null) config.topP = request.top_p;
  if (request.top_k != null) {
    config.topK = Math.floor(request.top_k);
    if (config.topK !== request.top_k) addReport('changed', 'top_k', 'whole numbers only');
  }
  if (request.seed != null) {
    config.seed = Math.abs(Math.trunc(request.seed)) % (SEED_MAX + 1);
    if (config.seed !== request.seed) addReport('changed', 'seed', 'whole numbers of 31 bits only');
  }
  for (const [field, name] of [
    ['presence_penalty', 'presencePenalty'],
    ['frequency_penalty', 'frequencyPenalty'],
  ] as const) {
    const value = request[field];
    if (value == null || value === 0) continue;
    if (facts.has_penalties) config[name] = value;
    else addReport('dropped', field, 'the model has no penalties');
  }
  const stop = (typeof request.stop === 'string' ? [request.stop] : (request.stop ?? [])).filter((one) => one !== '');
  if (stop.length > 0) config.stopSequences = stop.slice(0, STOP_SEQUENCES_MAX);
  if (stop.length > STOP_SEQUENCES_MAX) addReport('clamped', 'stop', `at most ${STOP_SEQUENCES_MAX} sequences`);
  if (request.logprobs === true && !facts.has_logprobs)
    addReport('dropped', 'logprobs', 'the model reports no logprobs');
  else if (request.logprobs === true) {
    config.responseLogprobs = true;
    if (request.top_logprobs) config.logprobs = Math.min(request.top_logprobs, LOGPROBS_MAX);
  }
  return config;
}

/** The requested output other than text (https://ai.google.dev/gemini-api/docs/image-generation, /docs/speech-generation). */
function outputOf(request: ChatRequest, { addReport }: Encoding): WireGenerationConfig {
  const config: WireGenerationConfig = {};
  const modalities = (request.modalities ?? []).map((modality) => modality.toUpperCase());
  if (modalities.some((modality) => modality !== 'TEXT')) config.responseModalities = modalities;
  const { voice, format } = request.audio ?? {};
  if (typeof voice === 'string') {
    config.speechConfig = { voiceConfig: { prebuiltVoiceConfig: { voiceName: voice } } };
  }
  if (format != null && format !== 'pcm16')
    addReport('dropped', 'audio.format', 'this upstream returns raw audio only');
  const { aspect_ratio: aspectRatio, image_size: imageSize, ...others } = request.image_config ?? {};
  const imageConfig = {
    ...(asText(aspectRatio) === '' ? {} : { aspectRatio: asText(aspectRatio) }),
    ...(asText(imageSize) === '' ? {} : { imageSize: asText(imageSize) }),
  };
  if (Object.keys(imageConfig).length > 0) config.imageConfig = imageConfig;
  for (const name in others) addReport('dropped', `image_config.${name}`, NO_FIELD);
  return config;
}

/** https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference, `labels` */
const LABEL = /^[\p{Ll}\p{Lo}\p{N}_-]{0,63}$/u;
const LABEL_KEY = /^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}$/u;

function labelsOf({ metadata }: ChatRequest, { is_cloud: isCloud, addReport }: Encoding): Pick<WireRequest, 'labels'> {
  if (metadata == null) return {};
  if (!isCloud) {
    addReport('dropped', 'metadata', NO_FIELD);
    return {};
  }
  const labels: Record<string, string> = {};
  for (const [key, value] of Object.entries(metadata)) {
    if (LABEL_KEY.test(key) && LABEL.test(value)) labels[key] = value;
    else addReport('dropped', `metadata.${key}`, 'labels are lower-case letters, digits, _ and -');
  }
  return Object.keys(labels).length === 0 ? {} : { labels };
}

/** The service tier (https://ai.google.dev/api/generate-content, `serviceTier`); on Vertex AI the contract determines it. */
function tierOf(
  { service_tier: serviceTier }: ChatRequest,
  { is_cloud: isCloud, addReport }: Encoding,
): Pick<WireRequest, 'serviceTier'> {
  switch (isCloud ? undefined : serviceTier) {
    case 'flex':
      return { serviceTier: 'flex' };
    case 'priority':
      return { serviceTier: 'priority' };
    case 'default':
    case 'standard':
      return { serviceTier: 'standard' };
    default:
      if (serviceTier != null && serviceTier !== 'auto') {
        addReport('dropped', 'service_tier', `this upstream has no tier ${serviceTier}`);
      }
      return {};
  }
}
