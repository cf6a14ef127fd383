import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const root = new URL('../../', import.meta.url);
const text = readFileSync(new URL('docs/pitfalls.md', root), 'utf8');

/** The rows of the tables: the pitfall, and its tests. */
const rows = [...text.matchAll(/^\| (?!Pitfall |---)(.+?) \| (.+) \|$/gm)].map(([, pitfall = '', held = '']) => ({
  pitfall,
  held,
}));

/** Each path, with the quoted words that its file must contain, if there are any. */
function namedIn(held: string): { path: string; words: string | undefined }[] {
  return [...held.matchAll(/`([^`]+)`(?: "([^"]+)")?/g)].map(([, path = '', words]) => ({ path, words }));
}

test('every pitfall names existing tests', () => {
  expect(rows.length).toBeGreaterThan(80);
  const wrong = rows.flatMap(({ pitfall, held }) => {
    const named = namedIn(held);
    if (named.length === 0 && !/^Cannot occur: \S/.test(held)) return [`${pitfall}: nothing is named`];
    return named.flatMap(({ path, words }) => {
      const file = new URL(path, root);
      if (!existsSync(file)) return [`${pitfall}: no ${path}`];
      return words === undefined || readFileSync(file, 'utf8').includes(words)
        ? []
        : [`${pitfall}: no "${words}" in ${path}`];
    });
  });
  expect(wrong).toEqual([]);
});

test('only tests and files that tests read are named', () => {
  const others = rows
    .flatMap(({ held }) => namedIn(held))
    .map(({ path }) => path)
    .filter((path) => !/\.test\.ts$|^test\/(?:transcripts|readings)\//.test(path));
  expect([...new Set(others)]).toEqual([]);
});
