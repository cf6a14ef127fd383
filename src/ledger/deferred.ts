/** A promise that is settled from outside. */
export interface Deferred {
  promise: Promise<void>;
  resolve: () => void;
  reject: (error: Error) => void;
}

/** A failure that nobody waits for is no unhandled rejection: whoever makes it reports it otherwise. */
export function deferred(): Deferred {
  const made = Promise.withResolvers<void>();
  made.promise.catch(() => {});
  return made;
}
