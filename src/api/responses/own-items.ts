import { restOf } from '../../providers/openai-responses/wire.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { announce, type ItemContext, type ItemWriter, type Place } from './item.ts';

/** Sends an event of this wire again, with its place in this answer. */
function forwardEvent({ events }: ItemContext, place: Place | undefined, raw: JsonObject | undefined): void {
  if (raw === undefined || place === undefined || !events.are_read) return;
  const { type, ...fields } = raw;
  const json = JSON.stringify(fields).slice(1, -1);
  events.send(String(type), json === '' ? place.json : `${place.json},${json}`);
}

/** Writes an item that an upstream of this wire made, with its events. */
export function createNative(context: ItemContext): ItemWriter {
  let place: Place | undefined;
  let block: JsonObject = {};
  return {
    takes: () => false,
    open({ native }) {
      block = native?.block ?? {};
      const id = context.idOf('item', block['id']);
      place = announce(context, id, { ...block, id });
    },
    write: ({ ext }) => forwardEvent(context, place, ext?.slot?.raw),
    close({ native }) {
      block = native?.block ?? block;
    },
    finish: () => (place === undefined ? undefined : { ...block, id: place.id }),
  };
}

/** Writes an image as an item of OpenAI's image tool, whoever made it. */
export function createImage(context: ItemContext): ItemWriter {
  const { events } = context;
  let rest: JsonObject = {};
  let place: Place | undefined;
  let result: string | null = null;

  function begin(): Place {
    if (place !== undefined) return place;
    const id = context.idOf('ig', rest['id']);
    const { status: _, ...known } = rest;
    place = announce(context, id, { ...known, id, type: 'image_generation_call', status: 'in_progress', result: null });
    return place;
  }

  return {
    takes: () => false,
    open({ ext }) {
      rest = restOf(ext);
      if (rest['id'] !== undefined) begin();
    },
    write({ delta, ext }) {
      forwardEvent(context, place, ext?.slot?.raw);
      for (const { image_url } of delta.images ?? []) {
        const { json } = begin();
        // An address that is no data URL is sent as it is.
        result = image_url.url.slice(/^data:[^,]*,/.exec(image_url.url)?.[0].length ?? 0);
        if (rest['id'] !== undefined) continue;
        events.send('response.image_generation_call.in_progress', json);
        events.send('response.image_generation_call.completed', json);
      }
    },
    close: ({ ext }) => {
      rest = { ...rest, ...restOf(ext), ...(rest['id'] === undefined ? {} : { id: rest['id'] }) };
    },
    finish(status) {
      if (place === undefined) return undefined;
      const { id: _, ...known } = rest;
      return { status, ...known, id: place.id, type: 'image_generation_call', result };
    },
  };
}
