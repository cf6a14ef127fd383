import { placeholderWords, WRITTEN } from './redaction.ts';
import { createStreamFilter, type Finder, type Hit, type StreamFilter } from './streams/stream-filter.ts';

const OPENED = /\\?\[([^[\]\n]{0,240})$/;

/**
 * Finds the placeholders of a call in its answer, to replace them by their values. Only placeholders of this call match: `values` maps
 * each to its value, and may grow while the answer is streamed.
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
      for (const { 0: spelling, 1: inner, index } of text.matchAll(WRITTEN)) {
        const value = words.get(placeholderWords(inner!.trim()));
        if (value !== undefined) hits.push({ start: index, end: index + spelling.length, text: value });
      }
      return hits;
    },
    heldFrom(text) {
      const bare = text.endsWith('\\') ? text.length - 1 : text.length;
      const opened = OPENED.exec(text);
      if (opened === null) return bare;
      const started = placeholderWords(opened[1]!.trimStart());
      for (const words of byWords().keys())
        if (words.startsWith(started) || started.startsWith(words)) return opened.index;
      return bare;
    },
    settled() {},
  };
}

/** Replaces placeholders by their values in one streamed text. */
export function createRestorer(values: ReadonlyMap<string, string>): StreamFilter {
  return createStreamFilter(placeholderFinder(values));
}
