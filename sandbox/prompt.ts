import type { JsonObject, JsonValue } from './json.ts';

/** A prefix of a prompt: its identity, its tokens, and whether it is cached for an hour or for five minutes. */
export interface CachePrefix {
  identity: string;
  tokens: number;
  hour: boolean;
}

/** The tokens of a prompt that are read from the cache, and those that are written to it. */
export interface CacheUse {
  read_tokens: number;
  write_5m_tokens: number;
  write_1h_tokens: number;
}

/** A request, independent of its wire: all that an answer depends on. */
export interface Prompt {
  /** The joined texts of the last user turn. */
  user_text: string;
  /** Images and files of the last user turn. */
  images: number;
  files: number;
  /** Results of the tools called in the last assistant turn, in order. */
  tool_results: string[];
  /** The text of a trailing assistant message, which the answer continues. */
  prefill: string;
  tools: { name: string; parameters: JsonObject }[];
  tool_choice: 'auto' | 'none' | 'required' | { name: string };
  parallel: boolean;
  /** The schema that the answer must satisfy; `{}` asks for any JSON object. */
  schema: JsonObject | undefined;
  reasoning: boolean;
  tokens_max: number;
  stop: string[];
  /** The number of answers, which are all the same. Default: one. */
  choices?: number;
  /** Identifies the user or else the conversation. It is the same on every wire. */
  conversation: string;
  input_tokens: number;
  /** The prefixes that the client wants to cache, shortest first. */
  cache_prefixes: CachePrefix[];
}

/** One block of an answer, divided into the pieces in which it is streamed. */
export type Block =
  | { kind: 'reasoning' | 'text' | 'refusal'; pieces: string[] }
  | { kind: 'call'; id: string; name: string; pieces: string[] };

export interface Answer {
  blocks: Block[];
  finish: 'stop' | 'stop_sequence' | 'length' | 'calls' | 'refusal';
  stop_sequence: string | null;
  output_tokens: number;
  reasoning_tokens: number;
}

/** The answer to a request that a wire refuses. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly status: number;
  /** The error code or type of the wire, and the wrong field. */
  readonly code: string | null;
  readonly field: string | null;

  constructor(status: number, message: string, code: string | null = null, field: string | null = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.field = field;
  }
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function objectsOf(value: JsonValue | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

export function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}
