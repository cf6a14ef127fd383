/** Which files belong to which tier of tests. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** `second`: what the first tier leaves out, and the files of which it runs a part. */
export type Tier = 'first' | 'second' | 'all';

const root = join(import.meta.dirname, '..');
const LONG = '**/*.long.test.ts';
const ALL = ['src/**/*.test.ts', 'sandbox/*.test.ts', 'test/**/*.test.ts', 'bench/*.test.ts'];
/** The functions with which a test file behaves differently in the second tier. */
const SCALED = /\b(?:inTier|recordingsOf|recordedAnswers)\(|\brecordingsFolder\b/;
/** The modules that define them. */
const MAKERS = new Set([
  'test/tier.ts',
  'test/tier-files.ts',
  'test/readings/recordings.ts',
  'test/wires/recorded-upstream.ts',
]);

/** The files of a tier, as patterns. A long file on the command line runs in any tier. */
export function filesOf(tier: Tier): { include: string[]; exclude: string[] } {
  const exclude = ['**/node_modules/**'];
  if (tier === 'first' && !process.argv.some((word) => word.includes('.long.'))) exclude.push(LONG);
  if (tier !== 'second') return { include: ALL, exclude };
  const known = new Map<string, boolean>();
  const scaled = globSync(ALL, { cwd: root, exclude: [LONG] }).filter((file) => isScaled(file, known));
  return { include: [LONG, ...scaled], exclude };
}

/** Whether a file, or one of the tests' own modules that it imports, does more in the second tier. */
function isScaled(file: string, known: Map<string, boolean>): boolean {
  const before = known.get(file);
  if (before !== undefined) return before;
  known.set(file, false);
  const text = readFileSync(join(root, file), 'utf8');
  const imported = [...text.matchAll(/from '(\.[^']+\.ts)'/g)]
    .map(([, name = '']) => join(dirname(file), name))
    .filter((name) => name.startsWith('test/') && !MAKERS.has(name) && existsSync(join(root, name)));
  const scaled = SCALED.test(text) || imported.some((name) => isScaled(name, known));
  known.set(file, scaled);
  return scaled;
}
