import type { Queries } from '../../src/storage/database.ts';

/** Resolves when `work` is done in a transaction that stays open; the returned function commits it. */
export async function heldTransaction(
  queries: Queries,
  work: (tx: Queries) => Promise<unknown>,
): Promise<() => Promise<void>> {
  const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>();
  const { promise: done, resolve: finish } = Promise.withResolvers<void>();
  const running = queries.transaction().execute(async (tx) => {
    await work(tx);
    finish();
    await mayCommit;
  });
  await Promise.race([done, running]);
  return () => {
    commit();
    return running;
  };
}
