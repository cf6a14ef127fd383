import { GatewayError } from '../errors.ts';

/** A list of a body that names things, and how its entries become those that are stored. */
export interface NamedEntries<T> {
  field: string;
  given: readonly T[];
  /** What the record has now: sent back, it is taken as it is, since what it names may be gone meanwhile. */
  kept: readonly T[] | null | undefined;
  /** Undefined: there is no such thing. */
  resolve(entry: T): T | undefined;
  /** Ends the sentence that refuses an entry: `is not …`. */
  what: string;
}

/** The entries as they are stored, each once. Throws a 400 that names the first one that is nothing. */
export function resolveEntries<T>({ field, given, kept, resolve, what }: NamedEntries<T>): T[] {
  const found = given.map((entry, index) => {
    const known = kept?.includes(entry) ? entry : resolve(entry);
    if (known === undefined) throw new GatewayError(400, `${field}[${index}] is not ${what}`);
    return known;
  });
  return [...new Set(found)];
}
