import { hash } from 'node:crypto';
import type { AttemptRecord, GenerationRecord } from '../../ledger/records.ts';
import { limits } from '../../limits.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { answerLevels, structureBreach } from '../../schemas/json-structure.ts';
import type { LoggedContent } from '../../schemas/logged-content.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import { toUsd } from '../../schemas/money.ts';
import { inputTokens, outputTokens } from '../../schemas/usage.ts';
import type { AttributeValue, Span } from '../../telemetry/otlp.ts';
import type { Call } from '../call.ts';
import { Copier } from './content-copy.ts';
import type { EndedCall } from './request-log.ts';

/** Characters of one call's messages, and of its answer, in a broadcast. */
const BROADCAST_CONTENT_CHARS_MAX = 64 * 1024;
/** Fields of `trace` and `metadata` in a span. */
const BROADCAST_FIELDS_MAX = 32;

/**
 * A call as spans by OpenTelemetry's semantic conventions for generative AI (docs/gen-ai/gen-ai-spans.md; in development), with
 * `gateway.*` for other attributes. Only the call's span has tokens and money, so that they are not counted twice.
 */

type Attributes = Record<string, AttributeValue | undefined>;

const HEX_TRACE = /^(?!0{32})[0-9a-f]{32}$/;
const HEX_SPAN = /^(?!0{16})[0-9a-f]{16}$/;

/** The conventions' names of providers (`gen_ai.provider.name`), if they differ from ours. */
const PROVIDER_NAMES: Readonly<Record<string, string>> = lookupTable({
  OpenAI: 'openai',
  Anthropic: 'anthropic',
  'Amazon Bedrock': 'aws.bedrock',
  Azure: 'azure.ai.openai',
  Cohere: 'cohere',
  DeepSeek: 'deepseek',
  Google: 'gcp.vertex_ai',
  'Google AI Studio': 'gcp.gemini',
  Groq: 'groq',
  Mistral: 'mistral_ai',
  Perplexity: 'perplexity',
  xAI: 'x_ai',
});

/** The conventions' names of operations that are not chat. */
const OPERATIONS: Readonly<Record<string, string>> = lookupTable({ embeddings: 'embeddings', stt: 'transcription' });

function operationOf({ api_type }: Pick<GenerationRecord, 'api_type'>): string {
  return OPERATIONS[api_type] ?? 'chat';
}

function providerName(name: string | null): string {
  return PROVIDER_NAMES[name ?? ''] ?? (name ?? 'unknown').toLowerCase();
}

/** An id in the form of the trace context: ids in another form are hashed. */
function idOf(id: unknown, form: RegExp, chars: number): string | undefined {
  if (typeof id !== 'string' || id === '') return undefined;
  const plain = id.toLowerCase().replaceAll('-', '');
  return form.test(plain) ? plain : hash('sha256', id).slice(0, chars);
}

function spanId(generationId: string, at: number): string {
  return hash('sha256', `${generationId} ${at}`).slice(0, 16);
}

/** The place of the call in a trace: by its body, otherwise by its header; otherwise it starts a trace. */
function placeOf({
  request,
  attribution,
  generation_id,
}: Call): Pick<Span, 'trace_id' | 'parent_span_id' | 'trace_state'> {
  const trace = traceOf(request);
  const [, headerTrace, headerSpan] = attribution.traceparent?.split('-') ?? [];
  const bodyTrace = idOf(trace['trace_id'], HEX_TRACE, 32);
  const isHeaders =
    headerTrace !== undefined && HEX_TRACE.test(headerTrace) && (bodyTrace ?? headerTrace) === headerTrace;
  return {
    trace_id: bodyTrace ?? (isHeaders ? headerTrace : hash('sha256', generation_id).slice(0, 32)),
    parent_span_id: idOf(trace['parent_span_id'], HEX_SPAN, 16) ?? (isHeaders ? headerSpan : undefined),
    trace_state: isHeaders ? attribution.tracestate : undefined,
  };
}

function traceOf(request: Call['request']): JsonObject {
  const { trace } = request as { trace?: unknown };
  return typeof trace === 'object' && trace !== null && !Array.isArray(trace) ? (trace as JsonObject) : {};
}

/** The start of a value as text. */
function boundedText(value: JsonValue): string {
  if (typeof value === 'string') return value;
  const { broadcast_field_chars_max } = limits;
  return JSON.stringify(new Copier(broadcast_field_chars_max).value(value, 0) ?? null);
}

/** The client's own fields, one attribute each. */
function fieldsOf(prefix: string, fields: Readonly<Record<string, JsonValue | undefined>>): Attributes {
  const attributes: Attributes = {};
  for (const name of Object.keys(fields).slice(0, BROADCAST_FIELDS_MAX)) {
    const value = fields[name];
    if (value === undefined || value === null) continue;
    const key = `${prefix}.${name.slice(0, limits.broadcast_field_chars_max)}`;
    attributes[key] = boundedText(value).slice(0, limits.broadcast_field_chars_max);
  }
  return attributes;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? '');
}

function argumentsOf(text: string): JsonValue {
  if (structureBreach(text, answerLevels) !== undefined) return text;
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}

/** The parts of a message in the form of the conventions (docs/gen-ai/gen-ai-input-messages.json). */
function partsOf(message: LoggedContent['request']['messages'][number]): JsonObject[] {
  const { role, content, reasoning, tool_call_id } = message;
  const toolCalls = Array.isArray(message.tool_calls) ? message.tool_calls : [];
  if (role === 'tool') return [{ type: 'tool_call_response', id: tool_call_id ?? null, response: textOf(content) }];
  const parts: JsonObject[] = [];
  if (reasoning) parts.push({ type: 'reasoning', content: reasoning });
  if (typeof content === 'string') parts.push({ type: 'text', content });
  else {
    for (const part of Array.isArray(content) ? content : []) {
      if (part.type === 'text') parts.push({ type: 'text', content: part.text });
      else parts.push(part as unknown as JsonObject);
    }
  }
  for (const call of toolCalls) {
    const { name, arguments: text } = call?.function ?? { name: '', arguments: '' };
    parts.push({ type: 'tool_call', id: call.id ?? null, name, arguments: argumentsOf(text) });
  }
  return parts;
}

/** The last messages that fit, as JSON. The conventions have a separate attribute for instructions. */
function contentAttributes({ request, output, truncated }: LoggedContent): Attributes {
  let left = BROADCAST_CONTENT_CHARS_MAX;
  let isCut = truncated === true;
  const inputs: string[] = [];
  const instructions: JsonObject[] = [];
  for (const message of [...request.messages].reverse()) {
    const parts = partsOf(message);
    if (message.role === 'system' || message.role === 'developer') {
      instructions.unshift(...parts);
      continue;
    }
    const json = JSON.stringify({ role: message.role, parts });
    left -= json.length;
    if (left < 0) {
      isCut = true;
      break;
    }
    inputs.push(json);
  }
  const { completion, reasoning, tool_calls = [], refusal, finish_reason } = output;
  const answer = { role: 'assistant' as const, content: completion ?? refusal ?? null, reasoning, tool_calls };
  const outputJson = JSON.stringify([
    { role: 'assistant', parts: partsOf(answer), finish_reason: finish_reason ?? null },
  ]);
  const hasOutput = outputJson.length <= BROADCAST_CONTENT_CHARS_MAX;
  const instructionsJson = JSON.stringify(instructions);
  const hasInstructions = instructions.length > 0 && instructionsJson.length <= BROADCAST_CONTENT_CHARS_MAX;
  return {
    'gen_ai.input.messages': `[${inputs.reverse().join(',')}]`,
    ...(hasInstructions ? { 'gen_ai.system_instructions': instructionsJson } : {}),
    ...(hasOutput ? { 'gen_ai.output.messages': outputJson } : {}),
    'gateway.content.truncated': isCut || !hasOutput || (instructions.length > 0 && !hasInstructions) || undefined,
  };
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

/** Fields of a request whose attributes have their names. */
const SAMPLING = ['temperature', 'top_p', 'top_k', 'frequency_penalty', 'presence_penalty', 'seed'] as const;

function requestAttributes({ request }: Call): Attributes {
  const { stop, response_format } = request;
  return {
    ...Object.fromEntries(SAMPLING.map((name) => [`gen_ai.request.${name}`, numberOf(request[name])])),
    'gen_ai.request.max_tokens': numberOf(request.max_completion_tokens ?? request.max_tokens),
    'gen_ai.request.stop_sequences': typeof stop === 'string' ? [stop] : (stop ?? undefined),
    'gen_ai.request.stream': request.stream === true || undefined,
    'gen_ai.output.type': response_format?.type.startsWith('json') === true ? 'json' : undefined,
  };
}

function usageAttributes({ usage, cost_nano, byok_cost_nano, attempts, latency }: GenerationRecord): Attributes {
  const cacheWrite = (usage?.in_cache_write_5m ?? 0) + (usage?.in_cache_write_1h ?? 0);
  return {
    'gen_ai.usage.input_tokens': usage === null ? undefined : inputTokens(usage),
    'gen_ai.usage.output_tokens': usage === null ? undefined : outputTokens(usage),
    'gen_ai.usage.cache_read.input_tokens': usage?.in_cache_read,
    'gen_ai.usage.cache_creation.input_tokens': cacheWrite || undefined,
    'gen_ai.usage.reasoning.output_tokens': usage?.out_reasoning,
    'gen_ai.usage.cost': attempts.some(({ is_unpriced }) => is_unpriced) ? undefined : toUsd(cost_nano),
    'gateway.usage.byok_cost': byok_cost_nano ? toUsd(byok_cost_nano) : undefined,
    'gateway.usage.estimated': usage?.estimated,
    'gen_ai.response.time_to_first_chunk': latency === null ? undefined : latency / 1000,
  };
}

function callAttributes({ call, record }: EndedCall): Attributes {
  const { principal, request, stages } = call;
  return {
    'gen_ai.operation.name': operationOf(record),
    'gen_ai.provider.name': providerName(record.provider_name),
    'gen_ai.request.model': record.requested_model ?? record.model,
    'gen_ai.response.model': record.model,
    'gen_ai.response.id': record.id,
    'gen_ai.response.finish_reasons': record.finish_reason === null ? undefined : [record.finish_reason],
    'gen_ai.conversation.id': record.session_id ?? undefined,
    'session.id': record.session_id ?? undefined,
    'user.id': record.external_user ?? undefined,
    'error.type': record.outcome === 'failed' ? errorType(record) : undefined,
    ...requestAttributes(call),
    ...usageAttributes(record),
    'gateway.api': record.api_type,
    'gateway.outcome': record.outcome,
    'gateway.request_id': record.request_id,
    'gateway.provider': record.provider_name ?? undefined,
    'gateway.endpoint_id': record.endpoint_id ?? undefined,
    'gateway.native_finish_reason': record.native_finish_reason ?? undefined,
    'gateway.is_byok': record.is_byok,
    'gateway.service_tier': record.service_tier ?? undefined,
    'gateway.attempts': record.attempts.length,
    'gateway.generation_ms': record.generation_time ?? undefined,
    'gateway.workspace.id': record.workspace_id,
    'gateway.workspace.slug': principal.logging?.workspace_slug,
    'gateway.organization.id': record.organization_id,
    'gateway.api_key.name': principal.key_name,
    'gateway.api_key.hash': record.key_hash || undefined,
    'gateway.app.title': record.title ?? undefined,
    'gateway.app.referer': record.http_referer ?? undefined,
    'gateway.routing.strategy': record.routing?.strategy,
    'gateway.pipeline': stages.length === 0 ? undefined : stages.map(({ type, name }) => `${type}:${name}`),
    ...fieldsOf('gateway.trace', traceOf(request)),
  };
}

function errorType({ attempts }: GenerationRecord): string {
  const last = attempts.at(-1);
  return last?.failure ?? String(last?.status ?? '_OTHER');
}

function attemptAttributes(attempt: AttemptRecord, at: number): Attributes {
  const { status, failure, cost_nano, tokens, is_unpriced } = attempt;
  return {
    'gen_ai.provider.name': providerName(attempt.provider_name),
    'gen_ai.response.id': attempt.upstream_id ?? undefined,
    'http.response.status_code': status ?? undefined,
    'error.type': failure ?? undefined,
    'gateway.attempt.number': at + 1,
    'gateway.attempt.endpoint_id': attempt.endpoint_id,
    'gateway.attempt.model': attempt.model_permaslug,
    'gateway.attempt.provider': attempt.provider_name,
    'gateway.attempt.wait_ms': attempt.wait,
    'gateway.attempt.latency_ms': attempt.latency ?? undefined,
    'gateway.attempt.input_tokens': tokens?.[0],
    'gateway.attempt.output_tokens': tokens?.[1],
    'gateway.attempt.cost': is_unpriced ? undefined : toUsd(cost_nano),
    'gateway.attempt.is_byok': attempt.is_byok,
    'gateway.attempt.continues': attempt.continues,
    'gateway.attempt.hedges': attempt.hedges,
  };
}

/** A call's span without any text of a client or a provider. */
export function bareSpan({ call, record, duration_ms }: EndedCall): Span {
  return {
    trace_id: hash('sha256', record.id).slice(0, 32),
    span_id: spanId(record.id, 0),
    name: operationOf(record),
    start_ms: call.accepted_ms,
    end_ms: call.accepted_ms + duration_ms,
    attributes: {
      'gen_ai.operation.name': operationOf(record),
      'gen_ai.response.model': record.model,
      'gen_ai.response.id': record.id,
      'gateway.request_id': record.request_id,
      'gateway.outcome': record.outcome,
      'gateway.workspace.id': record.workspace_id,
      'gateway.organization.id': record.organization_id,
      'gateway.api_key.hash': record.key_hash || undefined,
      'gateway.incomplete': true,
    },
    failure: record.outcome === 'failed' ? errorType(record) : undefined,
  };
}

/**
 * The spans of a call: its own, and a child for each attempt, in sequence by their durations. `content`: includes the request and the
 * answer. The ids of a call are always the same.
 */
export function generationSpans(ended: EndedCall, { content }: { content: boolean }): Span[] {
  const { call, record, duration_ms } = ended;
  const place = placeOf(call);
  const rootSpanId = spanId(record.id, 0);
  const startMs = call.accepted_ms;
  const endMs = startMs + duration_ms;
  const trace = traceOf(call.request);
  const name = [trace['generation_name'], trace['span_name']].find((text) => typeof text === 'string' && text !== '');
  const operation = operationOf(record);
  const logged = content ? ended.content : undefined;
  const spans: Span[] = [
    {
      ...place,
      span_id: rootSpanId,
      name: String(name ?? `${operation} ${record.requested_model ?? record.model}`).slice(
        0,
        limits.broadcast_field_chars_max,
      ),
      start_ms: startMs,
      end_ms: endMs,
      attributes: {
        ...callAttributes(ended),
        ...(logged && { ...contentAttributes(logged), ...fieldsOf('gateway.metadata', call.request.metadata ?? {}) }),
      },
      failure: record.outcome === 'failed' ? errorType(record) : undefined,
    },
  ];
  let atMs = startMs;
  for (const [at, attempt] of record.attempts.entries()) {
    const begunMs = Math.min(endMs, atMs + (attempt.wait ?? 0));
    const isLast = at === record.attempts.length - 1 && attempt.failure === null;
    atMs = isLast ? endMs : Math.min(endMs, begunMs + (attempt.latency ?? 0));
    spans.push({
      trace_id: place.trace_id,
      trace_state: place.trace_state,
      span_id: spanId(record.id, at + 1),
      parent_span_id: rootSpanId,
      name: `attempt ${attempt.provider_name}`,
      start_ms: begunMs,
      end_ms: atMs,
      attributes: attemptAttributes(attempt, at),
      failure: attempt.failure ?? undefined,
    });
  }
  return spans;
}
