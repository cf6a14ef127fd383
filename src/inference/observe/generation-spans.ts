import { hash } from 'node:crypto';
import type { AttemptRecord, GenerationRecord } from '../../ledger/records.ts';
import { limits } from '../../limits.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { answerLevels, structureBreach } from '../../schemas/json-structure.ts';
import type { LoggedContent } from '../../schemas/logged-content.ts';
import { toUsd } from '../../schemas/money.ts';
import { inputTokens, outputTokens } from '../../schemas/usage.ts';
import type { AttributeValue, Span } from '../../telemetry/otlp.ts';
import type { Call } from '../call.ts';
import { Copier } from './content-copy.ts';
import type { EndedCall } from './request-log.ts';

/**
 * A call as spans: OpenTelemetry's semantic conventions for generative AI (docs/gen-ai/gen-ai-spans.md; in development),
 * and `gateway.*` for what they have no name for. What is told of tokens and money stands on the call's span alone, so that
 * nobody counts it twice.
 */

type Attributes = Record<string, AttributeValue | undefined>;

const HEX_TRACE = /^(?!0{32})[0-9a-f]{32}$/;
const HEX_SPAN = /^(?!0{16})[0-9a-f]{16}$/;

/** Names of the conventions for providers that go by another one here (`gen_ai.provider.name`). */
const PROVIDER_NAMES: Readonly<Record<string, string>> = {
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
};

/** The names of operations that are not chat; every client API of chat is one operation. */
const OPERATIONS: Readonly<Record<string, string>> = { embeddings: 'embeddings', stt: 'transcription' };

function operationOf({ api_type }: Pick<GenerationRecord, 'api_type'>): string {
  return OPERATIONS[api_type] ?? 'chat';
}

function providerName(name: string | null): string {
  return PROVIDER_NAMES[name ?? ''] ?? (name ?? 'unknown').toLowerCase();
}

/** An id that is not in the form of the trace context becomes one that is, always the same. */
function idOf(given: unknown, form: RegExp, chars: number): string | undefined {
  if (typeof given !== 'string' || given === '') return undefined;
  const plain = given.toLowerCase().replaceAll('-', '');
  return form.test(plain) ? plain : hash('sha256', given).slice(0, chars);
}

function spanId(generation_id: string, at: number): string {
  return hash('sha256', `${generation_id} ${at}`).slice(0, 16);
}

/** Where the call stands in a trace of its caller's: what its body says, else its header; else it begins one. */
function placeOf({
  request,
  attribution,
  generation_id,
}: Call): Pick<Span, 'trace_id' | 'parent_span_id' | 'trace_state'> {
  const trace = traceOf(request);
  const [, caller_trace, caller_span] = attribution.traceparent?.split('-') ?? [];
  const named = idOf(trace['trace_id'], HEX_TRACE, 32);
  const is_callers =
    caller_trace !== undefined && HEX_TRACE.test(caller_trace) && (named ?? caller_trace) === caller_trace;
  return {
    trace_id: named ?? (is_callers ? caller_trace : hash('sha256', generation_id).slice(0, 32)),
    parent_span_id: idOf(trace['parent_span_id'], HEX_SPAN, 16) ?? (is_callers ? caller_span : undefined),
    trace_state: is_callers ? attribution.tracestate : undefined,
  };
}

function traceOf(request: Call['request']): JsonObject {
  const { trace } = request as { trace?: unknown };
  return typeof trace === 'object' && trace !== null && !Array.isArray(trace) ? (trace as JsonObject) : {};
}

/** The beginning of a value as text. */
function boundedText(value: JsonValue): string {
  if (typeof value === 'string') return value;
  const { broadcast_field_chars_max } = limits;
  return JSON.stringify(new Copier(broadcast_field_chars_max).value(value, 0) ?? null);
}

/** What a client says for its own use, each as one attribute. */
function fieldsOf(prefix: string, fields: Readonly<Record<string, JsonValue | undefined>>): Attributes {
  const names = Object.keys(fields).slice(0, limits.broadcast_fields_max);
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = fields[name];
      if (value === undefined || value === null) return [];
      return [
        [
          `${prefix}.${name.slice(0, limits.broadcast_field_chars_max)}`,
          boundedText(value).slice(0, limits.broadcast_field_chars_max),
        ],
      ];
    }),
  );
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

/** Parts of a message as the conventions name them (docs/gen-ai/gen-ai-input-messages.json). */
function partsOf(message: LoggedContent['request']['messages'][number]): JsonObject[] {
  const { role, content, reasoning, tool_call_id } = message;
  const tool_calls = Array.isArray(message.tool_calls) ? message.tool_calls : [];
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
  for (const call of tool_calls) {
    const { name, arguments: text } = call?.function ?? { name: '', arguments: '' };
    parts.push({ type: 'tool_call', id: call.id ?? null, name, arguments: argumentsOf(text) });
  }
  return parts;
}

/** The last messages that fit, as JSON; the conventions keep instructions apart. */
function contentAttributes({ request, output, truncated }: LoggedContent): Attributes {
  let left = limits.broadcast_content_chars_max;
  let is_cut = truncated === true;
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
      is_cut = true;
      break;
    }
    inputs.push(json);
  }
  const { completion, reasoning, tool_calls = [], refusal, finish_reason } = output;
  const answer = { role: 'assistant' as const, content: completion ?? refusal ?? null, reasoning, tool_calls };
  const said = JSON.stringify([{ role: 'assistant', parts: partsOf(answer), finish_reason: finish_reason ?? null }]);
  const is_told = said.length <= limits.broadcast_content_chars_max;
  const system = JSON.stringify(instructions);
  const is_instructed = instructions.length > 0 && system.length <= limits.broadcast_content_chars_max;
  return {
    'gen_ai.input.messages': `[${inputs.reverse().join(',')}]`,
    ...(is_instructed ? { 'gen_ai.system_instructions': system } : {}),
    ...(is_told ? { 'gen_ai.output.messages': said } : {}),
    'gateway.content.truncated': is_cut || !is_told || (instructions.length > 0 && !is_instructed) || undefined,
  };
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

function requestAttributes({ request }: Call): Attributes {
  const { stop, response_format } = request;
  return {
    'gen_ai.request.temperature': numberOf(request.temperature),
    'gen_ai.request.top_p': numberOf(request.top_p),
    'gen_ai.request.top_k': numberOf(request.top_k),
    'gen_ai.request.frequency_penalty': numberOf(request.frequency_penalty),
    'gen_ai.request.presence_penalty': numberOf(request.presence_penalty),
    'gen_ai.request.seed': numberOf(request.seed),
    'gen_ai.request.max_tokens': numberOf(request.max_completion_tokens ?? request.max_tokens),
    'gen_ai.request.stop_sequences': typeof stop === 'string' ? [stop] : (stop ?? undefined),
    'gen_ai.request.stream': request.stream === true || undefined,
    'gen_ai.output.type': response_format?.type.startsWith('json') === true ? 'json' : undefined,
  };
}

function usageAttributes({ usage, cost_nano, byok_cost_nano, attempts, latency }: GenerationRecord): Attributes {
  const cache_write = (usage?.in_cache_write_5m ?? 0) + (usage?.in_cache_write_1h ?? 0);
  return {
    'gen_ai.usage.input_tokens': usage === null ? undefined : inputTokens(usage),
    'gen_ai.usage.output_tokens': usage === null ? undefined : outputTokens(usage),
    'gen_ai.usage.cache_read.input_tokens': usage?.in_cache_read,
    'gen_ai.usage.cache_creation.input_tokens': cache_write || undefined,
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

/** A call's own span with what no client and no provider can have written. */
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
 * The spans of a call: one of its own, and one below it for each attempt, one after the other as far as their lengths tell.
 * `content`: what was asked and answered stands on it. The same call gives the same ids each time.
 */
export function generationSpans(ended: EndedCall, { content }: { content: boolean }): Span[] {
  const { call, record, duration_ms } = ended;
  const place = placeOf(call);
  const span_id = spanId(record.id, 0);
  const start_ms = call.accepted_ms;
  const end_ms = start_ms + duration_ms;
  const trace = traceOf(call.request);
  const named = [trace['generation_name'], trace['span_name']].find((name) => typeof name === 'string' && name !== '');
  const operation = operationOf(record);
  const is_failed = record.outcome === 'failed';
  const told = content ? ended.content : undefined;
  const spans: Span[] = [
    {
      ...place,
      span_id,
      name: String(named ?? `${operation} ${record.requested_model ?? record.model}`).slice(
        0,
        limits.broadcast_field_chars_max,
      ),
      start_ms,
      end_ms,
      attributes: {
        ...callAttributes(ended),
        ...(told === undefined ? {} : contentAttributes(told)),
        ...(told === undefined ? {} : fieldsOf('gateway.metadata', call.request.metadata ?? {})),
      },
      failure: is_failed ? errorType(record) : undefined,
    },
  ];
  let at_ms = start_ms;
  for (const [at, attempt] of record.attempts.entries()) {
    const begun_ms = Math.min(end_ms, at_ms + (attempt.wait ?? 0));
    const is_last = at === record.attempts.length - 1 && attempt.failure === null;
    at_ms = is_last ? end_ms : Math.min(end_ms, begun_ms + (attempt.latency ?? 0));
    spans.push({
      trace_id: place.trace_id,
      trace_state: place.trace_state,
      span_id: spanId(record.id, at + 1),
      parent_span_id: span_id,
      name: `attempt ${attempt.provider_name}`,
      start_ms: begun_ms,
      end_ms: at_ms,
      attributes: attemptAttributes(attempt, at),
      failure: attempt.failure ?? undefined,
    });
  }
  return spans;
}
