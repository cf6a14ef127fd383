import type { Ext, Wire } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';

export const WIRE = 'cohere-chat' satisfies Wire;

// Type aliases, not interfaces: an alias is assignable to `JsonObject`. The fields are those of the reference of
// `POST /v2/chat` (https://docs.cohere.com/reference/chat) that the gateway writes itself.
export type WireText = { type: 'text'; text: string };
export type WireThinking = { type: 'thinking'; thinking: string };
export type WireImage = { type: 'image_url'; image_url: { url: string; detail?: 'auto' | 'low' | 'high' } };
/** A tool's result, in a form that answers can cite. */
export type WireDocument = { type: 'document'; document: { data: JsonObject; id?: string } };
export type WireUserPart = WireText | WireImage;
export type WireToolCall = { id: string; type: 'function'; function: { name: string; arguments: string } };

export type WireSystemMessage = { role: 'system'; content: string | WireText[] };
export type WireUserMessage = { role: 'user'; content: string | WireUserPart[] };
export type WireToolMessage = { role: 'tool'; tool_call_id: string; content: string | (WireText | WireDocument)[] };
export type WireAssistantMessage = {
  role: 'assistant';
  content?: string | (WireText | WireThinking)[];
  tool_calls?: WireToolCall[];
  /** The text of a turn that calls tools: with calls, `content` may hold no text. */
  tool_plan?: string;
  citations?: JsonObject[];
};
export type WireMessage = WireSystemMessage | WireUserMessage | WireToolMessage | WireAssistantMessage;

export type WireTool = {
  type: 'function';
  function: { name: string; description?: string; parameters: JsonObject };
};
export type WireThinkingConfig = { type: 'enabled'; token_budget?: number } | { type: 'disabled' };

export type WireRequest = {
  model: string;
  messages: WireMessage[];
  /** Required by the provider's types, also if false. */
  stream: boolean;
  tools?: WireTool[];
  strict_tools?: boolean;
  tool_choice?: 'REQUIRED' | 'NONE';
  response_format?: { type: 'json_object'; json_schema?: JsonObject };
  max_tokens?: number;
  stop_sequences?: string[];
  temperature?: number;
  seed?: number;
  frequency_penalty?: number;
  presence_penalty?: number;
  k?: number;
  p?: number;
  logprobs?: boolean;
  thinking?: WireThinkingConfig;
};

/** The fields that this wire stored with an object; empty for an object of another wire. */
export function restOf(ext: Ext | undefined): JsonObject {
  return ext?.wire === WIRE ? ext.rest : {};
}
