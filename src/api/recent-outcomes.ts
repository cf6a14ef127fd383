import { setTimeout as sleep } from 'node:timers/promises';
import type { Recorder } from '../ledger/recorder.ts';
import { limits } from '../limits.ts';

/**
 * Waits until the store counts what this node has answered so far: those who ask for usage right after a request want to
 * see it. A store that is slow to take it does not hold the answer.
 */
export async function recentOutcomes(recorder: Pick<Recorder, 'flush'>): Promise<void> {
  await Promise.race([recorder.flush(), sleep(limits.flush_read_ms_max, undefined, { ref: false })]);
}
