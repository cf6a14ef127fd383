import type { ChatChunk } from '../../schemas/inner.ts';
import { countCodePoints } from '../../schemas/text.ts';
import { type Edit, edited, type Scan } from './stream-filter.ts';

/** A chunk whose text is not settled yet. */
export interface Held {
  chunk: ChatChunk;
  /** All text of the chunk, joined. */
  text: string;
  /** Whether part of the text was replaced. */
  is_touched: boolean;
  /** Returns the chunk with filtered text. Calls `take` with each of its texts in order. */
  render(chunk: ChatChunk, take: (text: string) => string, isTouched: () => boolean): ChatChunk | undefined;
  /** Splits the chunk after `head`. Not set if it can only be shown as a whole. */
  split?(chunk: ChatChunk, head: string): { head: ChatChunk; rest: ChatChunk };
}

/** Maps offsets of the received text to the shown text, both in code points. */
export interface Places {
  /** The shown offset of a start, or of an end if `isEnd`. */
  shown(offset: number, isEnd: boolean): number;
}

interface Shift {
  start: number;
  end: number;
  length: number;
  /** The sum of the shifts before it. */
  before: number;
}

/** One text of an answer over all its chunks and blocks. Chunks are released in order, each when its text is settled. */
export class TextLane {
  readonly scan: Scan;
  #queue: Held[] = [];
  /** Index of the first queued chunk that is not released. */
  #head = 0;
  readonly #shifts: Shift[] = [];
  /** The released length, in code units and in code points. */
  #shown = 0;
  #points = 0;
  /** The received length in code points. */
  points = 0;

  constructor(scan: Scan) {
    this.scan = scan;
  }

  isWaiting(): boolean {
    return this.#head < this.#queue.length;
  }

  push(held: Held): void {
    this.#queue.push(held);
    this.points += countCodePoints(held.text);
    this.scan.push(held.text);
  }

  /** The mapping of offsets, for the released text. */
  places(): Places {
    return {
      shown: (offset, isEnd) => {
        const last = this.#lastBefore(offset);
        if (last === undefined) return offset;
        const { start, end, length, before } = last;
        if (offset < end) return start + before + (isEnd ? length : 0);
        return offset + before + length - (end - start);
      },
    };
  }

  /** The last shift that starts before an offset. */
  #lastBefore(offset: number): Shift | undefined {
    let [low, high] = [0, this.#shifts.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#shifts[middle]!.start < offset) low = middle + 1;
      else high = middle;
    }
    return this.#shifts[low - 1];
  }

  #forget(): void {
    this.#queue = [];
    this.#head = 0;
  }

  /** Releases the settled chunks. */
  release(out: ChatChunk[]): void {
    const { scan } = this;
    while (this.isWaiting()) {
      const held = this.#queue[this.#head]!;
      const end = this.#shown + held.text.length;
      if (scan.settled >= end && !(scan.ended_at !== undefined && scan.ended_at <= this.#shown)) {
        this.#head += 1;
        if (!this.isWaiting()) this.#forget();
        this.#hand(held, held.chunk, out);
        continue;
      }
      if (scan.settled <= this.#shown || held.split === undefined) {
        if (scan.ended_at !== undefined) this.#forget();
        return;
      }
      const head = held.text.slice(0, scan.settled - this.#shown);
      const { head: shown, rest } = held.split(held.chunk, head);
      const part: Held = { ...held, text: head };
      this.#hand(part, shown, out);
      this.#queue[this.#head] = {
        ...held,
        chunk: rest,
        text: held.text.slice(head.length),
        is_touched: part.is_touched,
      };
    }
  }

  /** Removes and returns the held text. */
  takeText(): string {
    const text = this.#queue
      .slice(this.#head)
      .map((held) => held.text)
      .join('');
    this.#forget();
    return text;
  }

  /** Puts back text that `takeText` removed. */
  wait(held: Held): void {
    this.#queue.push(held);
  }

  #hand(held: Held, chunk: ChatChunk, out: ChatChunk[]): void {
    const take = (text: string) => {
      const shownText = this.#take(text);
      if (shownText !== text) held.is_touched = true;
      return shownText;
    };
    const shown = held.render(chunk, take, () => held.is_touched);
    if (shown !== undefined) out.push(shown);
  }

  #take(text: string): string {
    const at = this.#shown;
    const { edits } = this.scan;
    if (edits.length > 0) this.#note(text, at, edits);
    const shownText = edited(text, at, edits);
    this.#shown += text.length;
    this.#points += countCodePoints(text);
    return shownText;
  }

  /** Records replacements for the mapping of offsets. */
  #note(text: string, at: number, edits: readonly Edit[]): void {
    let [read, points] = [at, this.#points];
    const pointOf = (offset: number) => {
      points += countCodePoints(text.slice(read - at, offset - at));
      read = offset;
      return points;
    };
    for (const edit of edits) {
      if (edit.start >= at + text.length) break;
      const start = pointOf(Math.max(edit.start, at));
      const end = pointOf(Math.min(edit.end, at + text.length));
      const last = this.#shifts.at(-1);
      if (edit.text === '' && last?.end === start) last.end = end;
      else {
        const before = last === undefined ? 0 : last.before + last.length - (last.end - last.start);
        this.#shifts.push({ start, end, length: countCodePoints(edit.text), before });
      }
    }
  }
}
