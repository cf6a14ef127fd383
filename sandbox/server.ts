import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { answerTo } from './answer.ts';
import { anthropicMessages, anthropicTokenCount } from './anthropic-messages.ts';
import { bedrockConverse } from './bedrock-converse.ts';
import { cohereChat } from './cohere-chat.ts';
import { vectorWires } from './embeddings.ts';
import { type Faults, readFaults, splitModel, UnknownFault } from './faults.ts';
import { geminiGenerateContent } from './gemini-generate-content.ts';
import type { JsonObject } from './json.ts';
import { limits } from './limits.ts';
import { type Attempt, createMemory, type Memory } from './memory.ts';
import { MODEL_CONTEXT_TOKENS, modelsByName } from './models.ts';
import { openAiChat } from './openai-chat.ts';
import { openAiResponses } from './openai-responses.ts';
import { isObject, Refusal, textOf } from './prompt.ts';
import { searchAnswer } from './search.ts';
import { type Course, sendBody, sendStream } from './send.ts';
import { speechWires } from './transcription.ts';
import type { SandboxWire } from './wire.ts';

// An import would evaluate all exports of this Node module, including a WebSocket client, which takes 10 MB.
const { createServer } = process.getBuiltinModule('node:http');

/** Counters since the start of the sandbox. */
export interface SandboxCounters {
  requests: number;
  /** Requests that are being answered. */
  open: number;
  /** Requests that were answered to their intended end, including planned failures. */
  completed: number;
  /** Requests whose client left before the end. */
  aborted: number;
  /** Chunks of streams that were sent. */
  chunks: number;
  by_status: Record<string, number>;
}

export interface Sandbox {
  /** The address without a path. The wires are below `/v1`. */
  url: string;
  /** Stops at once, and ends open streams. */
  stop(): Promise<void>;
  requests(): SandboxCounters;
}

export interface SandboxOptions {
  host?: string;
  /** 0 chooses a free port. */
  port?: number;
  /** If set, requests need it as their credential. */
  api_key?: string;
  /** Milliseconds since 1970. */
  clock?: () => number;
}

const wires: readonly SandboxWire[] = [
  openAiChat,
  anthropicMessages,
  anthropicTokenCount,
  geminiGenerateContent,
  cohereChat,
  openAiResponses,
  bedrockConverse,
  ...vectorWires,
  ...speechWires,
];

interface Context {
  options: SandboxOptions;
  counters: SandboxCounters;
  memory: Memory;
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '/').split('?', 1)[0]!;
}

function queryOf(request: IncomingMessage): string {
  return new URLSearchParams((request.url ?? '').split('?', 2)[1]).get('q') ?? '';
}

async function readBody(request: IncomingMessage, wire: SandboxWire): Promise<{ body: JsonObject; bytes: number }> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > limits.body_bytes_max) throw new Refusal(413, 'Request body too large.');
    pieces.push(piece);
  }
  if (wire.readBody !== undefined) {
    const { headers, url = '/' } = request;
    return { body: await wire.readBody(Buffer.concat(pieces), { headers, url }), bytes };
  }
  let body: unknown;
  try {
    body = JSON.parse(Buffer.concat(pieces).toString());
  } catch {
    throw new Refusal(400, 'We could not parse the JSON body of your request.');
  }
  if (!isObject(body)) throw new Refusal(400, 'The body must be a JSON object.');
  return { body, bytes };
}

function sendJson(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

function sendPage(response: ServerResponse, status: number): void {
  response.writeHead(status, { 'content-type': 'text/html' });
  response.end(
    `<!DOCTYPE html><html><head><title>${status} Sandbox</title></head><body><center><h1>${status}</h1></center><hr><center>nginx</center></body></html>\n`,
  );
}

/** Answers with a planned failure before any part of the answer. Returns false if none is planned. */
function sendFault(wire: SandboxWire, response: ServerResponse, faults: Faults, id: string): boolean {
  if (faults.html) {
    sendPage(response, faults.status || 200);
    return true;
  }
  if (faults.status === 0 || faults.status === 200) return false;
  const refusal = new Refusal(faults.status, `The sandbox fails with ${faults.status}, as requested.`, 'sandbox_fault');
  const headers = {
    ...wire.answerHeaders(id),
    ...wire.errorHeaders?.(refusal),
    ...(faults.retry_after > 0 ? { 'retry-after': String(faults.retry_after) } : {}),
  };
  sendJson(response, faults.status, wire.errorBody(refusal, id), headers);
  return true;
}

async function answer(
  wire: SandboxWire,
  request: IncomingMessage,
  response: ServerResponse,
  context: Context,
  attempt: Attempt,
): Promise<void> {
  const { options, memory, counters } = context;
  if (options.api_key !== undefined && wire.credentialOf(request.headers) !== options.api_key)
    throw wire.credentialRefused();
  const { body: received, bytes } = await readBody(request, wire);
  const target = wire.targetOf?.(pathOf(request));
  const body: JsonObject = target === undefined ? received : { ...received, ...target };
  const { name, faults: from_name } = splitModel(textOf(body['model']));
  const model = Object.hasOwn(modelsByName, name) ? modelsByName[name] : undefined;
  memory.noteBody(attempt, textOf(body['model']), body, bytes);
  wire.check(received, request.headers);
  if (model === undefined) throw wire.modelUnknown(name);
  let faults = readFaults({ ...model.faults, ...from_name }, body, request.headers);
  const prompt = wire.readPrompt(body);
  if (prompt.input_tokens > MODEL_CONTEXT_TOKENS) throw wire.promptTooLong(prompt.input_tokens);
  if (faults.fail_times > 0 && memory.countFailure(prompt.conversation) > faults.fail_times) {
    faults = {
      ...faults,
      status: 0,
      html: false,
      hang: false,
      die_after_chunks: 0,
      truncate_after_chunks: 0,
      stall_after: 0,
      error_in_stream: 0,
    };
  }
  const left = new AbortController();
  response.once('close', () => left.abort());
  if (faults.delay_ms > 0) await sleep(faults.delay_ms, undefined, { signal: left.signal });
  if (faults.hang) return;
  if (sendFault(wire, response, faults, attempt.id)) return;
  // On OpenAI's wires the model decides about reasoning, on other wires the request does.
  if (model.behaviour === 'think' && (wire === openAiChat || wire === openAiResponses)) prompt.reasoning = true;
  const one = answerTo(prompt, model.behaviour, faults);
  const { choices = 1 } = prompt;
  const made =
    choices === 1
      ? one
      : {
          ...one,
          output_tokens: one.output_tokens * choices,
          reasoning_tokens: one.reasoning_tokens * choices,
        };
  if (wire.counts_only) {
    const nothing = { read_tokens: 0, write_5m_tokens: 0, write_1h_tokens: 0 };
    const counted = { answer: made, prompt, cache: nothing, faults, id: attempt.id, created: 0, body };
    sendJson(response, 200, wire.encodeBody(counted), wire.answerHeaders(attempt.id));
    return;
  }
  const cache = memory.cacheUse(prompt, faults.cached_tokens);
  attempt.billed = {
    input_tokens: prompt.input_tokens,
    cache_read_tokens: cache.read_tokens,
    cache_write_5m_tokens: cache.write_5m_tokens,
    cache_write_1h_tokens: cache.write_1h_tokens,
    output_tokens: wire.makes_vectors ? 0 : made.output_tokens,
    reasoning_tokens: wire.makes_vectors ? 0 : made.reasoning_tokens,
    ...(wire.soundMs === undefined ? {} : { audio_ms: wire.soundMs(body) }),
  };
  const created = Math.floor((options.clock ?? Date.now)() / 1000);
  const envelope = { answer: made, prompt, cache, faults, id: attempt.id, created, body };
  const failure = new Refusal(503, 'Overloaded', 'overloaded');
  const course: Course = {
    headers: wire.answerHeaders(attempt.id),
    binary_type: wire.binary_type,
    faults,
    signal: left.signal,
    onBreak: () => {
      attempt.outcome = 'broken';
    },
  };
  if (body['stream'] !== true) {
    const whole = faults.error_in_stream > 0 ? wire.errorBody(failure, attempt.id) : wire.encodeBody(envelope);
    await sendBody(response, JSON.stringify(whole), course);
    return;
  }
  const onChunks = (sent: number) => {
    counters.chunks += sent;
    attempt.chunks += sent;
  };
  const events = wire.encodeStream(envelope);
  await sendStream(response, { ...course, events, error_event: wire.errorEvent(failure, attempt.id), onChunks });
}

async function exchange(
  wire: SandboxWire,
  request: IncomingMessage,
  response: ServerResponse,
  context: Context,
): Promise<void> {
  const { counters, memory } = context;
  counters.requests += 1;
  counters.open += 1;
  const id = `sandbox${String(counters.requests).padStart(17, '0')}`;
  const client_request_id = request.headers['x-client-request-id'];
  const is_closed = memory.isClosed(client_request_id);
  const attempt = memory.noteAttempt(id, client_request_id, request.url ?? '');
  response.once('close', () => {
    counters.open -= 1;
    const finished = response.writableFinished || attempt.outcome === 'broken';
    counters[finished ? 'completed' : 'aborted'] += 1;
    if (attempt.outcome === 'open') attempt.outcome = finished ? 'completed' : 'aborted';
    attempt.status = response.headersSent ? response.statusCode : null;
    // A stream that ended early is billed for the chunks that were sent.
    if (attempt.billed && attempt.chunks > 0 && attempt.outcome !== 'completed') {
      attempt.billed.output_tokens = Math.min(attempt.billed.output_tokens, attempt.chunks);
      attempt.billed.reasoning_tokens = Math.min(attempt.billed.reasoning_tokens, attempt.chunks);
    }
    const status = String(attempt.status ?? 'none');
    counters.by_status[status] = (counters.by_status[status] ?? 0) + 1;
  });
  try {
    if (is_closed)
      throw new Refusal(
        409,
        'The id of this request was queried before it arrived, and reported as unknown. Send it with another id.',
      );
    await answer(wire, request, response, context, attempt);
  } catch (error) {
    if (response.headersSent || response.destroyed) return;
    const refusal =
      error instanceof Refusal
        ? error
        : new Refusal(
            error instanceof UnknownFault ? 400 : 500,
            String(error instanceof Error ? error.message : error),
          );
    const headers = { ...wire.answerHeaders(id), ...wire.errorHeaders?.(refusal) };
    sendJson(response, refusal.status, wire.errorBody(refusal, id), headers);
  }
}

function listModels(request: IncomingMessage): JsonObject {
  const names = Object.keys(modelsByName);
  if (request.headers['anthropic-version'] === undefined) {
    return { object: 'list', data: names.map((id) => ({ id, object: 'model', created: 0, owned_by: 'sandbox' })) };
  }
  const data = names.map((id) => ({ type: 'model', id, display_name: id, created_at: '2026-01-01T00:00:00Z' }));
  return { data, has_more: false, first_id: names[0]!, last_id: names.at(-1)! };
}

function route(request: IncomingMessage, response: ServerResponse, context: Context): void {
  const path = pathOf(request);
  const wire = wires.find((one) => one.path.test(path) && (one.method ?? 'POST') === request.method);
  if (wire !== undefined) {
    void exchange(wire, request, response, context);
    return;
  }
  const attempt = /^\/sandbox\/attempts\/([^/]+)(\/close)?$/.exec(path);
  if (attempt !== null) {
    const id = decodeURIComponent(attempt[1]!);
    const { memory } = context;
    const closes = attempt[2] !== undefined && request.method === 'POST';
    const attempts = closes ? memory.closeAttempt(id) : memory.findAttempts(id);
    const status = closes || attempts.length > 0 ? 200 : 404;
    sendJson(response, status, { data: attempts, remembers_since: memory.remembersSince() });
  } else if (path === '/v1/models' && request.method === 'GET') sendJson(response, 200, listModels(request));
  else if (path === '/search' && request.method === 'GET') sendJson(response, 200, searchAnswer(queryOf(request)));
  else if (path === '/sandbox/requests') sendJson(response, 200, context.counters);
  else
    sendJson(response, 404, {
      error: { message: `No ${request.method} ${path} here.`, type: 'invalid_request_error', param: null, code: null },
    });
}

/** Starts the sandbox. Its answers are deterministic except for ids and times. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const counters: SandboxCounters = { requests: 0, open: 0, completed: 0, aborted: 0, chunks: 0, by_status: {} };
  const context: Context = { options, counters, memory: createMemory(options.clock ?? Date.now) };
  const server = createServer({ noDelay: true, keepAliveTimeout: 65_000 }, (request, response) =>
    route(request, response, context),
  );
  const host = options.host ?? '127.0.0.1';
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    requests: () => structuredClone(counters),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
