import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A received span, with its attributes by name. */
export interface SeenSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  name: string;
  kind: number;
  start: bigint;
  end: bigint;
  attributes: Record<string, unknown>;
  status: { code: number; message?: string };
}

export interface SeenRequest {
  headers: IncomingHttpHeaders;
  path: string;
  body: string;
  spans: SeenSpan[];
}

export interface Collector {
  url: string;
  requests: SeenRequest[];
  /** Why requests were not in the published form. */
  faults: string[];
  spans(): SeenSpan[];
  /** The calls' own spans. */
  calls(): SeenSpan[];
  /** The status of further answers. Undefined if it is the correct one. */
  behave(behaviour: ((response: ServerResponse, request: SeenRequest) => void) | undefined): void;
  stop(): Promise<void>;
}

type SentSpan = Omit<SeenSpan, 'start' | 'end' | 'attributes'> & {
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: unknown;
};

type Known = Record<string, 'string' | 'object' | 'array' | 'number'>;

/** Fields of opentelemetry/proto/trace/v1/trace.proto in lowerCamelCase; no others are sent. */
const SPAN_FIELDS: Known = {
  traceId: 'string',
  spanId: 'string',
  parentSpanId: 'string',
  traceState: 'string',
  name: 'string',
  kind: 'number',
  startTimeUnixNano: 'string',
  endTimeUnixNano: 'string',
  attributes: 'array',
  status: 'object',
};

function kindOf(value: unknown): string {
  return Array.isArray(value) ? 'array' : typeof value;
}

/**
 * Reads an `ExportTraceServiceRequest` in the JSON form of the OTLP specification, and throws if it has another form.
 */
function readExport(body: string): SeenSpan[] {
  const fail = (what: string): never => {
    throw new Error(what);
  };
  const fields = <T>(value: unknown, known: Known, place: string): T => {
    if (kindOf(value) !== 'object' || value === null) fail(`${place} is not an object`);
    for (const [name, one] of Object.entries(value as object)) {
      if (!Object.hasOwn(known, name)) fail(`${place}.${name} is not known`);
      if (kindOf(one) !== known[name]) fail(`${place}.${name} is ${kindOf(one)}`);
    }
    return value as T;
  };
  const scalar = (value: unknown, place: string): unknown => {
    const [entry, ...others] = Object.entries(value as object);
    if (entry === undefined || others.length > 0) throw new Error(`${place} must hold one value`);
    const [name, held] = entry;
    if (name === 'stringValue' && typeof held === 'string') return held;
    if (name === 'boolValue' && typeof held === 'boolean') return held;
    // 64-bit numbers are decimal texts.
    if (name === 'intValue' && typeof held === 'string' && /^-?\d+$/.test(held)) return Number(held);
    if (name === 'doubleValue' && typeof held === 'number') return held;
    if (name === 'arrayValue' && Array.isArray(held?.values)) {
      return held.values.map((one: unknown) => scalar(one, place));
    }
    return fail(`${place}.${name} has an unknown value`);
  };
  const attributes = (list: unknown, place: string): Record<string, unknown> => {
    const values: Record<string, unknown> = {};
    for (const one of list as unknown[]) {
      const { key, value } = fields<{ key: string; value: unknown }>(one, { key: 'string', value: 'object' }, place);
      if (Object.hasOwn(values, key)) fail(`${place} names ${key} twice`);
      values[key] = scalar(value, `${place}.${key}`);
    }
    return values;
  };
  const nano = (value: string, place: string): bigint => {
    if (!/^\d{19}$/.test(value)) fail(`${place} is not a time in nanoseconds: ${value}`);
    return BigInt(value);
  };
  const { resourceSpans } = fields<{ resourceSpans: unknown[] }>(
    JSON.parse(body),
    { resourceSpans: 'array' },
    'request',
  );
  const seen: SeenSpan[] = [];
  for (const group of resourceSpans) {
    const { resource, scopeSpans } = fields<{ resource: unknown; scopeSpans: unknown[] }>(
      group,
      { resource: 'object', scopeSpans: 'array' },
      'resourceSpans',
    );
    const named = attributes(
      fields<{ attributes: unknown }>(resource, { attributes: 'array' }, 'resource').attributes,
      'resource',
    );
    if (typeof named['service.name'] !== 'string') fail('the resource has no service.name');
    for (const scoped of scopeSpans) {
      const { scope, spans } = fields<{ scope: unknown; spans: unknown[] }>(
        scoped,
        { scope: 'object', spans: 'array' },
        'scopeSpans',
      );
      fields(scope, { name: 'string', version: 'string' }, 'scope');
      if (spans.length === 0) fail('an empty envelope');
      for (const one of spans) {
        const span = fields<SentSpan>(one, SPAN_FIELDS, 'span');
        const { traceId, spanId, parentSpanId, name, kind } = span;
        if (!/^[0-9a-f]{32}$/i.test(traceId) || /^0+$/.test(traceId)) fail(`traceId ${traceId}`);
        if (!/^[0-9a-f]{16}$/i.test(spanId) || /^0+$/.test(spanId)) fail(`spanId ${spanId}`);
        if (parentSpanId !== undefined && !/^[0-9a-f]{16}$/i.test(parentSpanId)) fail(`parentSpanId ${parentSpanId}`);
        if (!Number.isInteger(kind) || kind < 0 || kind > 5) fail(`kind ${kind}`);
        if (name === '') fail('a span without a name');
        const status = fields<SeenSpan['status']>(span.status, { code: 'number', message: 'string' }, 'status');
        const start = nano(span.startTimeUnixNano, 'startTimeUnixNano');
        const end = nano(span.endTimeUnixNano, 'endTimeUnixNano');
        if (end < start) fail('a span that ends before it begins');
        const values = attributes(span.attributes, 'span');
        seen.push({ traceId, spanId, parentSpanId, name, kind, start, end, attributes: values, status });
      }
    }
  }
  return seen;
}

/** A stand-in for a collector or a webhook that checks requests strictly. */
export async function startCollector(): Promise<Collector> {
  const requests: SeenRequest[] = [];
  const faults: string[] = [];
  let behaviour: Parameters<Collector['behave']>[0];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('error', () => undefined);
    request.on('end', () => {
      const body = Buffer.concat(parts).toString('utf8');
      const seen: SeenRequest = { headers: request.headers, path: request.url ?? '', body, spans: [] };
      try {
        if (request.method !== 'POST') throw new Error(`method ${request.method}`);
        if (request.headers['content-type'] !== 'application/json') throw new Error('another content type');
        seen.spans = readExport(body);
      } catch (error) {
        faults.push(String(error));
      }
      requests.push(seen);
      if (behaviour !== undefined) behaviour(response, seen);
      else response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const spans = () => requests.flatMap((request) => request.spans);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    faults,
    spans,
    calls: () => spans().filter(({ attributes }) => attributes['gateway.attempt.number'] === undefined),
    behave(next) {
      behaviour = next;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}
