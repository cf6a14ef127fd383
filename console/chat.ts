/** Calls of models with an API key: the credential of the page is never sent with them. */
import { base } from './address.ts';
import type { RouteExplanation } from './api.gen.ts';

/** An answer changes the page at most this often. */
const SHOWN_EVERY_MS = 50;
/** A longer answer is stopped: the page could not show it. */
const ANSWER_CHARS_MAX = 5_000_000;
/** Further calls of tools in one answer are left out. */
const CALLS_MAX = 128;

/** The usage that the last chunk of an answer states. */
export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  cost?: number;
  cost_details?: { upstream_inference_cost?: number | null };
  prompt_tokens_details?: { cached_tokens?: number };
  completion_tokens_details?: { reasoning_tokens?: number };
}

export interface ToolCall {
  id: string;
  name: string;
  /** The arguments as the model wrote them, which may be invalid JSON. */
  args: string;
}

/** The part of an answer that has arrived. */
export interface AnswerParts {
  text: string;
  reasoning: string;
  /** Sent back with the results of tools, because some providers require it. */
  reasoningDetails: Record<string, unknown>[];
  calls: ToolCall[];
  /** Data URLs. */
  images: string[];
  finish?: string;
  usage?: Usage;
  /** The id of the call in the logs. */
  id?: string;
  provider?: string;
  /** The time of the first part by the clock of the page. */
  firstAt?: number;
}

export const emptyAnswer = (): AnswerParts => ({
  text: '',
  reasoning: '',
  reasoningDetails: [],
  calls: [],
  images: [],
});

interface Chunk {
  id?: string;
  provider?: string;
  choices?: {
    delta?: {
      content?: string | null;
      refusal?: string | null;
      reasoning?: string | null;
      reasoning_details?: Record<string, unknown>[];
      images?: { image_url?: { url?: string } }[];
      tool_calls?: { index?: number; id?: string; function?: { name?: string; arguments?: string } }[];
    };
    finish_reason?: string | null;
  }[];
  usage?: Usage;
  error?: ErrorBody;
}

interface ErrorBody {
  code?: number;
  message?: string;
  metadata?: { provider_name?: string };
}

/** A refusal or a failure of a call. */
export class ChatError extends Error {
  readonly code: number | undefined;
  readonly requestId: string | undefined;
  /** The id of the call in the logs, if it reached a provider. */
  readonly id: string | undefined;

  constructor(message: string, { code, requestId, id }: { code?: number; requestId?: string; id?: string } = {}) {
    super(message);
    this.code = code;
    this.requestId = requestId;
    this.id = id;
  }
}

async function post(path: string, key: string, body: object, signal: AbortSignal): Promise<Response> {
  const response = await fetch(`${base}api/v1/${path}`, {
    method: 'POST',
    signal,
    credentials: 'omit',
    headers: { authorization: `Bearer ${key.trim()}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (response.ok && response.body !== null) return response;
  const refused = (await response.json().catch(() => ({}))) as { error?: ErrorBody };
  const requestId = response.headers.get('x-request-id');
  const id = response.headers.get('x-generation-id');
  throw new ChatError(refused.error?.message ?? `The gateway answered with status ${response.status}.`, {
    code: response.status,
    ...(requestId === null ? {} : { requestId }),
    ...(id === null || refused.error?.metadata?.provider_name === undefined ? {} : { id }),
  });
}

/** How a call would be routed and what it would cost; nothing is sent to a provider. */
export async function explain(key: string, body: object, signal: AbortSignal): Promise<RouteExplanation> {
  const response = await post('route/explain', key, body, signal);
  return ((await response.json()) as { data: RouteExplanation }).data;
}

/** Adds a part of reasoning to the one with the same type and index. */
function addDetail(details: Record<string, unknown>[], part: Record<string, unknown>): void {
  const former = details.find(({ type, index }) => type === part['type'] && index === part['index']);
  if (former === undefined || part['index'] === undefined || part['index'] === null) {
    details.push({ ...part });
    return;
  }
  for (const [name, value] of Object.entries(part)) {
    const isText = ['text', 'summary', 'data'].includes(name);
    if (isText) former[name] = `${(former[name] as string | null) ?? ''}${(value as string | null) ?? ''}`;
    else if (value !== null) former[name] = value;
  }
}

type Delta = NonNullable<NonNullable<Chunk['choices']>[0]['delta']>;

function addDelta(parts: AnswerParts, calls: Map<number, ToolCall>, delta: Delta): void {
  if (delta.reasoning || delta.content || delta.tool_calls) parts.firstAt ??= performance.now();
  parts.reasoning += delta.reasoning ?? '';
  parts.text += (delta.content ?? '') + (delta.refusal ?? '');
  for (const detail of delta.reasoning_details ?? []) addDetail(parts.reasoningDetails, detail);
  for (const { image_url } of delta.images ?? []) if (image_url?.url !== undefined) parts.images.push(image_url.url);
  for (const part of delta.tool_calls ?? []) {
    const index = part.index ?? 0;
    const call = calls.get(index) ?? { id: '', name: '', args: '' };
    if (calls.size < CALLS_MAX) calls.set(index, call);
    call.id ||= part.id ?? '';
    call.name ||= part.function?.name ?? '';
    call.args += part.function?.arguments ?? '';
  }
}

/** Sends a chat request and reads its stream. Throws a `ChatError` for a refusal or a failed stream; the parts that arrived before stay shown. */
export async function streamAnswer(
  key: string,
  body: object,
  show: (parts: AnswerParts) => void,
  signal: AbortSignal,
): Promise<void> {
  const response = await post('chat/completions', key, body, signal);
  const requestId = response.headers.get('x-request-id') ?? undefined;
  const parts = emptyAnswer();
  const calls = new Map<number, ToolCall>();
  let pending: ReturnType<typeof setTimeout> | undefined;
  const showNow = () => {
    clearTimeout(pending);
    pending = undefined;
    show({ ...parts, calls: [...calls.values()].map((call) => ({ ...call })), images: [...parts.images] });
  };
  const failure = (message: string, code?: number) =>
    new ChatError(message, {
      ...(code === undefined ? {} : { code }),
      ...(requestId === undefined ? {} : { requestId }),
      ...(parts.id === undefined ? {} : { id: parts.id }),
    });
  const reader = (response.body as ReadableStream<Uint8Array<ArrayBuffer>>)
    .pipeThrough(new TextDecoderStream())
    .getReader();
  let rest = '';
  let length = 0;
  let isWhole = false;
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const lines = (rest + value).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (line.trimEnd() === 'data: [DONE]') isWhole = true;
        else if (line.startsWith('data: ')) {
          const chunk = JSON.parse(line.slice(6)) as Chunk;
          if (chunk.id !== undefined) parts.id = chunk.id;
          if (chunk.provider !== undefined) parts.provider = chunk.provider;
          if (chunk.usage) parts.usage = chunk.usage;
          if (chunk.error !== undefined)
            throw failure(chunk.error.message ?? 'The answer broke off.', chunk.error.code);
          const choice = chunk.choices?.[0];
          if (choice?.delta) addDelta(parts, calls, choice.delta);
          if (choice?.finish_reason) parts.finish = choice.finish_reason;
          length += line.length;
        }
      }
      // An event has about 300 characters besides its text; this limit counts both.
      if (Math.max(parts.text.length, parts.reasoning.length) > ANSWER_CHARS_MAX || length > 100 * ANSWER_CHARS_MAX) {
        throw failure(`The answer is longer than ${ANSWER_CHARS_MAX} characters; the page stopped it.`);
      }
      pending ??= setTimeout(showNow, SHOWN_EVERY_MS);
    }
    if (!isWhole) throw failure('The stream ended without its end mark: the answer may be incomplete.');
  } catch (error) {
    if (error instanceof SyntaxError)
      throw failure('The stream has an event that is no JSON; a proxy may have changed it.');
    throw error;
  } finally {
    showNow();
    void reader.cancel().catch(() => {});
  }
}
