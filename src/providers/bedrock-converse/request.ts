import { GatewayError } from '../../errors.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { anthropicModelQuirks } from '../anthropic-messages/model-quirks.ts';
import { createToolNames } from '../anthropic-messages/names.ts';
import { sampling, stopSequences } from '../anthropic-messages/request.ts';
import type { DialectEndpoint, EncodedRequest, EncodeOptions, Report } from '../dialect.ts';
import type { Quirks } from '../quirks.ts';
import { reportInto, reportUnread } from '../shared/reports.ts';
import { hashUser } from '../shared/user-hash.ts';
import { cachePoint, limitCachePoints } from './caching.ts';
import type { Encoding } from './encoding.ts';
import { type Family, familyOf } from './family.ts';
import { checkPrefill, encodeConversation, hintLast, lacksThinking } from './messages.ts';
import { planReasoning, type ReasoningPlan } from './reasoning.ts';
import { planTools } from './tools.ts';
import type { DecoderState } from './turn.ts';
import type { WireRequest, WireTextFormat } from './wire.ts';

/** Pairs of request metadata (Amazon Bedrock, `Converse`). */
const REQUEST_METADATA_MAX = 16;
/** One side of a pair of request metadata (Amazon Bedrock, `Converse`). */
const REQUEST_METADATA_CHARS_MAX = 256;

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
  'stop',
  'response_format',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning',
  'reasoning_effort',
  'include_reasoning',
  'verbosity',
  'modalities',
  'service_tier',
  'user',
  'safety_identifier',
  'metadata',
  'cache_control',
]);

/** Builds the request of Converse or ConverseStream. */
export function encodeRequest(
  request: ChatRequest,
  endpoint: DialectEndpoint,
  { media, strip_state: stripState }: EncodeOptions,
): EncodedRequest {
  const report: Report[] = [];
  const family = familyOf(endpoint);
  const names = createToolNames();
  const encoding: Encoding = {
    family,
    upstream_model: endpoint.upstream_model,
    quirks: { ...quirksOf(endpoint, family), ...endpoint.quirks },
    names,
    strip_state: stripState,
    media,
    input_modalities: endpoint.input_modalities,
    documents: new Set(),
    addReport: reportInto(report),
  };
  reportUnread(request, READ, encoding.addReport);
  if (request.modalities?.some((modality) => modality !== 'text')) {
    throw new GatewayError(400, 'modalities: this model answers in text only.');
  }

  const conversation = encodeConversation(request.messages, encoding);
  hintLast(conversation.messages, cachePoint(request.cache_control, 'messages', encoding), encoding);
  const plan = planReasoning(
    request,
    outputBound(request, endpoint, encoding),
    endpoint.max_completion_tokens,
    encoding,
  );
  if (plan.isManual && lacksThinking(conversation.messages)) {
    delete plan.fields['thinking'];
    Object.assign(plan, { isManual: false, isThinking: false });
    encoding.addReport('changed', 'reasoning', 'thinking disabled: signatures missing');
  }
  const tools = planTools(request, conversation.called, plan.isManual, encoding);
  checkPrefill(conversation.messages, { isThinking: plan.isThinking, refused: encoding.quirks.no_prefill === true });
  const system = tools.hint === undefined ? conversation.system : [...conversation.system, { text: tools.hint }];
  const { inferenceConfig, fields } = inference(request, plan, encoding);

  const body: WireRequest = {
    messages: conversation.messages,
    ...(system.length > 0 ? { system } : {}),
    ...(isEmpty(inferenceConfig) ? {} : { inferenceConfig }),
    ...(tools.toolConfig === undefined ? {} : { toolConfig: tools.toolConfig }),
    ...(isEmpty(fields) ? {} : { additionalModelRequestFields: fields }),
    ...outputConfig(plan, tools.textFormat),
    ...serviceTier(request, encoding),
    ...requestMetadata(request, encoding),
  };
  limitCachePoints(body, encoding);

  const state: Omit<DecoderState, 'generation_id'> = {
    is_claude: family === 'claude',
    tool_names: names.renamed(),
    call_ids: conversation.call_ids,
  };
  if (tools.shim !== undefined) state.shim = tools.shim;
  const isStream = request.stream === true;
  return {
    method: 'POST',
    path: `/model/${encodeId(endpoint.upstream_model)}/${isStream ? 'converse-stream' : 'converse'}`,
    headers: isStream ? { accept: 'application/vnd.amazon.eventstream' } : {},
    body: { ...body },
    report,
    state: { ...state },
  };
}

/** The quirks of a Claude follow from its generation, which one of its names shows. */
function quirksOf({ upstream_model: upstreamModel, model }: DialectEndpoint, family: Family): Quirks {
  return family === 'claude' ? anthropicModelQuirks(/claude/.test(upstreamModel) ? upstreamModel : model) : {};
}

/** One path segment: colons and the slashes of ARNs are escaped (RFC 3986), as the signature requires. */
function encodeId(id: string): string {
  return encodeURIComponent(id).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

function isEmpty(object: object): boolean {
  return Object.keys(object).length === 0;
}

/** The output bound; without one the service uses the model's own. */
function outputBound(request: ChatRequest, endpoint: DialectEndpoint, encoding: Encoding): number | undefined {
  const endpointMax = endpoint.max_completion_tokens;
  const requested = request.max_completion_tokens ?? request.max_tokens ?? undefined;
  if (requested === undefined || endpointMax === undefined || requested <= endpointMax) return requested;
  const field = request.max_completion_tokens == null ? 'max_tokens' : 'max_completion_tokens';
  encoding.addReport('clamped', field, `the endpoint returns at most ${endpointMax} tokens`);
  return endpointMax;
}

/** The wire's own parameters, and model parameters that are sent separately under the models' own names. */
function inference(
  request: ChatRequest,
  plan: ReasoningPlan,
  encoding: Encoding,
): { inferenceConfig: NonNullable<WireRequest['inferenceConfig']>; fields: JsonObject } {
  const { temperature, top_p: topP, top_k: topK } = sampling(request, plan.isThinking, encoding);
  const { stop_sequences: stopList } = stopSequences(request, encoding);
  const inferenceConfig = {
    ...(plan.max_tokens === undefined ? {} : { maxTokens: plan.max_tokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(stopList === undefined ? {} : { stopSequences: stopList }),
  };
  const fields = { ...plan.fields };
  if (topK !== undefined) {
    switch (encoding.family) {
      case 'claude':
      case 'mistral':
        fields['top_k'] = topK;
        break;
      case 'nova':
      case 'nova-2':
        // https://docs.aws.amazon.com/nova/latest/userguide/using-converse-api.html
        fields['inferenceConfig'] = { topK };
        break;
      default:
        encoding.addReport('dropped', 'top_k', 'this model has no such parameter');
    }
  }
  return { inferenceConfig, fields };
}

function outputConfig(
  { effort }: ReasoningPlan,
  textFormat: WireTextFormat | undefined,
): Pick<WireRequest, 'outputConfig'> {
  if (effort === undefined && textFormat === undefined) return {};
  return {
    outputConfig: {
      ...(textFormat === undefined ? {} : { textFormat }),
      ...(effort === undefined ? {} : { effort }),
    },
  };
}

const TIERS: ReadonlySet<string> = new Set(['default', 'priority', 'flex', 'reserved']);

function serviceTier({ service_tier: tier }: ChatRequest, encoding: Encoding): Pick<WireRequest, 'serviceTier'> {
  if (tier == null || tier === 'auto') return {};
  if (TIERS.has(tier)) return { serviceTier: { type: tier } };
  encoding.addReport('dropped', 'service_tier', `this upstream has no tier ${tier}`);
  return {};
}

/** Metadata for the service's log of invocations: the client's own pairs and the end user's hash. */
function requestMetadata(request: ChatRequest, encoding: Encoding): Pick<WireRequest, 'requestMetadata'> {
  const metadata: Record<string, string> = {};
  let isChanged = false;
  const toAllowedText = (text: string): string => {
    const fitted = text.replace(/[^A-Za-z0-9\s:_@$#=/+,.-]/g, '_').slice(0, REQUEST_METADATA_CHARS_MAX);
    isChanged ||= fitted !== text;
    return fitted;
  };
  const user = request.user || request['safety_identifier'];
  if (typeof user === 'string' && user !== '') metadata['user'] = hashUser(user);
  for (const [name, value] of Object.entries(request.metadata ?? {})) {
    if (Object.keys(metadata).length === REQUEST_METADATA_MAX) isChanged = true;
    else if (name !== '') metadata[toAllowedText(name)] = toAllowedText(String(value));
  }
  if (isChanged) encoding.addReport('changed', 'metadata', 'this upstream accepts fewer pairs or characters');
  return isEmpty(metadata) ? {} : { requestMetadata: metadata };
}
