import { shuttingDown } from '../../errors.ts';
import { CallCancelled } from '../../inference/attempt/upstream-call.ts';
import type { Cancellation } from '../../inference/call.ts';

/** The error of a call as the client sees it: if the gateway stops, the error says so, since the client is still connected. */
export function clientError(thrown: unknown, { stopped }: Pick<Cancellation, 'stopped'>): unknown {
  return thrown instanceof CallCancelled && stopped ? shuttingDown() : thrown;
}
