import type { LedgerStore, Registered } from '../../src/ledger/settle.ts';

/** Registers a node again, even if the store knows it. */
export async function registerNode(
  store: LedgerStore,
  node: string,
  { epoch_seen = 0, at = 1 }: { epoch_seen?: number; at?: number } = {},
): Promise<Registered> {
  for (;;) {
    const known = await store.position(node);
    const registered = await store.register({ node, instance: 'i', epoch_seen, known, at });
    if (registered) return registered;
  }
}
