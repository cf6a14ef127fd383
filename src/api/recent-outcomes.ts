import { setTimeout as sleep } from 'node:timers/promises';
import type { Recorder } from '../ledger/recorder.ts';
import { limits } from '../limits.ts';

/**
 * Waits until the store has counted what this node answered so far, so that usage that is read directly after a request includes it. Does
 * not wait long for a slow store.
 */
export async function recentOutcomes(recorder: Pick<Recorder, 'flush'>): Promise<void> {
  await Promise.race([recorder.flush(), sleep(limits.flush_read_ms_max, undefined, { ref: false })]);
}
