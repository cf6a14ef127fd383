import type { IncomingHttpHeaders } from 'node:http';
import type { Faults } from './faults.ts';
import type { JsonObject } from './json.ts';
import type { Answer, CacheUse, Prompt, Refusal } from './prompt.ts';

/** The input of the encoding of one answer. */
export interface Envelope {
  answer: Answer;
  prompt: Prompt;
  cache: CacheUse;
  faults: Faults;
  /** Unique among the answers of one server. */
  id: string;
  /** Unix seconds. */
  created: number;
  /** The received body, with `model` and `stream` if the address has them. */
  body: JsonObject;
}

/** The parts of a request that are in the address on some wires. */
export interface Target {
  model: string;
  stream: boolean;
}

/** One wire: how it reads a request and writes an answer. */
export interface SandboxWire {
  /** The paths of this wire, without a query. */
  path: RegExp;
  /** Default: POST. */
  method?: 'GET';
  /** Reads a body that is not JSON. Throws a `Refusal` if the real service refuses it. */
  readBody?(raw: Buffer, request: { headers: IncomingHttpHeaders; url: string }): Promise<JsonObject>;
  /** The length of the billed sound, in milliseconds. Not set if the wire bills no sound. */
  soundMs?(body: JsonObject): number;
  /** Set if the wire only counts the tokens of a prompt, which is not billed. */
  counts_only?: true;
  /** Set if the wire bills no output tokens: embeddings and transcriptions. */
  makes_vectors?: true;
  /** The model and the mode in the path. Not set if they are in the body. */
  targetOf?(path: string): Target;
  /** The credential of a request. */
  credentialOf(headers: IncomingHttpHeaders): string | undefined;
  credentialRefused(): Refusal;
  modelUnknown(model: string): Refusal;
  /** Throws a `Refusal` if the real service refuses the request. */
  check(body: JsonObject, headers: IncomingHttpHeaders): void;
  promptTooLong(input_tokens: number): Refusal;
  readPrompt(body: JsonObject): Prompt;
  encodeBody(envelope: Envelope): JsonObject;
  /** The events as they are sent, one string for each. */
  encodeStream(envelope: Envelope): Iterable<string>;
  errorBody(refusal: Refusal, id: string): JsonObject;
  /** The error as an event of a stream. */
  errorEvent(refusal: Refusal, id: string): string;
  answerHeaders(id: string): Record<string, string>;
  /** Headers of an error, beside its body. */
  errorHeaders?(refusal: Refusal): Record<string, string>;
  /** The media type of a binary stream, whose strings are Latin-1. Not set for a text event stream. */
  binary_type?: string;
}
