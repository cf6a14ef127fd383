import { expect, test } from 'vitest';
import { countFindings } from './finding.ts';

test('findings of many texts are counted by filter and pattern', () => {
  const at = { start: 0, end: 1 };
  const matches = [
    {
      findings: [
        { filter: 0, ...at },
        { filter: 1, ...at },
        { filter: 0, ...at },
      ],
    },
    {
      findings: [
        { filter: 1, pattern: 'p', ...at },
        { filter: 1, pattern: 'q', ...at },
        { filter: 1, pattern: 'p', ...at },
      ],
    },
    { findings: [{ filter: 1, ...at }] },
  ];
  expect(countFindings(matches)).toEqual([
    { filter: 0, count: 2 },
    { filter: 1, count: 2 },
    { filter: 1, pattern: 'p', count: 2 },
    { filter: 1, pattern: 'q', count: 1 },
  ]);
});
