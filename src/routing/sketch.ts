import { DDSketch } from '@datadog/sketches-js';
import { limits } from '../limits.ts';

/** Values between these are told apart; what lies beyond counts as the nearer of them. */
const VALUE_MIN = 1e-3;
const VALUE_MAX = 1e8;

const { mapping } = new DDSketch({ relativeAccuracy: limits.sketch_accuracy });
const KEY_MIN = mapping.key(VALUE_MIN);
const KEY_MAX = mapping.key(VALUE_MAX);

/**
 * How values are spread: each quantile, to one percent of the value. Sketches of several minutes or nodes merge into the one
 * that all their values together would have made.
 */
export class Sketch {
  readonly #inner = new DDSketch({ relativeAccuracy: limits.sketch_accuracy });

  add(value: number): void {
    this.#inner.accept(Math.min(Math.max(value, VALUE_MIN), VALUE_MAX));
  }

  get count(): number {
    return this.#inner.count;
  }

  merge(other: Sketch): void {
    this.#inner.merge(other.#inner);
  }

  /** The value that this share of all, from 0 to 1, do not pass. Not for a sketch without values. */
  quantile(share: number): number {
    return this.#inner.getValueAtQuantile(share);
  }

  /** As short text: how far each bin that holds anything is from the one before, and what it holds, in base 36. */
  pack(): string {
    const { bins, offset } = this.#inner.store;
    const parts: string[] = [];
    let before = 0;
    for (const [index, count] of bins.entries()) {
      if (count === 0) continue;
      const key = index + offset;
      parts.push(`${(key - before).toString(36)}.${count.toString(36)}`);
      before = key;
    }
    return parts.join(' ');
  }

  /** Merges what `pack` made. What is not of that form is passed over: it comes from a store. */
  mergePacked(text: string): void {
    if (text === '' || text.length > limits.sketch_chars_max) return;
    const inner = this.#inner;
    let key = 0;
    for (const part of text.split(' ')) {
      const [step = '', held = ''] = part.split('.');
      key += Number.parseInt(step, 36);
      const count = Number.parseInt(held, 36);
      if (!(count > 0 && key >= KEY_MIN && key <= KEY_MAX)) return;
      // What `accept` does with a value of this bin, without looking for the bin.
      inner.store.add(key, count);
      inner.count += count;
    }
  }
}
