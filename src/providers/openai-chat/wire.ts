/**
 * The fields of the OpenAI chat wire that are read (https://platform.openai.com/docs/api-reference/chat), and fields that
 * compatible providers add. Everything is optional and may be null: Go servers send zero values, others omit fields that the
 * documentation requires. Objects are untrusted JSON: readers check types where they matter.
 */
import type { JsonObject, JsonValue } from '../../schemas/json.ts';

export interface WireAnswer {
  id?: string | null;
  object?: string | null;
  choices?: (WireChoice | null)[] | null;
  usage?: WireUsage | null;
  error?: JsonValue;
  service_tier?: string | null;
  system_fingerprint?: string | null;
  /** Perplexity: URLs, and the same with titles. */
  citations?: JsonValue;
  search_results?: JsonValue;
  moderation?: JsonValue;
  prompt_filter_results?: JsonValue;
  usage_breakdown?: JsonValue;
  /** Groq: its compound systems report usage only here. */
  x_groq?: { usage?: WireUsage | null } | null;
}

export interface WireChoice {
  index?: number | null;
  delta?: WireMessage | null;
  /** In whole answers; some servers send it in streams too. */
  message?: WireMessage | null;
  finish_reason?: string | null;
  /** vLLM: the stop sequence that matched, or a token's number. */
  stop_reason?: JsonValue;
  /** SGLang: likewise. */
  matched_stop?: JsonValue;
  logprobs?: JsonValue;
  content_filter_results?: JsonValue;
  error?: JsonValue;
}

export interface WireMessage {
  /** Mistral sends a list of parts if the model thinks, Cloudflare an object if the request has a schema. */
  content?: string | number | boolean | JsonObject | (WirePart | null)[] | null;
  refusal?: string | null;
  reasoning?: JsonValue;
  reasoning_content?: JsonValue;
  reasoning_details?: (JsonObject | null)[] | null;
  tool_calls?: (WireToolCall | null)[] | null;
  function_call?: { name?: string | null; arguments?: JsonValue } | null;
  annotations?: JsonValue;
  audio?: JsonObject | null;
  images?: JsonValue;
  /** Groq: the searches and code runs of its compound systems. */
  executed_tools?: (JsonObject | null)[] | null;
  /** Google's compatible endpoint. */
  extra_content?: WireExtraContent | null;
}

export interface WirePart {
  type?: string;
  text?: string | null;
  thinking?: string | ({ text?: string | null } | null)[] | null;
}

export interface WireToolCall {
  index?: number | null;
  id?: string | null;
  function?: { name?: string | null; arguments?: JsonValue } | null;
  custom?: { name?: string | null; input?: string | null } | null;
  extra_content?: WireExtraContent | null;
}

interface WireExtraContent {
  google?: { thought_signature?: string | null } | null;
}

export interface WireUsage {
  [field: string]: JsonValue | undefined;
}

/** True for a JSON object, false for lists and null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The string; undefined if missing, empty or of another type. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/**
 * The text of a string, number or boolean: Cloudflare writes a token that reads as a number or a boolean as such, and skipping it
 * would lose text (https://github.com/cloudflare/ai/issues/651).
 */
export function scalarText(value: unknown): string | undefined {
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : textOf(value);
}

/** The number, also from digits in quotes; undefined if missing, negative or of another type. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === 'string') return /^\d{1,15}$/.test(value) ? Number(value) : undefined;
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;
}
