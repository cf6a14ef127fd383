import type { Ext, Native, Wire } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';

export const WIRE = 'bedrock-converse' satisfies Wire;

// Type aliases, not interfaces: an alias is assignable to `JsonObject`. The fields are those of the Converse reference
// (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html) that the gateway writes itself; all
// others are kept in `rest`.

/** A block is a union with one member, which names its kind; nothing else is known. */
export type WireBlock = JsonObject;
export type WireMessage = { role: 'user' | 'assistant'; content: WireBlock[] };
export type WireSource = { bytes: string } | { s3Location: { uri: string } };
export type WireCachePoint = { cachePoint: { type: 'default'; ttl?: '1h' } };
export type WireToolChoice = { auto: JsonObject } | { any: JsonObject } | { tool: { name: string } };

/** The schema is JSON text. */
export type WireTextFormat = {
  type: 'json_schema';
  structure: { jsonSchema: { name?: string; description?: string; schema: string } };
};

export type WireRequest = {
  messages: WireMessage[];
  system?: WireBlock[];
  inferenceConfig?: { maxTokens?: number; temperature?: number; topP?: number; stopSequences?: string[] };
  toolConfig?: { tools: WireBlock[]; toolChoice?: WireToolChoice };
  additionalModelRequestFields?: JsonObject;
  outputConfig?: { textFormat?: WireTextFormat; effort?: string };
  serviceTier?: { type: string };
  requestMetadata?: Record<string, string>;
};

/** The remaining fields of one of this wire's objects; undefined if there are none. */
export function extOf(rest: JsonObject): Ext | undefined {
  for (const _ in rest) return { wire: WIRE, rest };
  return undefined;
}

/** The fields that this wire stored with an object; empty for an object of another wire. */
export function restOf(ext: Ext | undefined): JsonObject {
  return ext?.wire === WIRE ? ext.rest : {};
}

/** A block of a kind that the chat schema does not know, as received. */
export function nativeOf(block: WireBlock): Native {
  return { type: 'native', wire: WIRE, block };
}
