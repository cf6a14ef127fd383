import type { JsonObject } from './json.ts';
import { limits } from './limits.ts';
import type { CacheUse, Prompt } from './prompt.ts';

/** What an answer is billed for. Cached tokens are among `input_tokens`, reasoning among `output_tokens`. */
export interface Billed {
  input_tokens: number;
  cache_read_tokens: number;
  cache_write_5m_tokens: number;
  cache_write_1h_tokens: number;
  output_tokens: number;
  reasoning_tokens: number;
  /** Sound that was transcribed, for models that are paid by its length. */
  audio_ms?: number;
}

/** One request as the sandbox saw it. */
export interface Attempt {
  id: string;
  /** The caller's `x-client-request-id`. */
  client_request_id: string | null;
  path: string;
  /** Milliseconds since 1970. */
  received_at: number;
  model: string | null;
  /** Null while open and when nothing was answered. */
  status: number | null;
  chunks: number;
  /** `broken` is a planned failure of the connection. */
  outcome: 'open' | 'completed' | 'broken' | 'aborted';
  /** Null where no answer was made: refused, failed as planned, or left before. */
  billed: Billed | null;
  /** What was received; of the last requests only, when not large. */
  body?: JsonObject;
}

/** What the sandbox remembers from one request to the next: bounded, the oldest is forgotten first. */
export interface Memory {
  noteAttempt(id: string, client_request_id: string | string[] | undefined, path: string): Attempt;
  noteBody(attempt: Attempt, model: string, body: JsonObject, bytes: number): void;
  /** By the caller's id or our own, in the order they came. */
  findAttempts(id: string): Attempt[];
  /** The same; there will be no other of that name, should a request still be on its way. */
  closeAttempt(id: string): Attempt[];
  isClosed(id: string | string[] | undefined): boolean;
  /** Milliseconds since 1970: every attempt is known that came since. */
  remembersSince(): number;
  /** How many requests of this conversation there were, this one included. */
  countFailure(conversation: string): number;
  /** Reads and writes the prompt cache; a stated amount wins. */
  cacheUse(prompt: Prompt, cached_tokens: number): CacheUse;
}

/** Gives back what was forgotten for it. */
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
