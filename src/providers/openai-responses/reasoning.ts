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
 * Reads a reasoning item: a detail for each part of its summary and content, and one for the encrypted content. The encrypted content
 * at the start of the item is a shorter placeholder; only that of the finished item counts (translation R3). `signature` and `format`
 * are the public API's own: a text's signature, and the vendor's format of the item.
 */
export function createReasoningReader(item: WireItem, { counts, state, history }: TurnContext): ItemReader {
  const { status: _unfinished, ...known } = remainder(item, KNOWN);
  const opening = extOf(known);
  const slot = createSlot(counts, opening === undefined ? { kind: 'reasoning' } : { kind: 'reasoning', ext: opening });
  const format = asText(item['format']) || (state.reasoning_format ?? OPENAI_FORMAT);
  /** The indexes of the details, by their part. */
  const indexes = new Map<string, number>();

  function indexFor(key: string): number {
    let index = indexes.get(key);
    if (index === undefined) {
      index = counts.details;
      counts.details += 1;
      indexes.set(key, index);
    }
    return index;
  }

  function emitText(kind: Kind, part: JsonValue | undefined, text: string): ChatChunk[] {
    if (text === '') return [];
    const index = indexFor(`${kind} ${part ?? 0}`);
    const detail: ReasoningDetail =
      kind === 'summary'
        ? { type: 'reasoning.summary', summary: text, format, index }
        : { type: 'reasoning.text', text, format, index };
    return [slot.emit({ reasoning_details: [detail], reasoning: text })];
  }

  function emitMissing(kind: Kind, parts: JsonValue | undefined): ChatChunk[] {
    return asArray(parts).flatMap((part, i) =>
      indexes.has(`${kind} ${i}`) ? [] : emitText(kind, i, asText(asObject(part)?.['text'])),
    );
  }

  /** Emits a signature for the last text, or for a text that is hidden. */
  function emitSignature(source: JsonObject): ChatChunk[] {
    const signature = asText(source['signature']);
    if (signature === '') return [];
    const last = Math.max(0, asArray(source['content']).length - 1);
    const index = indexFor(`text ${last}`);
    return [slot.emit({ reasoning_details: [{ type: 'reasoning.text', signature, format, index }] })];
  }

  function emitEncrypted(source: JsonObject): ChatChunk[] {
    const data = asText(source['encrypted_content']);
    if (data === '') return [];
    const id = asText(source['id']) || null;
    return [
      slot.emit({
        reasoning_details: [{ type: 'reasoning.encrypted', data, format, id, index: indexFor('encrypted') }],
      }),
    ];
  }

  /** Emits details that were restored from the item's encrypted content. They lack the texts that the item itself shows. */
  function emitRestored(details: readonly ReasoningDetail[], source: JsonObject): ChatChunk[] {
    return fillDetails(details, source).map((detail) => {
      const index = counts.details;
      counts.details += 1;
      return slot.emit({ reasoning_details: [{ ...detail, index }] });
    });
  }

  return {
    // The slot is opened at once, since its last chunk must precede the following items.
    begin: () => [slot.emit({})],
    add(event) {
      const text = asText(event['delta']);
      if (event['type'] === 'response.reasoning_summary_text.delta')
        return emitText('summary', event['summary_index'], text);
      return event['type'] === 'response.reasoning_text.delta' ? emitText('text', event['content_index'], text) : [];
    },
    end(finished) {
      if (finished === undefined) return slot.close();
      const unwrap = (name: string) => history?.unwrap?.(asText(finished[name]));
      const restored = unwrap('encrypted_content') ?? unwrap('signature');
      // If restored details are not valid, only the readable parts of the item are kept.
      const source = restored === undefined ? finished : { ...finished, encrypted_content: '', signature: '' };
      const chunks = restored?.length
        ? emitRestored(restored, source)
        : [
            ...emitMissing('summary', source['summary']),
            ...emitMissing('text', source['content']),
            ...emitSignature(source),
            ...emitEncrypted(source),
          ];
      const ext = extOf(remainder(finished, KNOWN));
      append(chunks, slot.close({}, ext === undefined ? {} : { ext }));
      return chunks;
    },
  };
}

/**
 * Adds the texts of the item to its restored details, which do not contain them: a text that is null and a summary that is empty are
 * the item's next one; so is the single empty text of an envelope of the Messages API.
 */
function fillDetails(details: readonly ReasoningDetail[], source: JsonObject): ReasoningDetail[] {
  const textsOf = (parts: JsonValue | undefined) => asArray(parts).map((part) => asText(asObject(part)?.['text']));
  const summaries = textsOf(source['summary']);
  const texts = textsOf(source['content']);
  const isSingle = details.filter(({ type }) => type !== 'reasoning.encrypted').length === 1;
  return details.map((detail) => {
    if (detail.type === 'reasoning.summary' && detail.summary === '')
      return { ...detail, summary: summaries.shift() ?? '' };
    if (detail.type === 'reasoning.text' && (detail.text === null || (isSingle && detail.text === ''))) {
      return { ...detail, text: texts.shift() ?? '' };
    }
    return detail;
  });
}
