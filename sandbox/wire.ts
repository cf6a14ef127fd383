import type { IncomingHttpHeaders } from 'node:http';
import type { Faults } from './faults.ts';
import type { JsonObject } from './json.ts';
import type { Answer, CacheUse, Prompt, Refusal } from './prompt.ts';

/** All that the encoding of one answer depends on. */
export interface Envelope {
  answer: Answer;
  prompt: Prompt;
  cache: CacheUse;
  faults: Faults;
  /** Unique among the answers of one server. */
  id: string;
  /** Unix seconds. */
  created: number;
  /** The request as received, with what its address says: `model` and `stream`. */
  body: JsonObject;
}

/** What the address of a request says on wires whose body does not. */
export interface Target {
  model: string;
  stream: boolean;
}

/** One wire of the sandbox: how a request is read and an answer written. */
export interface SandboxWire {
  /** Addresses that this wire answers; the path without its query. */
  path: RegExp;
  /** Default: POST. */
  method?: 'GET';
  /** Reads a body that is no JSON. Throws the `Refusal` of one that the real service refuses. */
  readBody?(raw: Buffer, request: { headers: IncomingHttpHeaders; url: string }): Promise<JsonObject>;
  /** The sound that a request is billed for, in milliseconds. Absent: none. */
  soundMs?(body: JsonObject): number;
  /** It tells the tokens of a prompt, makes nothing and bills nothing. */
  counts_only?: true;
  /** It answers with vectors or by the second: no word comes out that is counted. */
  makes_vectors?: true;
  /** Model and mode, where the path tells them. Absent: the body does. */
  targetOf?(path: string): Target;
  /** What the request shows as credential. */
  credentialOf(headers: IncomingHttpHeaders): string | undefined;
  credentialRefused(): Refusal;
  modelUnknown(model: string): Refusal;
  /** Throws the `Refusal` of a request that the real service refuses. */
  check(body: JsonObject, headers: IncomingHttpHeaders): void;
  promptTooLong(input_tokens: number): Refusal;
  readPrompt(body: JsonObject): Prompt;
  encodeBody(envelope: Envelope): JsonObject;
  /** One string an event, ready for the socket. */
  encodeStream(envelope: Envelope): Iterable<string>;
  errorBody(refusal: Refusal, id: string): JsonObject;
  /** The error as an event of a stream. */
  errorEvent(refusal: Refusal, id: string): string;
  answerHeaders(id: string): Record<string, string>;
  /** Headers that tell an error beside its body. */
  errorHeaders?(refusal: Refusal): Record<string, string>;
  /** The media type of a stream whose events are bytes, each string one of Latin-1. Absent: an event stream of text. */
  binary_type?: string;
}
