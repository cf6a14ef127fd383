import { limits } from '../../limits.ts';

/** How far a match that is longer than the held part is followed. */
const FILTER_GROWING_CHARS_MAX = 65_536;

/** A match in a text (UTF-16 offsets, end exclusive) and its replacement. */
export interface Hit {
  start: number;
  end: number;
  /** The replacement. Undefined if the match is not replaced. */
  text?: string | undefined;
  /** Ends the text at the start of the match. */
  ends?: true;
}

/** Finds matches in a growing text. */
export interface Finder {
  /** The matches in order of `start`. Replaced matches do not overlap. Matches that end at or before `from` may be left out. */
  find(text: string, from: number): Hit[];
  /** The first offset at which a match could still start or grow, exact if it is after `from`: see `FilterSet.heldFrom`. */
  heldFrom(text: string, from: number): number;
  /** The number of characters of context before a held text. */
  readonly context_chars: number;
  /** Called once for each match when it is settled. */
  settled(hit: Hit): void;
  /** Finds matches over several tokens in JSON as written (`WrittenScan`). */
  readonly written?: Finder;
}

/** Replacement of text that is held for too long without a known match. */
const TOO_LONG = '[REDACTED]';

/** A replacement in a text. Offsets are those of the whole text. */
export interface Edit {
  start: number;
  end: number;
  text: string;
}

/** Scans one streamed text. Offsets are those of the whole text. */
export interface Scan {
  push(text: string): void;
  /** Settles all text: nothing follows that could extend a match. */
  flush(): void;
  /** The end of the settled text. */
  readonly settled: number;
  /** The replacements in the settled text, in order. The reader removes them. */
  readonly edits: Edit[];
  /** The offset at which a blocking match ended the text. */
  readonly ended_at: number | undefined;
}

/**
 * Scans one streamed text and reports its settled part with the replacements there. Text that can still become part
 * of a match is held back. A match that grows beyond the bound of held text is replaced so far, and then until it ends.
 */
export class TextScan implements Scan {
  readonly #finder: Finder;
  #window = '';
  /** Offset of the window in the whole text. */
  #base = 0;
  settled = 0;
  /** The length of the received text. */
  total = 0;
  readonly edits: Edit[] = [];
  ended_at: number | undefined;
  /** The start of a match that is too long to be held back. */
  #growing: number | undefined;
  /** The length of the window at which it is scanned again. */
  #nextScanLength = 0;

  constructor(finder: Finder) {
    this.#finder = finder;
  }

  push(text: string): void {
    // Large texts are scanned in pieces, so that the window stays small.
    for (let at = 0; at < text.length && this.ended_at === undefined; at += limits.scan_slice_chars) {
      const piece = text.slice(at, at + limits.scan_slice_chars);
      this.#window += piece;
      this.total += piece.length;
      if (this.#window.length >= this.#nextScanLength) this.#scanWindow(false);
    }
  }

  flush(): void {
    if (this.ended_at === undefined && this.settled < this.total) this.#scanWindow(true);
    this.#growing = undefined;
    this.#nextScanLength = 0;
  }

  #scanWindow(isEnd: boolean): void {
    const { settled, total } = this;
    const base = this.#base;
    if (this.#growing !== undefined && this.#isGrowing(this.#growing, isEnd)) return;
    let held = isEnd ? total : Math.max(settled, Math.min(total, base + this.#heldFrom()));
    const isFull = !isEnd && total - held > limits.filter_held_chars_max;
    if (held === settled && !isFull) {
      this.#delayNextScan(total - settled);
      return;
    }
    this.#nextScanLength = 0;
    const hits = this.#finder.find(this.#window, settled - base);
    // A match over the border is not settled, and neither are matches that overlap it.
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

  /** The first offset that can still change. Half of a surrogate pair waits for its other half. */
  #heldFrom(known = this.settled): number {
    const window = this.#window;
    const last = window.charCodeAt(window.length - 1);
    const text = last >= 0xd800 && last <= 0xdbff ? window.slice(0, -1) : window;
    return this.#finder.heldFrom(text, Math.min(text.length, known - this.#base));
  }

  /** Delays the next scan of a text that stays unsettled, so that it is not scanned for each character. */
  #delayNextScan(waiting: number): void {
    this.#nextScanLength = waiting < limits.filter_context_chars ? 0 : this.#window.length + (waiting >> 3);
  }

  #settle(hits: readonly Hit[], until: number): void {
    const from = this.settled;
    for (const hit of hits) {
      const start = this.#base + hit.start;
      const end = this.#base + hit.end;
      if (end <= from || (start >= until && end > start)) continue;
      this.#finder.settled(hit);
      if (hit.ends) {
        // If the start of the match was shown already, only the rest can be hidden.
        this.ended_at = Math.max(start, from);
        until = this.ended_at;
        break;
      }
      if (hit.text === undefined) continue;
      // The start of the match is settled already: the rest gets no second placeholder.
      this.edits.push({ start: Math.max(start, from), end, text: start < from ? '' : hit.text });
    }
    if (this.ended_at !== undefined) {
      while ((this.edits.at(-1)?.start ?? -1) >= until) this.edits.pop();
      const last = this.edits.at(-1);
      if (last !== undefined && last.end > until) last.end = until;
    }
    this.settled = until;
  }

  /** Too much text is held back: the possible match is treated as one, with all text that continues it. */
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

  /** Whether the long match continues. Its new text is removed. */
  #isGrowing(growing: number, isEnd: boolean): boolean {
    if (this.#window.length > FILTER_GROWING_CHARS_MAX) {
      // The end of the match can no longer be determined.
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
    this.#nextScanLength = this.#window.length + (this.#window.length >> 3);
    return true;
  }

  /** Drops settled text that the finder no longer needs. */
  #forget(): void {
    const keepFrom = this.#growing ?? this.settled - this.#finder.context_chars;
    const drop = keepFrom - this.#base;
    if (drop <= 0) return;
    this.#window = this.#window.slice(drop);
    this.#base += drop;
  }
}

/** Applies the edits to a text at offset `at`. The rest of an edit beyond its end stays for the text that follows. */
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

/** Filters one streamed text. */
export interface StreamFilter {
  /** Adds text and returns the text that can be shown. */
  push(text: string): string;
  /** Returns the rest of the text. */
  end(): string;
  /** Whether a blocking match ended the text: later text is not shown. */
  hasEnded(): boolean;
}

/** Creates the filter of one text. The joined output is the filtered whole text, whatever the chunk boundaries. */
export function createStreamFilter(finder: Finder, scan: Scan = new TextScan(finder)): StreamFilter {
  let shown = 0;
  let held = '';
  const take = () => {
    const text = held.slice(0, scan.settled - shown);
    held = held.slice(text.length);
    const shownText = edited(text, shown, scan.edits);
    shown = scan.settled;
    return shownText;
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
