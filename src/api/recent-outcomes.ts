import { setTimeout as sleep } from 'node:timers/promises';
import type { Recorder } from '../ledger/recorder.ts';

/** How long a reader of usage waits for this node's last outcomes to be in it. */
const FLUSH_READ_MS_MAX = 500;

/**
 * Waits until the store has counted what this node answered so far, so that usage that is read directly after a request includes it. Does
 * not wait long for a slow store.
 */
export async function recentOutcomes(recorder: Pick<Recorder, 'flush'>): Promise<void> {
  await Promise.race([recorder.flush(), sleep(FLUSH_READ_MS_MAX, undefined, { ref: false })]);
}
