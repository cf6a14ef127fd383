/**
 * A table for texts from outside: a name that every object inherits (`constructor`, `__proto__`) is in it only if it is among the
 * entries.
 */
export function lookupTable<T>(entries: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  return Object.assign(Object.create(null), entries);
}
