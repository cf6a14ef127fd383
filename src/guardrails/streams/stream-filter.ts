import { limits } from '../../limits.ts';

/** Something that was found in a text (UTF-16 offsets, end exclusive), and what becomes of it. */
export interface Hit {
  start: number;
  end: number;
  /** What stands in its place; undefined: it stays as it is. */
  text?: string | undefined;
  /** The text may not go on from its start. */
  ends?: true;
}

/** What finds in a text that grows. */
export interface Finder {
  /** In order of `start`; those that are replaced do not overlap each other. Those that end at or before `from` are known. */
  find(text: string, from: number): Hit[];
  /** The first offset from which a match might still begin or grow, if that lies behind `from`: see `FilterSet.heldFrom`. */
  heldFrom(text: string, from: number): number;
  /** How much stands before a held text, so that it is read as in the whole. */
  readonly context_chars: number;
  /** Hears of every hit once, when it is settled. */
  settled(hit: Hit): void;
  /** What may reach from one string of JSON into another, as it finds in how JSON is written (`WrittenScan`). */
  readonly written?: Finder;
}

/** In place of what is held back for too long, where nothing says what it is. */
const TOO_LONG = '[REDACTED]';

/** A part of a text that something else stands for; offsets of the whole text. */
export interface Edit {
  start: number;
  end: number;
  text: string;
}

/** Reads one text as it comes; offsets are those of the whole text. */
export interface Scan {
  push(text: string): void;
  /** Nothing follows that could be part of a match: all is settled. */
  flush(): void;
  /** Up to here it is known what stands there. */
  readonly settled: number;
  /** Of what is settled, in order; whoever reads them takes them away. */
  readonly edits: Edit[];
  /** Where the text may not go on. */
  readonly ended_at: number | undefined;
}

/**
 * Reads one text as it comes, and says up to where it is settled and what was replaced of it there. What might still be part
 * of a match is held back. A match that grows beyond what is held back is replaced as far as it came, and on, until it ends.
 */
export class TextScan implements Scan {
  readonly #finder: Finder;
  #window = '';
  /** Offset of the window in the whole text. */
  #base = 0;
  settled = 0;
  /** The end of what came. */
  total = 0;
  readonly edits: Edit[] = [];
  ended_at: number | undefined;
  /** Where a match began that is too long to be held back. */
  #growing: number | undefined;
  /** The window is looked at again when it is so long. */
  #nextLook = 0;

  constructor(finder: Finder) {
    this.#finder = finder;
  }

  push(text: string): void {
    // What comes whole is read a piece at a time: no window grows with it.
    for (let at = 0; at < text.length && this.ended_at === undefined; at += limits.scan_slice_chars) {
      const piece = text.slice(at, at + limits.scan_slice_chars);
      this.#window += piece;
      this.total += piece.length;
      if (this.#window.length >= this.#nextLook) this.#look(false);
    }
  }

  flush(): void {
    if (this.ended_at === undefined && this.settled < this.total) this.#look(true);
    this.#growing = undefined;
    this.#nextLook = 0;
  }

  #look(isEnd: boolean): void {
    const { settled, total } = this;
    const base = this.#base;
    if (this.#growing !== undefined && this.#isGrowing(this.#growing, isEnd)) return;
    let held = isEnd ? total : Math.max(settled, Math.min(total, base + this.#heldFrom()));
    const isFull = !isEnd && total - held > limits.filter_held_chars_max;
    if (held === settled && !isFull) {
      this.#slowDown(total - settled);
      return;
    }
    this.#nextLook = 0;
    const hits = this.#finder.find(this.#window, settled - base);
    // What reaches over the border is not settled, nor what such a hit reaches over.
    if (!isEnd && !isFull) {
      for (let i = hits.length - 1; i >= 0; i -= 1) {
        const hit = hits[i]!;
        const start = base + hit.start;
        if (start < held && base + hit.end > held && start >= settled) {
          held = start;
          i = hits.length;
        }
      }
    }
    if (isFull) this.#settleAll(hits);
    else this.#settle(hits, held);
    this.#forget();
  }

  /** Half a character is none yet: it waits for its other half. */
  #heldFrom(known = this.settled): number {
    const window = this.#window;
    const last = window.charCodeAt(window.length - 1);
    const text = last >= 0xd800 && last <= 0xdbff ? window.slice(0, -1) : window;
    return this.#finder.heldFrom(text, Math.min(text.length, known - this.#base));
  }

  /** A text of which nothing is settled for long is not read anew with each character. */
  #slowDown(waiting: number): void {
    this.#nextLook = waiting < limits.filter_context_chars ? 0 : this.#window.length + (waiting >> 3);
  }

  #settle(hits: readonly Hit[], until: number): void {
    const from = this.settled;
    for (const hit of hits) {
      const start = this.#base + hit.start;
      const end = this.#base + hit.end;
      if (end <= from || (start >= until && end > start)) continue;
      this.#finder.settled(hit);
      if (hit.ends) {
        // Where the beginning was shown already there is nothing left to hide but the rest.
        this.ended_at = Math.max(start, from);
        until = this.ended_at;
        break;
      }
      if (hit.text === undefined) continue;
      // A hit that was begun before, where its beginning is settled: the rest goes without a second placeholder.
      this.edits.push({ start: Math.max(start, from), end, text: start < from ? '' : hit.text });
    }
    if (this.ended_at !== undefined) {
      while ((this.edits.at(-1)?.start ?? -1) >= until) this.edits.pop();
      const last = this.edits.at(-1);
      if (last !== undefined && last.end > until) last.end = until;
    }
    this.settled = until;
  }

  /** Too much is held back: what might be a match is taken for one, and whatever it goes on with. */
  #settleAll(hits: readonly Hit[]): void {
    const held = Math.max(this.settled, this.#base + this.#heldFrom());
    const open = hits.find((hit) => this.#base + hit.end > held && hit.text !== undefined);
    const before = hits.filter((hit) => this.#base + hit.end <= held || hit.ends);
    const start = open === undefined ? held : Math.max(this.settled, Math.min(held, this.#base + open.start));
    this.#settle(before, start);
    if (this.ended_at !== undefined) return;
    this.edits.push({ start, end: this.total, text: open?.text ?? TOO_LONG });
    this.#finder.settled(open ?? { start, end: this.total, text: TOO_LONG });
    this.settled = this.total;
    this.#growing = start;
  }

  /** Whether the long match goes on; what came of it is swallowed. */
  #isGrowing(growing: number, isEnd: boolean): boolean {
    if (this.#window.length > limits.filter_growing_chars_max) {
      // Nobody can tell any more where it ends.
      this.ended_at = this.settled;
      this.#finder.settled({ start: growing, end: this.total, ends: true });
      return true;
    }
    if (isEnd || this.#base + this.#heldFrom(growing) > growing) {
      this.#growing = undefined;
      return false;
    }
    this.edits.push({ start: this.settled, end: this.total, text: '' });
    this.settled = this.total;
    this.#nextLook = this.#window.length + (this.#window.length >> 3);
    return true;
  }

  /** Keeps of what is settled what the finder may still look at. */
  #forget(): void {
    const keepFrom = this.#growing ?? this.settled - this.#finder.context_chars;
    const drop = keepFrom - this.#base;
    if (drop <= 0) return;
    this.#window = this.#window.slice(drop);
    this.#base += drop;
  }
}

/** A text with what was replaced of it; `at` is its offset. What reaches beyond its end stays for the text that follows. */
export function edited(text: string, at: number, edits: Edit[]): string {
  const end = at + text.length;
  let out = '';
  let from = at;
  let used = 0;
  for (const edit of edits) {
    if (edit.start >= end) break;
    if (edit.start > from) out += text.slice(from - at, edit.start - at);
    out += edit.text;
    from = Math.max(from, Math.min(edit.end, end));
    if (edit.end > end) {
      edit.text = '';
      edit.start = end;
      break;
    }
    used += 1;
  }
  const isSame = used === 0 && from === at && out === '';
  edits.splice(0, used);
  return isSame ? text : out + text.slice(from - at);
}

/** Filters one text that comes in pieces. */
export interface StreamFilter {
  /** What may be shown by now. */
  push(text: string): string;
  /** The rest. */
  end(): string;
  /** Whether the text may not go on: what follows is not shown. */
  hasEnded(): boolean;
}

/** Makes the filter of one text: what comes out, joined, is the whole text filtered, however it was cut. */
export function createStreamFilter(finder: Finder, scan: Scan = new TextScan(finder)): StreamFilter {
  let shown = 0;
  let held = '';
  const take = () => {
    const text = held.slice(0, scan.settled - shown);
    held = held.slice(text.length);
    const told = edited(text, shown, scan.edits);
    shown = scan.settled;
    return told;
  };
  return {
    push(text) {
      held += text;
      scan.push(text);
      return take();
    },
    end() {
      scan.flush();
      return take();
    },
    hasEnded: () => scan.ended_at !== undefined,
  };
}
