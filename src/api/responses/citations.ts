import { countCodePoints } from '../../providers/shared/slot.ts';
import type { Annotation, UrlCitation } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';

/** A part of a message that may be cited. */
export interface CitedText {
  text(): string;
  /** Whether its message was told as a whole: what comes now comes late. */
  isClosed(): boolean;
  /** Tells a citation of it. */
  cite(annotation: JsonObject): void;
}

/** The citations of one answer: each goes to the text that it is of, whenever its provider tells it. */
export interface Citations {
  /** A text begins; those before it are whole. */
  begin(text: CitedText): void;
  take(annotations: readonly Annotation[]): void;
  /** Tells those whose text came after them. */
  settle(): void;
  /** No text follows: tells all that are of texts of open messages. */
  settleOpen(): void;
  /** Tells those of messages that are closed, late as they are; whether there were any. */
  settleClosed(): boolean;
}

type Citation = UrlCitation['url_citation'];

/** A citation whose text is still to come, and its turn among all. */
interface Early {
  citation: Citation;
  turn: number;
}

/** Those whose text is still to come; the one whose text ends first comes out first. A heap: each costs as much as their number has digits. */
class EarlyCitations {
  #heap: Early[] = [];
  #turns = 0;

  add(citation: Citation): void {
    this.#turns += 1;
    const heap = this.#heap;
    let at = heap.push({ citation, turn: this.#turns }) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (endOf(heap[above]!) <= endOf(heap[at]!)) return;
      [heap[above], heap[at]] = [heap[at]!, heap[above]!];
      at = above;
    }
  }

  isEmpty(): boolean {
    return this.#heap.length === 0;
  }

  /** Takes out those that end up to there, in the order in which they came. */
  takeUpTo(total: number): Citation[] {
    const taken: Early[] = [];
    while (this.#heap.length > 0 && endOf(this.#heap[0]!) <= total) taken.push(this.#takeFirst());
    return taken.sort((a, b) => a.turn - b.turn).map(({ citation }) => citation);
  }

  #takeFirst(): Early {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop()!;
    if (heap.length === 0) return first!;
    heap[0] = last;
    for (let at = 0; ; ) {
      let least = at;
      for (const below of [2 * at + 1, 2 * at + 2]) {
        if (below < heap.length && endOf(heap[below]!) < endOf(heap[least]!)) least = below;
      }
      if (least === at) return first!;
      [heap[least], heap[at]] = [heap[at]!, heap[least]!];
      at = least;
    }
  }
}

const endOf = ({ citation }: Early): number => citation.end_index;

/** Makes the empty list of one answer's citations. */
export function createCitations(): Citations {
  const texts: CitedText[] = [];
  /** Where each begins in the joined text, in code points. */
  const starts: number[] = [];
  const early = new EarlyCitations();
  /** Those that wait for the end: of no place, or of a message that is closed. */
  let late: Citation[] = [];
  /** The last text as far as it is counted, in characters, and where it ends by that, in code points. */
  let countedChars = 0;
  let counted = 0;

  function end(): number {
    const text = texts.at(-1)?.text() ?? '';
    if (text.length > countedChars) {
      counted += countCodePoints(text.slice(countedChars));
      countedChars = text.length;
    }
    return counted;
  }

  /** The text that it begins in; of one without a place, the last. */
  function placeOf({ start_index, end_index }: Citation): number {
    let [low, high] = [0, starts.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const start = starts[middle]!;
      if (start <= start_index && start < end_index) low = middle + 1;
      else high = middle;
    }
    return end_index > 0 && low > 0 ? low - 1 : texts.length - 1;
  }

  function tell(citation: Citation, at: number): void {
    const { url, title, content, start_index, end_index } = citation;
    const before = end_index > 0 ? starts[at]! : 0;
    // Places count in the part (translation E7); one that ends before it begins is none.
    const start = Math.max(0, start_index - before);
    texts[at]!.cite({
      type: 'url_citation',
      url,
      title: title ?? '',
      start_index: start,
      end_index: Math.max(start, end_index - before),
      ...(content === undefined ? {} : { content }),
    });
  }

  /** Tells it where that is possible by now. */
  function place(citation: Citation, total: number): void {
    if (citation.end_index === 0) late.push(citation);
    else if (citation.end_index > total) early.add(citation);
    else tellOrKeep(citation);
  }

  function tellOrKeep(citation: Citation): void {
    const at = placeOf(citation);
    if (at === -1) return;
    if (texts[at]!.isClosed()) late.push(citation);
    else tell(citation, at);
  }

  function settle(): void {
    // Counting a text takes as long as it is.
    if (early.isEmpty()) return;
    const total = end();
    for (const citation of early.takeUpTo(total)) place(citation, total);
  }

  return {
    begin(text) {
      starts.push(end());
      countedChars = 0;
      texts.push(text);
    },
    take(annotations) {
      settle();
      if (annotations.length === 0) return;
      const total = end();
      for (const annotation of annotations) {
        if (annotation.type === 'url_citation') place((annotation as UrlCitation).url_citation, total);
      }
    },
    settle,
    settleOpen() {
      settle();
      const waiting = [...early.takeUpTo(Number.POSITIVE_INFINITY), ...late];
      late = [];
      for (const citation of waiting) tellOrKeep(citation);
    },
    settleClosed() {
      const waiting = late;
      late = [];
      for (const citation of waiting) tell(citation, placeOf(citation));
      return waiting.length > 0;
    },
  };
}
