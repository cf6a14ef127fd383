import { append } from '../../schemas/append.ts';
import type { ChatChunk, ReasoningDetail } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { asArray, asObject, asText, remainder } from '../shared/json-shape.ts';
import { createSlot } from '../shared/slot.ts';
import type { ItemReader, TurnContext } from './turn-context.ts';
import { extOf, OPENAI_FORMAT, type WireItem } from './wire.ts';

const KNOWN = ['type', 'summary', 'content', 'encrypted_content', 'signature', 'format'];

type Kind = 'summary' | 'text';

/**
 * A reasoning item: a detail for each part of its summary and of its content, and one for what is encrypted. The encrypted
 * content that the item opens with is a shorter placeholder; only the finished item's counts (translation R3). `signature`
 * and `format` are the public API's own: a text's signature, and whose form the item has.
 */
export function createReasoningReader(item: WireItem, { counts, state, history }: TurnContext): ItemReader {
  const { status: _unfinished, ...known } = remainder(item, KNOWN);
  const opening = extOf(known);
  const slot = createSlot(counts, opening === undefined ? { kind: 'reasoning' } : { kind: 'reasoning', ext: opening });
  const format = asText(item['format']) || (state.reasoning_format ?? OPENAI_FORMAT);
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
    return [slot.emit({ reasoning_details: [detail], reasoning: text })];
  }

  function sayMissing(kind: Kind, parts: JsonValue | undefined): ChatChunk[] {
    return asArray(parts).flatMap((part, i) =>
      indexes.has(`${kind} ${i}`) ? [] : say(kind, i, asText(asObject(part)?.['text'])),
    );
  }

  /** A signature is of the text before it, or of one that is not shown. */
  function saySignature(told: JsonObject): ChatChunk[] {
    const signature = asText(told['signature']);
    if (signature === '') return [];
    const last = Math.max(0, asArray(told['content']).length - 1);
    const index = take(`text ${last}`);
    return [slot.emit({ reasoning_details: [{ type: 'reasoning.text', signature, format, index }] })];
  }

  function sayEncrypted(told: JsonObject): ChatChunk[] {
    const data = asText(told['encrypted_content']);
    if (data === '') return [];
    const id = asText(told['id']) || null;
    return [
      slot.emit({ reasoning_details: [{ type: 'reasoning.encrypted', data, format, id, index: take('encrypted') }] }),
    ];
  }

  /** The details as they were made; what the item itself shows of them is not in them. */
  function sayCarried(details: readonly ReasoningDetail[], told: JsonObject): ChatChunk[] {
    return fillDetails(details, told).map((detail) => {
      const index = counts.details;
      counts.details += 1;
      return slot.emit({ reasoning_details: [{ ...detail, index }] });
    });
  }

  return {
    // The place is taken at once: what it says last must not come after what follows it.
    begin: () => [slot.emit({})],
    add(event) {
      const text = asText(event['delta']);
      if (event['type'] === 'response.reasoning_summary_text.delta')
        return say('summary', event['summary_index'], text);
      return event['type'] === 'response.reasoning_text.delta' ? say('text', event['content_index'], text) : [];
    },
    end(finished) {
      if (finished === undefined) return slot.close();
      const unwrap = (name: string) => history?.unwrap?.(asText(finished[name]));
      const carried = unwrap('encrypted_content') ?? unwrap('signature');
      // Of what was carried and is not to be believed, only what everybody may read is left.
      const told = carried === undefined ? finished : { ...finished, encrypted_content: '', signature: '' };
      const chunks = carried?.length
        ? sayCarried(carried, told)
        : [
            ...sayMissing('summary', told['summary']),
            ...sayMissing('text', told['content']),
            ...saySignature(told),
            ...sayEncrypted(told),
          ];
      const ext = extOf(remainder(finished, KNOWN));
      append(chunks, slot.close({}, ext === undefined ? {} : { ext }));
      return chunks;
    },
  };
}

/**
 * Details that were carried without what their item shows: a text that is null, and a summary that is empty, are the item's
 * next one; so is the one text of an envelope that the Messages API made, which is empty.
 */
function fillDetails(details: readonly ReasoningDetail[], told: JsonObject): ReasoningDetail[] {
  const textsOf = (parts: JsonValue | undefined) => asArray(parts).map((part) => asText(asObject(part)?.['text']));
  const summaries = textsOf(told['summary']);
  const texts = textsOf(told['content']);
  const isOne = details.filter(({ type }) => type !== 'reasoning.encrypted').length === 1;
  return details.map((detail) => {
    if (detail.type === 'reasoning.summary' && detail.summary === '')
      return { ...detail, summary: summaries.shift() ?? '' };
    if (detail.type === 'reasoning.text' && (detail.text === null || (isOne && detail.text === ''))) {
      return { ...detail, text: texts.shift() ?? '' };
    }
    return detail;
  });
}
