import { expect, test } from 'vitest';
import { corpus, LABELLED, score } from '../../../test/filters/corpus.ts';
import { BuiltinScanner, scannedSlugs } from './builtins.ts';

const scanner = new BuiltinScanner(scannedSlugs, ['US']);

/**
 * Measured with this seed: all 1, except telephone numbers (recall 0.95, precision 0.98): some countries have no trunk prefix, so nothing
 * marks a number.
 */
const FLOORS: Readonly<Record<string, readonly [recall: number, precision: number]>> = {
  email: [0.995, 0.995],
  phone: [0.94, 0.97],
  ssn: [0.995, 0.995],
  'credit-card': [0.995, 0.99],
  'ip-address': [0.995, 0.99],
};

test('detectors reach their recall and precision on the labelled corpus of nine locales', () => {
  const scores = score(corpus(2, 60), (text) => {
    const matches: { slug: string; start: number; end: number }[] = [];
    scanner.scan(text, (slug, start, end) => matches.push({ slug, start, end }));
    return matches;
  });
  for (const slug of LABELLED) {
    const { labelled, reported, right, wrong, missed } = scores.get(slug)!;
    const [recall, precision] = FLOORS[slug]!;
    expect(labelled).toBe(540);
    expect(right / labelled, missed.slice(0, 5).join('\n')).toBeGreaterThanOrEqual(recall);
    expect((reported - wrong.length) / reported, wrong.slice(0, 5).join('\n')).toBeGreaterThanOrEqual(precision);
  }
});
