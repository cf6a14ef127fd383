import type { Subject } from './subject.ts';
import { type Mode, type RunReport, World } from './world.ts';

/** One run; the same seed, sources and options give the same run. */
export function simulate(
  seed: number,
  subject: Subject,
  { mode = 'strict', requests = 700 }: { mode?: Mode; requests?: number } = {},
): Promise<RunReport> {
  return new World(seed, subject, { mode, requests }).run();
}
