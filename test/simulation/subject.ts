import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** The code that a run tests. */
export interface Subject {
  startNode: typeof import('../../src/ledger/start-node.ts')['startNode'];
  ledgerStore: typeof import('../../src/storage/ledger.ts')['ledgerStore'];
  ledgerOperations: typeof import('../../src/storage/ledger-operations.ts')['ledgerOperations'];
  migrate: typeof import('../../src/storage/migrations.ts')['migrate'];
  windowStart: typeof import('../../src/schemas/budget.ts')['windowStart'];
  limits: typeof import('../../src/limits.ts')['limits'];
  watchRules: typeof import('../../src/errors.ts')['watchRules'];
}

/** A started node of it. */
export type SubjectNode = Awaited<ReturnType<Subject['startNode']>>;

/** The project's own sources. */
export const SOURCES = join(import.meta.dirname, '..', '..', 'src');

/** The files that contain it. */
export const ENTRIES = [
  'ledger/start-node.ts',
  'storage/ledger.ts',
  'storage/ledger-operations.ts',
  'storage/migrations.ts',
  'schemas/budget.ts',
  'limits.ts',
  'errors.ts',
];

/** Loads the sources in a folder: the project's own, or a copy with a fault. */
export async function loadSubject(folder: string): Promise<Subject> {
  const load = (file: string) => import(pathToFileURL(join(folder, file)).href);
  const modules = await Promise.all(ENTRIES.map(load));
  const { startNode, ledgerStore, ledgerOperations, migrate, windowStart, limits, watchRules } = Object.assign(
    {},
    ...modules,
  );
  return { startNode, ledgerStore, ledgerOperations, migrate, windowStart, limits, watchRules };
}
