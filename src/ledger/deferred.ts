/** A promise that is settled from outside. */
export interface Deferred {
  promise: Promise<void>;
  resolve: () => void;
  reject: (error: Error) => void;
}

/** A promise whose rejection is never unhandled: the caller that rejects it reports the failure elsewhere. */
export function deferred(): Deferred {
  const created = Promise.withResolvers<void>();
  created.promise.catch(() => {});
  return created;
}
