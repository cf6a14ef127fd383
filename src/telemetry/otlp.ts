/**
 * Spans in the JSON form of OTLP (OTLP specification 1.9, "JSON Protobuf Encoding"): ids in hexadecimal, enumerations as
 * numbers, 64-bit numbers as decimal texts, names in lowerCamelCase.
 */

/** The types of an attribute's value. */
export type AttributeValue = string | number | boolean | readonly string[];

/** opentelemetry/proto/trace/v1/trace.proto, `SpanKind`. */
const CLIENT_KIND = 3;
/** `StatusCode`. */
const UNSET = 0;
const ERROR = 2;

/** A span that has ended. */
export interface Span {
  /** 32 hexadecimal digits. */
  trace_id: string;
  /** 16 hexadecimal digits. */
  span_id: string;
  parent_span_id?: string | undefined;
  trace_state?: string | undefined;
  name: string;
  start_ms: number;
  end_ms: number;
  /** Undefined values are omitted. */
  attributes: Readonly<Record<string, AttributeValue | undefined>>;
  /** Why it failed; undefined if it did not. */
  failure?: string | undefined;
}

type Value =
  | { stringValue: string }
  | { boolValue: boolean }
  | { intValue: string }
  | { doubleValue: number }
  | { arrayValue: { values: { stringValue: string }[] } };

const NANOS_PER_MS = 1_000_000n;

function nanos(ms: number): string {
  const whole = Math.floor(ms);
  return String(BigInt(whole) * NANOS_PER_MS + BigInt(Math.round((ms - whole) * 1e6)));
}

function encoded(value: AttributeValue): Value {
  if (typeof value === 'string') return { stringValue: value.toWellFormed() };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value !== 'number') {
    return { arrayValue: { values: value.map((text) => ({ stringValue: text.toWellFormed() })) } };
  }
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}

/** Attributes whose numbers are measures, not counts, even if they are integers. */
const DOUBLES: ReadonlySet<string> = new Set([
  'gen_ai.request.temperature',
  'gen_ai.request.top_p',
  'gen_ai.request.top_k',
  'gen_ai.request.frequency_penalty',
  'gen_ai.request.presence_penalty',
  'gen_ai.response.time_to_first_chunk',
  'gen_ai.usage.cost',
  'gateway.attempt.cost',
]);

function attributesOf(attributes: Span['attributes']): { key: string; value: Value }[] {
  return Object.entries(attributes).flatMap(([name, value]) => {
    if (value === undefined) return [];
    const key = name.toWellFormed();
    if (typeof value === 'number' && DOUBLES.has(key)) return [{ key, value: { doubleValue: value } }];
    return [{ key, value: encoded(value) }];
  });
}

/** One span as JSON text. Invalid Unicode is replaced: strict readers would refuse the whole batch, with the spans of others. */
export function spanJson(span: Span): string {
  return JSON.stringify({
    traceId: span.trace_id,
    spanId: span.span_id,
    ...(span.parent_span_id === undefined ? {} : { parentSpanId: span.parent_span_id }),
    ...(span.trace_state === undefined ? {} : { traceState: span.trace_state }),
    name: span.name.toWellFormed(),
    kind: CLIENT_KIND,
    startTimeUnixNano: nanos(span.start_ms),
    endTimeUnixNano: nanos(Math.max(span.start_ms, span.end_ms)),
    attributes: attributesOf(span.attributes),
    status: span.failure === undefined ? { code: UNSET } : { code: ERROR, message: span.failure },
  });
}

/** An `ExportTraceServiceRequest` with spans that are JSON text already. */
export function exportJson(
  resource: Span['attributes'],
  scope: { name: string; version: string },
  spans: string,
): string {
  const attributes = JSON.stringify(attributesOf(resource));
  return `{"resourceSpans":[{"resource":{"attributes":${attributes}},"scopeSpans":[{"scope":${JSON.stringify(scope)},"spans":[${spans}]}]}]}`;
}
