import type { ChatChunk } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { asText, remainder } from '../shared/json-shape.ts';
import { createSlot } from '../shared/slot.ts';
import type { Counts, ItemReader } from './turn-context.ts';
import { extOf, nativeOf, type WireItem } from './wire.ts';

/** What an event says beside its place. */
const PLUMBING = ['sequence_number', 'output_index', 'item_id', 'obfuscation'];

/** An item that the provider made for itself (a search, a call of an MCP server), or of a kind that is still to come. */
export function createNativeReader(item: WireItem, counts: Counts): ItemReader {
  const slot = createSlot(counts, { kind: 'native', native: nativeOf(item) });
  return {
    begin: () => [slot.emit({})],
    add: (event) => [slot.emit({}, { raw: remainder(event, PLUMBING) })],
    end: (finished) => slot.close({}, { native: nativeOf(finished ?? item) }),
  };
}

const MIME: Readonly<Record<string, string>> = { jpeg: 'image/jpeg', webp: 'image/webp' };

/**
 * A picture made by the provider's tool: an image of the answer. The picture itself stands nowhere else; the remainder
 * keeps the rest of the item, its type included, which brings it back as the item it was.
 */
export function createImageReader(item: WireItem, counts: Counts): ItemReader {
  const known = extOf(remainder(item, ['result', 'status']));
  const slot = createSlot(counts, known === undefined ? { kind: 'image' } : { kind: 'image', ext: known });

  function pictureOf(told: WireItem): ChatChunk[] {
    const data = asText(told['result']);
    if (data === '') return [];
    const url = `data:${MIME[asText(told['output_format'])] ?? 'image/png'};base64,${data}`;
    const index = counts.images;
    counts.images += 1;
    return [slot.emit({ images: [{ type: 'image_url', image_url: { url }, index }] })];
  }

  return {
    begin: () => [slot.emit({})],
    add: (event: JsonObject) => [slot.emit({}, { raw: remainder(event, PLUMBING) })],
    end(finished) {
      const told = finished ?? item;
      const ext = extOf(remainder(told, ['result']))!;
      return [...pictureOf(told), ...slot.close({}, { ext })];
    },
  };
}
