import type { Ext, Native, Wire } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';

export const WIRE = 'gemini-generate-content' satisfies Wire;
export const GEMINI_FORMAT = 'google-gemini-v1';

// Type aliases, not interfaces: an alias is assignable to `JsonObject`. The fields are those of the reference
// (https://ai.google.dev/api/generate-content, https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference)
// that the gateway writes itself; all others are kept in `rest`.
export type WireBlob = { mimeType: string; data: string };
export type WireFile = { fileUri: string; mimeType?: string };
export type WireFunctionCall = { id?: string; name: string; args: JsonObject };
export type WireFunctionResponse = {
  id?: string;
  name: string;
  response: JsonObject;
  parts?: { inlineData: WireBlob }[];
};
/** Has exactly one of the content fields, or a kind that the chat schema does not know. */
export type WirePart = {
  text?: string;
  thought?: boolean;
  thoughtSignature?: string;
  inlineData?: WireBlob;
  fileData?: WireFile;
  functionCall?: WireFunctionCall;
  functionResponse?: WireFunctionResponse;
};
export type WireContent = { role: 'user' | 'model'; parts: WirePart[] };
export type WireDeclaration = { name: string; description?: string; parametersJsonSchema?: JsonObject };
/** All functions of the client, or one tool that the provider runs. */
export type WireTool = { functionDeclarations: WireDeclaration[] } | JsonObject;
export type WireCallingConfig = { mode: 'AUTO' | 'ANY' | 'NONE' | 'VALIDATED'; allowedFunctionNames?: string[] };
export type WireToolConfig = { functionCallingConfig?: WireCallingConfig; includeServerSideToolInvocations?: true };
export type WireThinkingLevel = 'MINIMAL' | 'LOW' | 'MEDIUM' | 'HIGH';
export type WireThinkingConfig = {
  includeThoughts?: boolean;
  thinkingBudget?: number;
  thinkingLevel?: WireThinkingLevel;
};
export type WireGenerationConfig = {
  maxOutputTokens?: number;
  temperature?: number;
  topP?: number;
  topK?: number;
  seed?: number;
  presencePenalty?: number;
  frequencyPenalty?: number;
  stopSequences?: string[];
  responseLogprobs?: true;
  logprobs?: number;
  responseMimeType?: 'application/json';
  responseJsonSchema?: JsonObject;
  responseModalities?: string[];
  speechConfig?: JsonObject;
  imageConfig?: JsonObject;
  thinkingConfig?: WireThinkingConfig;
};
export type WireRequest = {
  contents: WireContent[];
  systemInstruction?: { parts: WirePart[] };
  tools?: WireTool[];
  toolConfig?: WireToolConfig;
  generationConfig?: WireGenerationConfig;
  labels?: Record<string, string>;
  serviceTier?: 'flex' | 'priority' | 'standard';
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

/** A part of a kind that the chat schema does not know, as received. */
export function nativeOf(block: JsonObject): Native {
  return { type: 'native', wire: WIRE, block };
}
