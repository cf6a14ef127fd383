import type { ChatChunk, ReasoningDetail } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asArray, asObject, asText, remainder } from '../json-shape.ts';
import { createSlot } from '../slot.ts';
import type { ItemReader, TurnContext } from './turn.ts';
import { extOf, OPENAI_FORMAT, type WireItem } from './wire.ts';

const KNOWN = ['type', 'summary', 'content', 'encrypted_content'];

type Kind = 'summary' | 'text';

/**
 * A reasoning item: a detail for each part of its summary and of its content, and one for what is encrypted. The encrypted
 * content that the item opens with is a shorter placeholder; only the finished item's counts (translation R3).
 */
export function createReasoningReader(item: WireItem, { counts, state }: TurnContext): ItemReader {
  const { status: _unfinished, ...known } = remainder(item, KNOWN);
  const opening = extOf(known);
  const slot = createSlot(counts, opening === undefined ? { kind: 'reasoning' } : { kind: 'reasoning', ext: opening });
  const format = state.reasoning_format ?? OPENAI_FORMAT;
  /** The indexes of the details, by the part that they are of. */
  const indexes = new Map<string, number>();

  function take(key: string): number {
    let index = indexes.get(key);
    if (index === undefined) {
      index = counts.details;
      counts.details += 1;
      indexes.set(key, index);
    }
    return index;
  }

  function say(kind: Kind, part: JsonValue | undefined, text: string): ChatChunk[] {
    if (text === '') return [];
    const index = take(`${kind} ${part ?? 0}`);
    const detail: ReasoningDetail =
      kind === 'summary'
        ? { type: 'reasoning.summary', summary: text, format, index }
        : { type: 'reasoning.text', text, format, index };
    return [slot.say({ reasoning_details: [detail], reasoning: text })];
  }

  function sayMissing(kind: Kind, parts: JsonValue | undefined): ChatChunk[] {
    return asArray(parts).flatMap((part, i) =>
      indexes.has(`${kind} ${i}`) ? [] : say(kind, i, asText(asObject(part)?.['text'])),
    );
  }

  function sayEncrypted(told: JsonObject): ChatChunk[] {
    const data = asText(told['encrypted_content']);
    if (data === '') return [];
    const id = asText(told['id']) || null;
    return [
      slot.say({ reasoning_details: [{ type: 'reasoning.encrypted', data, format, id, index: take('encrypted') }] }),
    ];
  }

  return {
    // The place is taken at once: what it says last must not come after what follows it.
    begin: () => [slot.say({})],
    add(event) {
      const text = asText(event['delta']);
      if (event['type'] === 'response.reasoning_summary_text.delta')
        return say('summary', event['summary_index'], text);
      return event['type'] === 'response.reasoning_text.delta' ? say('text', event['content_index'], text) : [];
    },
    end(finished) {
      if (finished === undefined) return slot.close();
      const chunks = [
        ...sayMissing('summary', finished['summary']),
        ...sayMissing('text', finished['content']),
        ...sayEncrypted(finished),
      ];
      const ext = extOf(remainder(finished, KNOWN));
      chunks.push(...slot.close({}, ext === undefined ? {} : { ext }));
      return chunks;
    },
  };
}
