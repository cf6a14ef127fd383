interface Waiting<T> {
  make: () => Promise<T>;
  result: Promise<T>;
}

/**
 * Runs functions one after another, so that at most one is running. Callers with the same name that wait share one result, made by the
 * last of their functions.
 */
export function oneAtATime<T>(): (name: string, make: () => Promise<T>) => Promise<T> {
  const waiting = new Map<string, Waiting<T>>();
  let last: Promise<unknown> = Promise.resolve();
  return (name, make) => {
    const entry = waiting.get(name);
    if (entry !== undefined) {
      entry.make = make;
      return entry.result;
    }
    const begin = () => {
      const { make: makeLatest } = waiting.get(name)!;
      waiting.delete(name);
      return makeLatest();
    };
    const result = last.then(begin);
    waiting.set(name, { make, result });
    last = result.catch(() => undefined);
    return result;
  };
}
