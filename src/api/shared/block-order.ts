import { GatewayError } from '../../errors.ts';
import { deltasOf } from '../../schemas/chunks.ts';
import type { ChatChunk, Delta, SlotEvent } from '../../schemas/inner.ts';
import { JsonProgress } from '../../schemas/json-progress.ts';

/** Characters of blocks of a stream that wait for the one before them, as JSON. An upstream that interleaves more breaks off. */
export const WAITING_BLOCKS_CHARS_MAX = 8 * 1024 * 1024;

/** Emits the chunks of a turn block by block, in the order in which the blocks opened. */
export interface BlockOrder {
  take(chunk: ChatChunk): void;
  /** Emits all waiting chunks. Ordinals of blocks start again at 0 afterwards. */
  flush(): void;
}

/** A block that is open, or waits until the blocks before it are closed. */
interface Block {
  n: number | undefined;
  is_closed: boolean;
  /** The arguments of a call that were emitted so far. */
  readonly args: JsonProgress | undefined;
  waiting: ChatChunk[];
  waiting_chars: number;
}

/** Whether a delta has content of a block. Other fields (role, annotations) are emitted at once. */
function isOfBlock(delta: Delta): boolean {
  const { content, refusal, reasoning, reasoning_details, tool_calls } = delta;
  return Boolean(content || refusal || reasoning || reasoning_details?.length || tool_calls?.length);
}

/** Splits a chunk without slot whose delta has several blocks into one chunk per block, in canonical order. */
function piecesOf(chunk: ChatChunk): ChatChunk[] {
  const { delta, logprobs } = chunk;
  const { blocks: deltas, rest } = deltasOf(delta);
  if (deltas.length < 2) return [chunk];
  const likely = logprobs === undefined ? {} : { logprobs };
  const pieces = deltas.map((block): ChatChunk => ({ delta: block, ...(block.content ? likely : {}) }));
  const last = { ...chunk, delta: rest };
  if (delta.content) delete last.logprobs;
  return [...pieces, last];
}

/**
 * Makes the block order of one answer (translation E1): upstreams may interleave blocks, clients read one at a time. Chunks of
 * another block wait until the open one closes. A call with complete arguments is closed as soon as another block waits, since some wires
 * close calls only at the end. Blocks that are not shown are dropped.
 */
export function createBlockOrder(
  release: (chunk: ChatChunk) => void,
  isShown: (opening: NonNullable<SlotEvent['open']>) => boolean,
): BlockOrder {
  let open: Block | undefined;
  let queue: Block[] = [];
  /** Index of the open block in the queue. */
  let head = 0;
  let heldChars = 0;
  /** Null for a block that is closed, or not shown. */
  let blocks = new Map<number, Block | null>();

  function emit(block: Block, chunk: ChatChunk): void {
    release(chunk);
    if (block.args !== undefined) {
      for (const call of chunk.delta.tool_calls ?? []) block.args.add(call.function.arguments ?? '');
    }
  }

  function end(block: Block): void {
    if (block.n !== undefined) blocks.set(block.n, null);
    if (open === block) open = undefined;
  }

  /** Emits what waited for the closed block, up to the next block that is incomplete. */
  function advance(): void {
    for (;;) {
      if (open !== undefined) {
        if (head === queue.length || open.args?.isClosed !== true) return;
        release({ delta: {}, ext: { slot: { n: open.n!, close: {} } } });
        end(open);
      }
      const next = queue[head];
      if (next === undefined) {
        queue = [];
        head = 0;
        return;
      }
      head += 1;
      for (const chunk of next.waiting) emit(next, chunk);
      heldChars -= next.waiting_chars;
      next.waiting = [];
      if (next.is_closed) end(next);
      else open = next;
    }
  }

  function hold(block: Block, chunk: ChatChunk): void {
    const chars = JSON.stringify(chunk).length;
    block.waiting.push(chunk);
    block.waiting_chars += chars;
    heldChars += chars;
    if (heldChars > WAITING_BLOCKS_CHARS_MAX) {
      throw new GatewayError(502, 'The provider sent too many parts of its answer at once to put them in order');
    }
  }

  function blockOf(n: number | undefined, isCall: boolean): Block {
    const args = isCall ? new JsonProgress() : undefined;
    return { n, is_closed: n === undefined, args, waiting: [], waiting_chars: 0 };
  }

  function takeSlotless(chunk: ChatChunk): void {
    if (chunk.finish_reason != null) flushAll();
    if (open === undefined || !isOfBlock(chunk.delta)) {
      release(chunk);
      return;
    }
    const block = blockOf(undefined, false);
    queue.push(block);
    hold(block, chunk);
    advance();
  }

  function flushAll(): void {
    if (open !== undefined) end(open);
    for (const block of queue.slice(head)) {
      for (const chunk of block.waiting) release(chunk);
      end(block);
    }
    queue = [];
    head = 0;
    heldChars = 0;
  }

  return {
    take(chunk) {
      const slot = chunk.ext?.slot;
      if (slot === undefined) {
        piecesOf(chunk).forEach(takeSlotless);
        return;
      }
      if (open !== undefined && open.n === slot.n) {
        emit(open, chunk);
        if (slot.close !== undefined) end(open);
        if (head < queue.length) advance();
        return;
      }
      let block = blocks.get(slot.n);
      if (block === null) return;
      if (block === undefined) {
        if (slot.open !== undefined && !isShown(slot.open)) {
          blocks.set(slot.n, null);
          return;
        }
        block = blockOf(slot.n, slot.open?.kind === 'call');
        blocks.set(slot.n, block);
        if (open === undefined) {
          open = block;
          emit(block, chunk);
          if (slot.close !== undefined) end(block);
          return;
        }
        queue.push(block);
      }
      hold(block, chunk);
      block.is_closed = slot.close !== undefined;
      advance();
    },
    flush() {
      flushAll();
      blocks = new Map();
    },
  };
}
