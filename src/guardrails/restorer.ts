import { placeholderWords, WRITTEN } from './redaction.ts';
import { createStreamFilter, type Finder, type Hit, type StreamFilter } from './streams/stream-filter.ts';

const OPENED = /\\?\[([^[\]\n]{0,240})$/;

/**
 * What finds the placeholders of a call in its answer, so that what they stand for is put back. Only those that the call gave
 * out: `values` says what each stands for, and may grow while the answer comes.
 */
export function placeholderFinder(values: ReadonlyMap<string, string>): Finder {
  let known = new Map<string, string>();
  let count = -1;

  function byWords(): ReadonlyMap<string, string> {
    if (count !== values.size) {
      count = values.size;
      known = new Map([...values].map(([placeholder, value]) => [placeholderWords(placeholder.slice(1, -1)), value]));
    }
    return known;
  }

  return {
    context_chars: 0,
    find(text) {
      if (!text.includes('[')) return [];
      const words = byWords();
      const hits: Hit[] = [];
      for (const { 0: written, 1: inner, index } of text.matchAll(WRITTEN)) {
        const value = words.get(placeholderWords(inner!.trim()));
        if (value !== undefined) hits.push({ start: index, end: index + written.length, text: value });
      }
      return hits;
    },
    heldFrom(text) {
      const bare = text.endsWith('\\') ? text.length - 1 : text.length;
      const opened = OPENED.exec(text);
      if (opened === null) return bare;
      const begun = placeholderWords(opened[1]!.trimStart());
      for (const words of byWords().keys()) if (words.startsWith(begun) || begun.startsWith(words)) return opened.index;
      return bare;
    },
    settled() {},
  };
}

/** Puts back in one text, as it comes, what placeholders stand for. */
export function createRestorer(values: ReadonlyMap<string, string>): StreamFilter {
  return createStreamFilter(placeholderFinder(values));
}
