import type { ReasoningDetail } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { createThinkStripper } from './think-tags.ts';
import { isObject, saidOf, textOf, type WireMessage } from './wire.ts';

const NONE: readonly ReasoningDetail[] = [];

/**
 * Brings the places where providers of this wire put reasoning into one list of details, numbered from 0. `strip_tags` takes
 * literal think tags out of the reasoning.
 */
export class ReasoningReader {
  readonly #stripper: ReturnType<typeof createThinkStripper> | undefined;
  /** Ours, by the upstream's type and index. */
  #numbers: Map<string, number> | undefined = undefined;
  #count = 0;
  #plain: number | undefined = undefined;
  #hasReadable = false;

  constructor(stripTags: boolean) {
    this.#stripper = stripTags ? createThinkStripper() : undefined;
  }

  /** `is_whole`: every detail of the list is one of its own, whatever its index says. */
  read(message: WireMessage, isWhole: boolean): readonly ReasoningDetail[] {
    const told = message.reasoning_details;
    if (Array.isArray(told) && told.length > 0) {
      const details: ReasoningDetail[] = [];
      for (let position = 0; position < told.length; position += 1) {
        const entry = told[position];
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

  /** Reasoning that was found in the content. */
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

  /** Something else was said: what comes now is another detail. */
  closeBlock(): void {
    this.#plain = undefined;
    this.#numbers = undefined;
  }

  end(): readonly ReasoningDetail[] {
    const rest = this.#stripper?.end() ?? '';
    return rest === '' ? NONE : [this.#plainDetail(rest)];
  }

  #readString(message: WireMessage): readonly ReasoningDetail[] {
    // Beside details with text, the string says the same once more.
    const text = this.#hasReadable ? undefined : (saidOf(message.reasoning_content) ?? saidOf(message.reasoning));
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
    // An encrypted detail always comes whole; some gateways number it like the summary before it.
    const key =
      isWhole || detail['type'] === 'reasoning.encrypted'
        ? undefined
        : `${detail['type']}:${typeof detail['index'] === 'number' ? detail['index'] : position}`;
    const told = key === undefined ? undefined : this.#numbers?.get(key);
    if (told !== undefined) return told;
    const ours = this.#count;
    this.#count += 1;
    if (key !== undefined) {
      this.#numbers ??= new Map();
      this.#numbers.set(key, ours);
    }
    return ours;
  }
}

function isReadable(detail: ReasoningDetail): boolean {
  return detail.type === 'reasoning.summary' || (detail.type === 'reasoning.text' && !!detail.text);
}

function detailOf(entry: JsonObject): ReasoningDetail | undefined {
  const common = {
    // Clients take an absent format for Anthropic's and then strip unsigned text.
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
