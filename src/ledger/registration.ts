import { randomUUID } from 'node:crypto';
import type { LedgerClock } from './ledger-clock.ts';
import { isBefore, type LedgerStore, type Position, type Registered } from './settle.ts';

interface RegisterOptions {
  /** The highest epoch in the journal; the new one is higher. */
  epochSeen: number;
  /** The last batch that the store acknowledged. */
  acknowledged: Position;
  /** Called if the store knows nothing after `known`, which is before `acknowledged`. */
  onForgotten: (known: Position) => void;
  clock: LedgerClock;
}

/**
 * Registers the node under an epoch above the store's and the journal's. `onForgotten` is called before the store registers
 * the node: afterwards the store no longer shows what it forgot, and a caller that loses the answer registers again.
 */
export async function register(store: LedgerStore, node: string, options: RegisterOptions): Promise<Registered> {
  const { epochSeen, acknowledged, onForgotten, clock } = options;
  for (;;) {
    const known = await store.position(node);
    if (isBefore(known, acknowledged)) onForgotten(known);
    const at = clock.now();
    const registered = await store.register({ node, instance: randomUUID(), epoch_seen: epochSeen, known, at });
    // Undefined if the store was set back between the two calls.
    if (registered) return registered;
  }
}
