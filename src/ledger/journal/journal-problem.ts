import { isDiskFull } from './disk.ts';

/** Says why the journal cannot be written, where it is, and what to do. */
export function journalProblem(facts: { dir: string; failure: Error | undefined; is_dead: boolean }): string {
  const { dir, failure, is_dead } = facts;
  if (is_dead) {
    const cause = failure?.message ?? 'it is closed';
    return `the journal in ${dir} cannot be relied on until a restart (${cause}); check the disk and restart the gateway`;
  }
  if (isDiskFull(failure)) return `the disk is full: the journal in ${dir} cannot be written; free some space there`;
  return `the journal in ${dir} cannot be written (${failure?.message}); check the disk`;
}
