import type { Subject } from './subject.ts';
import { type RunOptions, type RunReport, World } from './world.ts';

/** One run; the same seed, sources and options give the same run. */
export function simulate(
  seed: number,
  subject: Subject,
  options: RunOptions = {},
  how: { stops_early?: boolean } = {},
): Promise<RunReport> {
  return new World(seed, subject, options).run(how);
}
