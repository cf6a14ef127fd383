/**
 * The shape of the sources: no modules import each other in a circle. Exceptions are listed here, and the list can only
 * become shorter: an entry that is no longer needed fails as well. Branches on client APIs and wires:
 * `branches.test.ts`.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
const production = globSync(['src/**/*.ts', 'sandbox/*.ts'], { cwd: root, exclude: ['**/*.test.ts'] })
  .map((file) => file.replaceAll('\\', '/'))
  .sort()
  .map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }));

/** Circles of modules that need each other at run time. */
const VALUE_CIRCLES: readonly (readonly string[])[] = [];
/** Circles in which at least one module needs only a type of the next. */
const TYPE_CIRCLES: readonly (readonly string[])[] = [];

type Graph = ReadonlyMap<string, ReadonlySet<string>>;

const IMPORT =
  /^(?:import|export)\s+(type\s)?([^;'"]*?)\s*from\s+'(\.[^']+)'|\bimport\('(\.[^']+)'\)|^import\s+'(\.[^']+)'/gm;

/** Whether all names between the braces are types. */
function namesTypesAlone(names: string): boolean {
  const inside = /^\{([^}]*)\}$/s.exec(names.trim())?.[1];
  if (inside === undefined) return false;
  return inside.split(',').every((name) => name.trim() === '' || /^type\s/.test(name.trim()));
}

/** The files that each file of `src` imports: for values, or for types as well. */
function importsOf(alsoTypes: boolean): Graph {
  const files = new Set(production.map(({ file }) => file));
  return new Map(
    production.map(({ file, text }) => {
      const targets = new Set<string>();
      for (const [, type, names = '', from, later, bare] of text.matchAll(IMPORT)) {
        const isType = from !== undefined && (type !== undefined || namesTypesAlone(names));
        if (isType && !alsoTypes) continue;
        const target = resolve('/', dirname(file), from ?? later ?? bare ?? '').slice(1);
        if (files.has(target)) targets.add(target);
      }
      return [file, targets];
    }),
  );
}

/** The groups of files that reach each other (Tarjan's algorithm). */
function circlesOf(graph: Graph): string[][] {
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const onStack = new Set<string>();
  const circles: string[][] = [];
  const visit = (file: string): void => {
    index.set(file, index.size);
    low.set(file, index.get(file)!);
    stack.push(file);
    onStack.add(file);
    for (const next of graph.get(file) ?? []) {
      if (!index.has(next)) visit(next);
      if (onStack.has(next)) low.set(file, Math.min(low.get(file)!, low.get(next)!));
    }
    if (low.get(file) !== index.get(file)) return;
    const group = stack.splice(stack.indexOf(file));
    for (const one of group) onStack.delete(one);
    if (group.length > 1) circles.push(group.sort());
  };
  for (const file of graph.keys()) if (!index.has(file)) visit(file);
  return circles.sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
}

test('no modules import values of each other in a circle, except listed ones', () => {
  expect(circlesOf(importsOf(false))).toEqual(VALUE_CIRCLES);
});

test('no modules import each other in a circle, types included, except listed ones', () => {
  expect(circlesOf(importsOf(true))).toEqual(TYPE_CIRCLES);
});

test('a circle is found, and a module that only imports from one is not part of it', () => {
  const graph = new Map([
    ['a', new Set(['b'])],
    ['b', new Set(['c'])],
    ['c', new Set(['a'])],
    ['d', new Set(['a'])],
  ]);
  expect(circlesOf(graph)).toEqual([['a', 'b', 'c']]);
});
