import type { Ext, Native, Wire } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asObject } from '../shared/json-shape.ts';

export const WIRE = 'anthropic-messages' satisfies Wire;
export const ANTHROPIC_FORMAT = 'anthropic-claude-v1';

// Type aliases, not interfaces: an alias is assignable to `JsonObject`. The fields are those of the Messages API
// reference (https://platform.claude.com/docs/en/api/messages) that the gateway writes itself; all others are kept in `rest`.
export type WireCacheControl = { type: 'ephemeral'; ttl?: '5m' | '1h' };
export type WireText = { type: 'text'; text: string; cache_control?: WireCacheControl };
export type WireImage = {
  type: 'image';
  source: { type: 'base64'; media_type: WireImageType; data: string } | { type: 'url'; url: string };
  cache_control?: WireCacheControl;
};
export type WireImageType = 'image/jpeg' | 'image/png' | 'image/gif' | 'image/webp';
export type WireDocument = {
  type: 'document';
  source:
    | { type: 'base64'; media_type: 'application/pdf'; data: string }
    | { type: 'text'; media_type: 'text/plain'; data: string }
    | { type: 'url'; url: string }
    | { type: 'file'; file_id: string };
  title?: string;
  cache_control?: WireCacheControl;
};
export type WireThinking = { type: 'thinking'; thinking: string; signature: string };
export type WireRedactedThinking = { type: 'redacted_thinking'; data: string };
export type WireToolUse = {
  type: 'tool_use';
  id: string;
  name: string;
  input: JsonObject;
  cache_control?: WireCacheControl;
};
export type WireToolResult = {
  type: 'tool_result';
  tool_use_id: string;
  content?: string | WireBlock[];
  is_error?: boolean;
  cache_control?: WireCacheControl;
};
/** Any block, written or received: only its type is known. */
export type WireBlock = JsonObject & { type: string };

export type WireMessage = { role: 'user' | 'assistant' | 'system'; content: WireBlock[] };
export type WireTool = {
  name: string;
  description?: string;
  input_schema: JsonObject & { type: 'object' };
  strict?: boolean;
  cache_control?: WireCacheControl;
};
export type WireToolChoice =
  | { type: 'auto' | 'any'; disable_parallel_tool_use?: boolean }
  | { type: 'tool'; name: string; disable_parallel_tool_use?: boolean }
  | { type: 'none' };
export type WireThinkingConfig =
  | { type: 'enabled'; budget_tokens: number; display?: WireDisplay }
  | { type: 'adaptive'; display?: WireDisplay }
  | { type: 'disabled' };
export type WireDisplay = 'summarized' | 'omitted';
export type WireEffort = 'low' | 'medium' | 'high' | 'xhigh' | 'max';
export type WireOutputConfig = { effort?: WireEffort; format?: { type: 'json_schema'; schema: JsonObject } };

export type WireRequest = {
  model: string;
  max_tokens: number;
  messages: WireMessage[];
  system?: WireText[];
  tools?: WireBlock[];
  tool_choice?: WireToolChoice;
  thinking?: WireThinkingConfig;
  output_config?: WireOutputConfig;
  temperature?: number;
  top_p?: number;
  top_k?: number;
  stop_sequences?: string[];
  metadata?: { user_id: string };
  service_tier?: 'auto' | 'standard_only';
  cache_control?: WireCacheControl;
  stream?: boolean;
};

/** The value as a block: an object with a type. */
export function asBlock(value: JsonValue | undefined): WireBlock | undefined {
  const object = asObject(value);
  return typeof object?.['type'] === 'string' ? (object as WireBlock) : undefined;
}

/** The remaining fields of one of this wire's objects; undefined if there are none. */
export function extOf(rest: JsonObject): Ext | undefined {
  for (const _ in rest) return { wire: WIRE, rest };
  return undefined;
}

/** Whether an object, or an answer's remainder, is of this wire. */
export function isOwn(object: { wire?: Wire } | undefined): boolean {
  return object?.wire === WIRE;
}

/** The fields that this wire stored with an object; empty for an object of another wire. */
export function restOf(ext: Ext | undefined): JsonObject {
  return ext?.wire === WIRE ? ext.rest : {};
}

/** A block of a kind that the chat schema does not know, as received. */
export function nativeOf(block: WireBlock): Native {
  return { type: 'native', wire: WIRE, block };
}
