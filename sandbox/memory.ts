import type { JsonObject } from './json.ts';
import { limits } from './limits.ts';
import type { CacheUse, Prompt } from './prompt.ts';

/** The billed amounts of an answer. `input_tokens` include cached tokens, `output_tokens` include reasoning. */
export interface Billed {
  input_tokens: number;
  cache_read_tokens: number;
  cache_write_5m_tokens: number;
  cache_write_1h_tokens: number;
  output_tokens: number;
  reasoning_tokens: number;
  /** The length of transcribed sound, for models that bill by it. */
  audio_ms?: number;
}

/** One request to the sandbox. */
export interface Attempt {
  id: string;
  /** The caller's `x-client-request-id`. */
  client_request_id: string | null;
  path: string;
  /** Milliseconds since 1970. */
  received_at: number;
  model: string | null;
  /** Null while the request is open, and if there was no answer. */
  status: number | null;
  chunks: number;
  /** `broken`: a planned failure of the connection. */
  outcome: 'open' | 'completed' | 'broken' | 'aborted';
  /** Null without an answer: the request was refused, failed as planned, or the client left before. */
  billed: Billed | null;
  /** The received body: only of the latest requests, and only if it is small. */
  body?: JsonObject;
}

/** The state between requests. It is bounded; the oldest entries are removed first. */
export interface Memory {
  noteAttempt(id: string, client_request_id: string | string[] | undefined, path: string): Attempt;
  noteBody(attempt: Attempt, model: string, body: JsonObject, bytes: number): void;
  /** The attempts with this id, of the caller or of the sandbox, in order of arrival. */
  findAttempts(id: string): Attempt[];
  /** The same. Later requests with this id are refused. */
  closeAttempt(id: string): Attempt[];
  isClosed(id: string | string[] | undefined): boolean;
  /** Milliseconds since 1970. Every attempt since then is remembered. */
  remembersSince(): number;
  /** The number of requests of this conversation, including this one. */
  countFailure(conversation: string): number;
  /** Reads and writes the prompt cache. A stated amount has precedence. */
  cacheUse(prompt: Prompt, cached_tokens: number): CacheUse;
}

/** Adds an entry, and returns the entry that was removed for it. */
function bounded<Value>(entries: Map<string, Value>, key: string, value: Value): Value | undefined {
  entries.set(key, value);
  if (entries.size <= limits.memory_entries_max) return undefined;
  const [oldest, forgotten] = entries.entries().next().value!;
  entries.delete(oldest);
  return forgotten;
}

/** An empty memory. */
export function createMemory(clock: () => number): Memory {
  const attempts = new Map<string, Attempt[]>();
  const closed = new Map<string, true>();
  let remembers_since = clock();
  const failures = new Map<string, number>();
  const prefixes = new Map<string, true>();
  const with_body: Attempt[] = [];
  return {
    noteAttempt(id, client_request_id, path) {
      const key = typeof client_request_id === 'string' ? client_request_id : id;
      const attempt: Attempt = {
        id,
        client_request_id: typeof client_request_id === 'string' ? client_request_id : null,
        path,
        received_at: clock(),
        model: null,
        status: null,
        chunks: 0,
        outcome: 'open',
        billed: null,
      };
      const forgotten = bounded(attempts, key, [...(attempts.get(key) ?? []).slice(-99), attempt]);
      for (const { received_at } of forgotten ?? []) remembers_since = Math.max(remembers_since, received_at + 1);
      return attempt;
    },
    noteBody(attempt, model, body, bytes) {
      attempt.model = model;
      if (bytes > limits.body_remembered_bytes_max) return;
      attempt.body = body;
      with_body.push(attempt);
      if (with_body.length > limits.bodies_max) delete with_body.shift()!.body;
    },
    findAttempts: (id) => attempts.get(id) ?? [],
    closeAttempt(id) {
      bounded(closed, id, true);
      return attempts.get(id) ?? [];
    },
    isClosed: (id) => typeof id === 'string' && closed.has(id),
    remembersSince: () => remembers_since,
    countFailure(conversation) {
      const count = (failures.get(conversation) ?? 0) + 1;
      bounded(failures, conversation, count);
      return count;
    },
    cacheUse(prompt, cached_tokens) {
      const use: CacheUse = {
        read_tokens: Math.min(cached_tokens, prompt.input_tokens),
        write_5m_tokens: 0,
        write_1h_tokens: 0,
      };
      let from = use.read_tokens;
      for (const prefix of prompt.cache_prefixes)
        if (prefixes.has(prefix.identity)) from = Math.max(from, prefix.tokens);
      use.read_tokens = from;
      for (const prefix of prompt.cache_prefixes) {
        bounded(prefixes, prefix.identity, true);
        if (prefix.tokens <= from) continue;
        use[prefix.hour ? 'write_1h_tokens' : 'write_5m_tokens'] += prefix.tokens - from;
        from = prefix.tokens;
      }
      return use;
    },
  };
}
