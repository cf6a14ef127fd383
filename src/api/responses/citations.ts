import type { Annotation, UrlCitation } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { countCodePoints } from '../../schemas/text.ts';

/** A part of a message that may be cited. */
export interface CitedText {
  text(): string;
  /** Whether its message was already sent as a whole, so that citations come too late. */
  isClosed(): boolean;
  /** Adds a citation. */
  cite(annotation: JsonObject): void;
}

/** Assigns the citations of one answer to the texts that they are of, whenever they arrive. */
export interface Citations {
  /** A new text begins; the texts before it are complete. */
  begin(text: CitedText): void;
  take(annotations: readonly Annotation[]): void;
  /** Assigns the citations that arrived before their text. */
  settle(): void;
  /** No more text follows: assigns all citations of texts in open messages. */
  settleOpen(): void;
  /** Adds the citations of closed messages, late as they are. Returns whether there were any. */
  settleClosed(): boolean;
}

type Citation = UrlCitation['url_citation'];

/** A citation that arrived before its text, with its order of arrival. */
interface Early {
  citation: Citation;
  turn: number;
}

/** Citations whose text has not arrived, as a heap by the end of their text. Insertion takes logarithmic time. */
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

  /** Removes those that end up to this offset, in order of arrival. */
  removeUpTo(total: number): Citation[] {
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

/** Makes the citations of one answer. */
export function createCitations(): Citations {
  const texts: CitedText[] = [];
  /** The offset of each text in the joined text, in code points. */
  const starts: number[] = [];
  const early = new EarlyCitations();
  /** Citations that wait for the end of the answer: without offsets, or of a closed message. */
  let late: Citation[] = [];
  /** How far the last text was counted, in characters, and its end by that count, in code points. */
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

  /** The index of the text that a citation begins in; the last text for one without offsets. */
  function textIndexOf({ start_index, end_index }: Citation): number {
    let [low, high] = [0, starts.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const start = starts[middle]!;
      if (start <= start_index && start < end_index) low = middle + 1;
      else high = middle;
    }
    return end_index > 0 && low > 0 ? low - 1 : texts.length - 1;
  }

  function add(citation: Citation, at: number): void {
    const { url, title, content, start_index, end_index } = citation;
    const before = end_index > 0 ? starts[at]! : 0;
    // Offsets count inside the part (translation E7). A citation that ends before it begins has none.
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

  /** Adds a citation if its text has arrived. */
  function place(citation: Citation, total: number): void {
    if (citation.end_index === 0) late.push(citation);
    else if (citation.end_index > total) early.add(citation);
    else addOrDelay(citation);
  }

  function addOrDelay(citation: Citation): void {
    const at = textIndexOf(citation);
    if (at === -1) return;
    if (texts[at]!.isClosed()) late.push(citation);
    else add(citation, at);
  }

  function settle(): void {
    // Counting a text takes time in proportion to its length.
    if (early.isEmpty()) return;
    const total = end();
    for (const citation of early.removeUpTo(total)) place(citation, total);
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
      const waiting = [...early.removeUpTo(Number.POSITIVE_INFINITY), ...late];
      late = [];
      for (const citation of waiting) addOrDelay(citation);
    },
    settleClosed() {
      const waiting = late;
      late = [];
      for (const citation of waiting) add(citation, textIndexOf(citation));
      return waiting.length > 0;
    },
  };
}
