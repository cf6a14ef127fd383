import { shuttingDown } from '../../errors.ts';
import { ClientGone } from '../../inference/attempt/exchange.ts';
import type { Cancellation } from '../../inference/call.ts';

/** What is thrown of a call, as its client is told: where the gateway stops, it is still there. */
export function toldError(thrown: unknown, { stopped }: Pick<Cancellation, 'stopped'>): unknown {
  return thrown instanceof ClientGone && stopped ? shuttingDown() : thrown;
}
