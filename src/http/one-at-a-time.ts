interface Waiting<T> {
  make: () => Promise<T>;
  result: Promise<T>;
}

/**
 * Runs functions one after another, so that what takes long is under way once, however many ask. Those who ask for the
 * same name while it waits get one result together, made by the function of the last of them.
 */
export function oneAtATime<T>(): (name: string, make: () => Promise<T>) => Promise<T> {
  const waiting = new Map<string, Waiting<T>>();
  let last: Promise<unknown> = Promise.resolve();
  return (name, make) => {
    const same = waiting.get(name);
    if (same !== undefined) {
      same.make = make;
      return same.result;
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
