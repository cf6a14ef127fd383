import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SKETCH_CHARS_MAX, Sketch } from './sketch.ts';

function sketchOf(values: readonly number[]): Sketch {
  const sketch = new Sketch();
  for (const value of values) sketch.add(value);
  return sketch;
}

const SHARES = [0, 0.5, 0.75, 0.9, 0.99, 1];
const quantiles = (sketch: Sketch) => SHARES.map((share) => sketch.quantile(share));
const values = fc.array(fc.double({ min: 0.01, max: 1e7, noNaN: true }), { minLength: 1, maxLength: 200 });

test('a quantile is that of the values, within one percent', () => {
  fc.assert(
    fc.property(values, fc.double({ min: 0, max: 1, noNaN: true }), (list, share) => {
      const sorted = [...list].sort((a, b) => a - b);
      const exact = sorted[Math.floor(share * (list.length - 1))] ?? 0;
      expect(Math.abs(sketchOf(list).quantile(share) - exact)).toBeLessThanOrEqual(exact * 0.0101);
    }),
  );
});

test('merged sketches equal the sketch of all values, packed or not', () => {
  fc.assert(
    fc.property(values, values, (one, other) => {
      const all = sketchOf([...one, ...other]);
      const merged = sketchOf(one);
      merged.merge(sketchOf(other));
      expect(quantiles(merged)).toEqual(quantiles(all));
      const packed = new Sketch();
      packed.mergePacked(sketchOf(one).pack());
      packed.mergePacked(sketchOf(other).pack());
      expect(quantiles(packed)).toEqual(quantiles(all));
      expect(packed.count).toBe(all.count);
      expect(packed.pack()).toBe(all.pack());
    }),
  );
});

test('the longest packed sketch can be read', () => {
  const sketch = new Sketch();
  for (let value = 1e-4; value < 1e9; value *= 1.005) sketch.add(value);
  const text = sketch.pack();
  expect(text.length).toBeLessThan(SKETCH_CHARS_MAX);
  const again = new Sketch();
  again.mergePacked(text);
  expect(again.count).toBe(sketch.count);
});

test.each(['x', '1', '1.', '1.0', '-zzzzz.1', 'zzzzzz.1', '1.1 1.-1', '.', 'NaN.1', ' '])(
  'an invalid packed sketch is harmless: %j',
  (text) => {
    const sketch = sketchOf([100]);
    sketch.mergePacked(text);
    expect(sketch.quantile(0)).toBeGreaterThan(0);
    expect(Number.isFinite(sketch.quantile(1))).toBe(true);
  },
);
