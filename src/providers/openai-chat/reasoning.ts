import type { ReasoningDetail } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { createThinkStripper } from './think-tags.ts';
import { isObject, scalarText, textOf, type WireMessage } from './wire.ts';

const NONE: readonly ReasoningDetail[] = [];

/**
 * Reads reasoning from all fields that providers of this wire use, as one list of details numbered from 0. `stripTags` removes
 * literal think tags.
 */
export class ReasoningReader {
  readonly #stripper: ReturnType<typeof createThinkStripper> | undefined;
  /** Our numbers, by the upstream's type and index. */
  #numbers: Map<string, number> | undefined = undefined;
  #count = 0;
  #plain: number | undefined = undefined;
  #hasReadable = false;

  constructor(stripTags: boolean) {
    this.#stripper = stripTags ? createThinkStripper() : undefined;
  }

  /** `isWhole`: every entry of the list is a detail of its own, whatever its index. */
  read(message: WireMessage, isWhole: boolean): readonly ReasoningDetail[] {
    const entries = message.reasoning_details;
    if (Array.isArray(entries) && entries.length > 0) {
      const details: ReasoningDetail[] = [];
      for (let position = 0; position < entries.length; position += 1) {
        const entry = entries[position];
        const detail = isObject(entry) ? detailOf(entry) : undefined;
        if (detail === undefined || !isObject(entry)) continue;
        detail.index = this.#number(entry, isWhole, position);
        details.push(detail);
      }
      this.#hasReadable ||= details.some(isReadable);
      return this.#hasReadable ? details : [...this.#readString(message), ...details];
    }
    return this.#readString(message);
  }

  /** Reads reasoning that is part of the content. */
  readText(text: string): readonly ReasoningDetail[] {
    const kept = this.#stripper === undefined ? text : this.#stripper.push(text);
    return kept === '' ? NONE : [this.#plainDetail(kept)];
  }

  /** Google's compatible endpoint: the signature of a call's thought, under the call's id. */
  readSignature(signature: string, callId: string | undefined): readonly ReasoningDetail[] {
    const index = this.#count;
    this.#count += 1;
    return [{ type: 'reasoning.encrypted', data: signature, format: 'google-gemini-v1', id: callId ?? null, index }];
  }

  /** Ends the current detail, before other output. */
  closeBlock(): void {
    this.#plain = undefined;
    this.#numbers = undefined;
  }

  end(): readonly ReasoningDetail[] {
    const rest = this.#stripper?.end() ?? '';
    return rest === '' ? NONE : [this.#plainDetail(rest)];
  }

  #readString(message: WireMessage): readonly ReasoningDetail[] {
    // With readable details, the string repeats their text.
    const text = this.#hasReadable
      ? undefined
      : (scalarText(message.reasoning_content) ?? scalarText(message.reasoning));
    return text === undefined ? NONE : this.readText(text);
  }

  #plainDetail(text: string): ReasoningDetail {
    if (this.#plain === undefined) {
      this.#plain = this.#count;
      this.#count += 1;
    }
    return { type: 'reasoning.text', text, format: 'unknown', id: null, index: this.#plain };
  }

  #number(detail: JsonObject, isWhole: boolean, position: number): number {
    // An encrypted detail is always complete; some gateways give it the index of the summary before it.
    const key =
      isWhole || detail['type'] === 'reasoning.encrypted'
        ? undefined
        : `${detail['type']}:${typeof detail['index'] === 'number' ? detail['index'] : position}`;
    const known = key === undefined ? undefined : this.#numbers?.get(key);
    if (known !== undefined) return known;
    const number = this.#count;
    this.#count += 1;
    if (key !== undefined) {
      this.#numbers ??= new Map();
      this.#numbers.set(key, number);
    }
    return number;
  }
}

function isReadable(detail: ReasoningDetail): boolean {
  return detail.type === 'reasoning.summary' || (detail.type === 'reasoning.text' && !!detail.text);
}

function detailOf(entry: JsonObject): ReasoningDetail | undefined {
  const common = {
    // Clients take a missing format for Anthropic's and then strip unsigned text.
    format: textOf(entry['format']) ?? 'unknown',
    id: textOf(entry['id']) ?? null,
  };
  if (entry['type'] === 'reasoning.summary') {
    const summary = textOf(entry['summary']);
    return summary === undefined ? undefined : { type: 'reasoning.summary', summary, ...common };
  }
  if (entry['type'] === 'reasoning.encrypted') {
    const data = textOf(entry['data']);
    return data === undefined ? undefined : { type: 'reasoning.encrypted', data, ...common };
  }
  if (entry['type'] !== 'reasoning.text') return undefined;
  const text = typeof entry['text'] === 'string' ? entry['text'] : undefined;
  const signature = textOf(entry['signature']);
  if (text === undefined && signature === undefined) return undefined;
  return {
    type: 'reasoning.text',
    ...(text === undefined ? {} : { text }),
    ...(signature === undefined ? {} : { signature }),
    ...common,
  };
}
