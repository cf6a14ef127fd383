import type { Envelope } from '../../inference/state/envelope.ts';
import { WIRE } from '../../providers/openai-responses/wire.ts';
import type { Annotation, ChatChunk, Delta, Slot } from '../../schemas/inner.ts';
import { createBlockOrder } from '../block-order.ts';
import { createCall } from './call-item.ts';
import type { DeclaredTools } from './declared-tools.ts';
import type { Events } from './events.ts';
import type { ItemContext, ItemStatus, ItemWriter, Opening } from './item.ts';
import { createMessage, type MessageWriter } from './message-item.ts';
import { createImage, createNative } from './own-items.ts';
import { createReasoning } from './reasoning-item.ts';

/** What the output of one answer is made with. */
export interface ItemsOptions {
  generation_id: string;
  events: Events;
  tools: DeclaredTools;
  envelope: Envelope;
  hide_reasoning: boolean;
  shows_logprobs: boolean;
}

/** The output of one answer while it grows: chunks go in, events and finished items come out, one item at a time. */
export interface Items {
  take(chunk: ChatChunk): void;
  /** Another upstream goes on with the text; its blocks count anew. */
  resume(): void;
  /** Ends what is open. `status` is that of an item that was open to the last. */
  end(status: ItemStatus): void;
  /** The same without what still waits for its turn. */
  breakOff(): void;
  /** The finished items, each as JSON. */
  readonly output: readonly string[];
}

/** What a chunk says without saying of which block. */
function kindOf(delta: Delta): Slot['kind'] | undefined {
  if (delta.content) return 'text';
  if (delta.refusal) return 'refusal';
  if (delta.reasoning_details?.length || delta.reasoning) return 'reasoning';
  if (delta.tool_calls?.length) return 'call';
  return delta.images?.length ? 'image' : undefined;
}

/** Makes the empty output of one answer. */
export function createItems(options: ItemsOptions): Items {
  const { events, generation_id, hide_reasoning } = options;
  const output: string[] = [];
  const ids = new Set<string>();
  /** What the answer's own ids are made of: the generation's without its dashes. */
  const stem = generation_id.replace(/^gen-/, '').replaceAll('-', '');
  const context: ItemContext = {
    ...options,
    texts: [],
    nextIndex: () => output.length,
    idOf(prefix, told) {
      const id = typeof told === 'string' && told !== '' && !ids.has(told) ? told : `${prefix}_${stem}${output.length}`;
      ids.add(id);
      return id;
    },
  };
  /** The block that the last chunk was of, and the item that it is a part of. */
  let n: number | undefined;
  let kind: Slot['kind'] | undefined;
  let item: ItemWriter | undefined;
  let message: MessageWriter | undefined;
  let has_picture = false;
  let is_resumed = false;
  /** Citations that came before there was a text to cite. */
  let early: Annotation[] = [];

  function finishItem(status: ItemStatus): void {
    if (early.length > 0 && message !== undefined) {
      message.annotate(early);
      early = [];
    }
    const made = item?.finish(status);
    item = undefined;
    message = undefined;
    if (made === undefined) return;
    const json = JSON.stringify(made);
    events.send('response.output_item.done', `,"output_index":${output.length},"item":${json}`);
    output.push(json);
  }

  function makeItem(opening: Opening): ItemWriter {
    switch (opening.kind) {
      case 'reasoning':
        return createReasoning(context);
      case 'call':
        return createCall(context);
      case 'image':
        has_picture = false;
        return createImage(context);
      case 'native':
        return createNative(context);
      default:
        message = createMessage(context);
        return message;
    }
  }

  function open(opening: Opening): void {
    kind = opening.kind;
    if (is_resumed && message !== undefined) message.resume();
    else if (item?.takes(opening) !== true) {
      finishItem('completed');
      item = makeItem(opening);
    }
    is_resumed = false;
    item?.open(opening);
  }

  /** Each picture is an item of its own. */
  function sayImages(chunk: ChatChunk): void {
    const { images = [] } = chunk.delta;
    if (images.length === 0) item?.say(chunk);
    for (const image of images) {
      if (has_picture) open({ kind: 'image' });
      item?.say({ ...chunk, delta: { images: [image] } });
      has_picture = true;
    }
  }

  function say(chunk: ChatChunk): void {
    if (kind === 'image') sayImages(chunk);
    else item?.say(chunk);
  }

  /** Citations of no block in particular. */
  function cite(annotations: readonly Annotation[] = []): void {
    if (message !== undefined) message.annotate(annotations);
    else if (context.texts.length === 0) early.push(...annotations);
  }

  function release(chunk: ChatChunk): void {
    const slot = chunk.ext?.slot;
    if (slot !== undefined) {
      if (slot.n !== n) {
        open(slot.open ?? { kind: kindOf(chunk.delta) ?? 'text' });
        n = slot.n;
      }
      say(chunk);
      if (slot.close === undefined) return;
      item?.close(slot.close);
      n = undefined;
      return;
    }
    const told = kindOf(chunk.delta);
    if (told === undefined) cite(chunk.delta.annotations);
    else if (told !== 'reasoning' || !hide_reasoning) {
      const opens_call = chunk.delta.tool_calls?.[0]?.id !== undefined;
      if (item === undefined || kind !== told || n !== undefined || opens_call) open({ kind: told });
      n = undefined;
      say(chunk);
    }
  }

  const order = createBlockOrder(release, ({ kind: opens, native }) => {
    if (opens === 'native') return native?.wire === WIRE;
    return opens !== 'audio' && (opens !== 'reasoning' || !hide_reasoning);
  });

  return {
    take: order.take,
    resume() {
      order.flush();
      n = undefined;
      is_resumed = true;
    },
    end(status) {
      order.flush();
      finishItem(status);
    },
    breakOff: () => finishItem('incomplete'),
    output,
  };
}
