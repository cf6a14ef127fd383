import { shuttingDown } from '../../errors.ts';
import { CallCancelled } from '../../inference/attempt/exchange.ts';
import type { Cancellation } from '../../inference/call.ts';

/** What is thrown of a call, as its client is told: where the gateway stops, it is still there. */
export function clientError(thrown: unknown, { stopped }: Pick<Cancellation, 'stopped'>): unknown {
  return thrown instanceof CallCancelled && stopped ? shuttingDown() : thrown;
}
