import { countCodePoints } from '../../providers/slot.ts';
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

/** Makes the empty list of one answer's citations. */
export function createCitations(): Citations {
  const texts: CitedText[] = [];
  /** Where each begins in the joined text, in code points. */
  const starts: number[] = [];
  /** Those whose text is still to come, and those that wait for the end: of no place, or of a message that is closed. */
  let early: Citation[] = [];
  let late: Citation[] = [];

  function end(): number {
    return texts.length === 0 ? 0 : starts.at(-1)! + countCodePoints(texts.at(-1)!.text());
  }

  /** The text that it begins in; of one without a place, the last. */
  function placeOf({ start_index, end_index }: Citation): number {
    const at = starts.findLastIndex((start) => start <= start_index && start < end_index);
    return end_index > 0 && at !== -1 ? at : texts.length - 1;
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
    else if (citation.end_index > total) early.push(citation);
    else {
      const at = placeOf(citation);
      if (texts[at]!.isClosed()) late.push(citation);
      else tell(citation, at);
    }
  }

  function settle(): void {
    const waiting = early;
    if (waiting.length === 0) return;
    early = [];
    const total = end();
    for (const citation of waiting) place(citation, total);
  }

  return {
    begin(text) {
      starts.push(end());
      texts.push(text);
    },
    take(annotations) {
      settle();
      const total = end();
      for (const annotation of annotations) {
        if (annotation.type === 'url_citation') place((annotation as UrlCitation).url_citation, total);
      }
    },
    settle,
    settleOpen() {
      settle();
      const waiting = [...early, ...late];
      early = [];
      late = [];
      for (const citation of waiting) {
        const at = placeOf(citation);
        if (at === -1) continue;
        if (texts[at]!.isClosed()) late.push(citation);
        else tell(citation, at);
      }
    },
    settleClosed() {
      const waiting = late;
      late = [];
      for (const citation of waiting) tell(citation, placeOf(citation));
      return waiting.length > 0;
    },
  };
}
