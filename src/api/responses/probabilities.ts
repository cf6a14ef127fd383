import { asArray, asObject } from '../../providers/shared/json-shape.ts';
import { append } from '../../schemas/append.ts';
import type { ChatChunk } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { JsonPart } from '../shared/json-parts.ts';
import { TextPieces } from './text-pieces.ts';

/** Tokens of a whole answer that are written at once. */
const TOKENS_WRITTEN = 100;

/** The probabilities of the tokens of one part. */
export interface Probabilities {
  /** Adds those of a chunk. Returns their JSON text for its event if events are used. */
  add(logprobs: ChatChunk['logprobs']): string;
  /** The JSON text of all entries, for the event that ends the text. */
  shown(): readonly string[];
  /** The JSON of all entries in a finished part. */
  finished(): readonly JsonPart[];
}

/** For events: the entries are kept as text, since objects take several times the memory. */
export class WrittenProbabilities implements Probabilities {
  readonly #shown = new TextPieces();
  /** Undefined as long as both texts are the same. */
  #finished: TextPieces | undefined = undefined;
  #isEmpty = true;

  add(logprobs: ChatChunk['logprobs']): string {
    const entries = tokensOf(logprobs).map((token) => ofEach(token, withoutNullBytes));
    if (entries.length === 0) return '';
    const comma = this.#isEmpty ? '' : ',';
    this.#isEmpty = false;
    const text = JSON.stringify(entries).slice(1, -1);
    if (this.#finished === undefined && entries.some(lacksBytes)) this.#finished = this.#shown.copy();
    this.#finished?.add(comma + membersOf(entries.map((entry) => ofEach(entry, withBytes))));
    this.#shown.add(comma + text);
    return text;
  }

  shown(): readonly string[] {
    return this.#shown.all();
  }

  finished(): readonly string[] {
    return (this.#finished ?? this.#shown).all();
  }
}

/** For a whole answer: the entries are written as its provider sent them, when their turn comes. */
export class ReceivedProbabilities implements Probabilities {
  readonly #tokens: JsonValue[] = [];

  add(logprobs: ChatChunk['logprobs']): string {
    append(this.#tokens, tokensOf(logprobs));
    return '';
  }

  shown(): readonly string[] {
    return [];
  }

  finished(): readonly JsonPart[] {
    const parts: JsonPart[] = [];
    for (let at = 0; at < this.#tokens.length; at += TOKENS_WRITTEN) {
      const tokens = () => this.#tokens.slice(at, at + TOKENS_WRITTEN);
      parts.push({
        write: () => (at === 0 ? '' : ',') + membersOf(tokens().map((token) => ofEach(token, finishedToken))),
      });
    }
    return parts;
  }
}

function tokensOf(logprobs: ChatChunk['logprobs']): JsonValue[] {
  return asArray(asObject(logprobs)?.['content']);
}

function membersOf(list: readonly JsonObject[]): string {
  return JSON.stringify(list).slice(1, -1);
}

function ofEach(value: JsonValue, convert: (token: JsonObject) => JsonObject): JsonObject {
  const { top_logprobs, ...token } = asObject(value) ?? {};
  return { ...convert(token), top_logprobs: asArray(top_logprobs).map((top) => convert(asObject(top) ?? {})) };
}

/** Unknown bytes are omitted, since events of this API have none. */
function withoutNullBytes({ bytes, ...entry }: JsonObject): JsonObject {
  return bytes == null ? entry : { ...entry, bytes };
}

const utf8 = new TextEncoder();

/** Matches a token that is part of a character: OpenAI writes `bytes:\xe2\x80`. */
const BROKEN = /^bytes:|\ufffd/;

/** Adds the bytes of a token in a finished part: those of its text if the provider sends none and they are known. */
function withBytes(entry: JsonObject): JsonObject {
  const { token } = entry;
  const isKnown = entry['bytes'] !== undefined || typeof token !== 'string' || BROKEN.test(token);
  return isKnown ? entry : { ...entry, bytes: [...utf8.encode(token)] };
}

function finishedToken(token: JsonObject): JsonObject {
  return withBytes(withoutNullBytes(token));
}

function lacksBytes(entry: JsonObject): boolean {
  const alternatives = entry['top_logprobs'] as JsonObject[];
  return entry['bytes'] === undefined || alternatives.some((other) => other['bytes'] === undefined);
}
