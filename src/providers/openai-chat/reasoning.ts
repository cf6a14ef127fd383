import type { ReasoningDetail } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { createThinkStripper } from './think-tags.ts';
import { isObject, textOf, type WireMessage } from './wire.ts';

/** Brings the places where providers of this wire put reasoning into one list of details, numbered from 0. */
export interface ReasoningReader {
  /** `is_whole`: every detail of the list is one of its own, whatever its index says. */
  read(message: WireMessage, is_whole: boolean): ReasoningDetail[];
  /** Reasoning that was found in the content. */
  readText(text: string): ReasoningDetail[];
  /** Google's compatible endpoint: the signature of a call's thought, under the call's id. */
  readSignature(signature: string, call_id: string | undefined): ReasoningDetail[];
  /** Something else was said: what comes now is another detail. */
  closeBlock(): void;
  end(): ReasoningDetail[];
}

/** Makes the reader of one answer. `strip_tags` takes literal think tags out of the reasoning. */
export function createReasoningReader(strip_tags: boolean): ReasoningReader {
  const stripper = strip_tags ? createThinkStripper() : undefined;
  /** Ours, by the upstream's type and index. */
  const numbers = new Map<string, number>();
  let count = 0;
  let plain: number | undefined;
  let hasReadable = false;

  function readString(message: WireMessage): ReasoningDetail[] {
    // Beside details with text, the string says the same once more.
    const text = hasReadable ? undefined : (textOf(message.reasoning_content) ?? textOf(message.reasoning));
    return text === undefined ? [] : readText(text);
  }

  function readText(text: string): ReasoningDetail[] {
    const kept = stripper === undefined ? text : stripper.push(text);
    return kept === '' ? [] : [plainDetail(kept)];
  }

  function plainDetail(text: string): ReasoningDetail {
    if (plain === undefined) {
      plain = count;
      count += 1;
    }
    return { type: 'reasoning.text', text, format: 'unknown', id: null, index: plain };
  }

  function number(detail: JsonObject, is_whole: boolean, position: number): number {
    // An encrypted detail always comes whole; some gateways number it like the summary before it.
    const key =
      is_whole || detail['type'] === 'reasoning.encrypted'
        ? undefined
        : `${detail['type']}:${typeof detail['index'] === 'number' ? detail['index'] : position}`;
    const told = key === undefined ? undefined : numbers.get(key);
    if (told !== undefined) return told;
    const ours = count;
    count += 1;
    if (key !== undefined) numbers.set(key, ours);
    return ours;
  }

  return {
    readText,
    read(message, is_whole) {
      const told = message.reasoning_details;
      if (Array.isArray(told) && told.length > 0) {
        const details: ReasoningDetail[] = [];
        for (let position = 0; position < told.length; position += 1) {
          const entry = told[position];
          const detail = isObject(entry) ? detailOf(entry) : undefined;
          if (detail === undefined || !isObject(entry)) continue;
          detail.index = number(entry, is_whole, position);
          details.push(detail);
        }
        hasReadable ||= details.some(isReadable);
        return hasReadable ? details : [...readString(message), ...details];
      }
      return readString(message);
    },
    readSignature(signature, call_id) {
      const index = count;
      count += 1;
      return [{ type: 'reasoning.encrypted', data: signature, format: 'google-gemini-v1', id: call_id ?? null, index }];
    },
    closeBlock() {
      plain = undefined;
      numbers.clear();
    },
    end() {
      const rest = stripper?.end() ?? '';
      return rest === '' ? [] : [plainDetail(rest)];
    },
  };
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
