import { restOf } from '../../providers/openai-responses/wire.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { announce, type ItemContext, type ItemWriter, type Place } from './item.ts';

/** An event of this very wire, said again in its new place. */
function sayAgain({ events }: ItemContext, place: Place | undefined, raw: JsonObject | undefined): void {
  if (raw === undefined || place === undefined || !events.are_read) return;
  const { type, ...fields } = raw;
  const json = JSON.stringify(fields).slice(1, -1);
  events.send(String(type), json === '' ? place.json : `${place.json},${json}`);
}

/** An item that an upstream of this wire made for itself: as it came, its events with it. */
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
    say: ({ ext }) => sayAgain(context, place, ext?.slot?.raw),
    close({ native }) {
      block = native?.block ?? block;
    },
    finish: () => (place === undefined ? undefined : { ...block, id: place.id }),
  };
}

/** A picture: an item of OpenAI's own tool for them, whoever made it. */
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
    say({ delta, ext }) {
      sayAgain(context, place, ext?.slot?.raw);
      for (const { image_url } of delta.images ?? []) {
        const { json } = begin();
        // What is no data URL is told as it is.
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
