import { DDSketch } from '@datadog/sketches-js';

/** The relative error of percentiles. */
const SKETCH_ACCURACY = 0.01;
export const SKETCH_CHARS_MAX = 12_000;

/** The range of values that are distinguished; values outside are clamped to it. */
const VALUE_MIN = 1e-3;
const VALUE_MAX = 1e8;

const { mapping } = new DDSketch({ relativeAccuracy: SKETCH_ACCURACY });
const KEY_MIN = mapping.key(VALUE_MIN);
const KEY_MAX = mapping.key(VALUE_MAX);

/**
 * A distribution of values with quantiles to one percent of the value. Merged sketches equal the sketch of all their values.
 */
export class Sketch {
  readonly #inner = new DDSketch({ relativeAccuracy: SKETCH_ACCURACY });

  add(value: number): void {
    this.#inner.accept(Math.min(Math.max(value, VALUE_MIN), VALUE_MAX));
  }

  get count(): number {
    return this.#inner.count;
  }

  merge(other: Sketch): void {
    this.#inner.merge(other.#inner);
  }

  /** The value that this share (0 to 1) of all values does not exceed. Not for an empty sketch. */
  quantile(share: number): number {
    return this.#inner.getValueAtQuantile(share);
  }

  /** As short text: for each non-empty bin the distance to the previous one and its count, in base 36. */
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

  /** Merges the output of `pack`. Stops at invalid data, since the text is read from a store. */
  mergePacked(text: string): void {
    if (text === '' || text.length > SKETCH_CHARS_MAX) return;
    const inner = this.#inner;
    let key = 0;
    for (const part of text.split(' ')) {
      const [step = '', countText = ''] = part.split('.');
      key += Number.parseInt(step, 36);
      const count = Number.parseInt(countText, 36);
      if (!(count > 0 && key >= KEY_MIN && key <= KEY_MAX)) return;
      // Equivalent to `accept` for a value of this bin, without searching the bin.
      inner.store.add(key, count);
      inner.count += count;
    }
  }
}
