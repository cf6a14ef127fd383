import type { Envelope } from '../../inference/reasoning/envelope.ts';
import { isOwn } from '../../providers/openai-responses/wire.ts';
import type { ChatChunk, Delta, Slot } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { createBlockOrder } from '../shared/block-order.ts';
import { createCall } from './call-item.ts';
import { createCitations } from './citations.ts';
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
  wants_summary: boolean;
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
  readonly output: readonly OutputItem[];
}

/** A finished item, and the same as JSON, which is written when it is first asked for. */
export class OutputItem {
  readonly value: JsonObject;
  #json: string | undefined;

  constructor(value: JsonObject, json?: string) {
    this.value = value;
    this.#json = json;
  }

  get json(): string {
    this.#json ??= JSON.stringify(this.value);
    return this.#json;
  }
}

/** What a chunk says without saying of which block. */
function kindOf(delta: Delta): Slot['kind'] | undefined {
  if (delta.content) return 'text';
  if (delta.refusal) return 'refusal';
  if (delta.reasoning_details?.length || delta.reasoning) return 'reasoning';
  if (delta.tool_calls?.length) return 'call';
  return delta.images?.length ? 'image' : undefined;
}

/** An item, and the same where it is a message. */
interface Item {
  writer: ItemWriter;
  message: MessageWriter | undefined;
}

/** A message that is over: where it stands, and how it ended. */
interface Former {
  message: MessageWriter;
  at: number;
  status: ItemStatus;
}

/** Makes the empty output of one answer. */
export function createItems(options: ItemsOptions): Items {
  const { events, generation_id, hide_reasoning } = options;
  const output: OutputItem[] = [];
  const citations = createCitations();
  const messages: Former[] = [];
  const ids = new Set<string>();
  /** What the answer's own ids are made of: the generation's without its dashes. */
  const stem = generation_id.replace(/^gen-/, '').replaceAll('-', '');
  const context: ItemContext = {
    ...options,
    citations,
    nextIndex() {
      if (former !== undefined) finish(former, 'completed');
      former = undefined;
      isAnnounced = true;
      return output.length;
    },
    idOf(prefix, told) {
      const nth = output.length + (former === undefined ? 0 : 1);
      const id = typeof told === 'string' && told !== '' && !ids.has(told) ? told : `${prefix}_${stem}${nth}`;
      ids.add(id);
      return id;
    },
  };
  /** The block that the last chunk was of, and the item that it is a part of. */
  let n: number | undefined;
  let kind: Slot['kind'] | undefined;
  let item: Item | undefined;
  /** Whether the item has said anything. Until then the one before it is not over: blocks that say nothing are none (translation E5). */
  let isAnnounced = false;
  let former: Item | undefined;
  let hasPicture = false;
  let isResumed = false;

  function finishedItem(made: JsonObject, message: MessageWriter | undefined): OutputItem {
    return new OutputItem(made, events.are_read ? message?.jsonOf(made) : undefined);
  }

  function finish({ writer, message }: Item, status: ItemStatus): void {
    if (message !== undefined) citations.settle();
    const made = writer.finish(status);
    if (made === undefined) return;
    const finished = finishedItem(made, message);
    if (message !== undefined) messages.push({ message, at: output.length, status });
    if (events.are_read) {
      events.send('response.output_item.done', `,"output_index":${output.length},"item":${finished.json}`);
    }
    output.push(finished);
  }

  /** Goes back to the item before one that said nothing. */
  function leaveUnannounced(): void {
    if (item === undefined || isAnnounced) return;
    item = former;
    former = undefined;
    isAnnounced = item !== undefined;
  }

  function makeItem(opening: Opening): Item {
    switch (opening.kind) {
      case 'reasoning':
        return { writer: createReasoning(context), message: undefined };
      case 'call':
        return { writer: createCall(context), message: undefined };
      case 'image':
        hasPicture = false;
        return { writer: createImage(context), message: undefined };
      case 'native':
        return { writer: createNative(context), message: undefined };
      default: {
        const message = createMessage(context);
        return { writer: message, message };
      }
    }
  }

  function open(opening: Opening): void {
    kind = opening.kind;
    leaveUnannounced();
    if (isResumed && item?.message !== undefined) item.message.resume();
    else if (item?.writer.takes(opening) !== true) {
      former = item;
      item = makeItem(opening);
      isAnnounced = false;
    }
    isResumed = false;
    item?.writer.open(opening);
  }

  /** Each picture is an item of its own. */
  function sayImages(chunk: ChatChunk): void {
    const { images = [] } = chunk.delta;
    if (images.length === 0) item?.writer.say(chunk);
    for (const image of images) {
      if (hasPicture) open({ kind: 'image' });
      item?.writer.say({ ...chunk, delta: { images: [image] } });
      hasPicture = true;
    }
  }

  function say(chunk: ChatChunk): void {
    if (kind === 'image') sayImages(chunk);
    else item?.writer.say(chunk);
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
      item?.writer.close(slot.close);
      n = undefined;
      return;
    }
    const told = kindOf(chunk.delta);
    if (told === undefined) {
      citations.take(chunk.delta.annotations ?? []);
      if (chunk.logprobs != null) (item?.message ?? former?.message)?.say({ delta: {}, logprobs: chunk.logprobs });
    } else if (told !== 'reasoning' || !hide_reasoning) {
      const opensCall = chunk.delta.tool_calls?.[0]?.id !== undefined;
      if (item === undefined || kind !== told || n !== undefined || opensCall) open({ kind: told });
      n = undefined;
      say(chunk);
    }
  }

  function endItem(status: ItemStatus): void {
    leaveUnannounced();
    citations.settleOpen();
    if (item !== undefined) finish(item, status);
    item = undefined;
    if (!citations.settleClosed()) return;
    for (const { message, at, status: ended } of messages) {
      const made = message.finish(ended);
      if (made !== undefined) output[at] = finishedItem(made, message);
    }
  }

  const order = createBlockOrder(release, ({ kind: opens, native }) => {
    if (opens === 'native') return isOwn(native);
    return opens !== 'audio' && (opens !== 'reasoning' || !hide_reasoning);
  });

  return {
    take: order.take,
    resume() {
      order.flush();
      n = undefined;
      isResumed = true;
    },
    end(status) {
      order.flush();
      endItem(status);
    },
    breakOff: () => endItem('incomplete'),
    output,
  };
}
