import { GatewayError } from '../errors.ts';

/** A list field of a body whose entries name resources, and how the entries are resolved to what is stored. */
export interface NamedEntries<T> {
  field: string;
  entries: readonly T[];
  /** The list in the record. Its entries are accepted unchanged, since what they name may have been deleted meanwhile. */
  stored: readonly T[] | null | undefined;
  /** Returns the stored form of an entry; undefined if it names nothing. */
  resolve(entry: T): T | undefined;
  /** Completes the sentence that refuses an entry: `is not …`. */
  what: string;
}

/** The entries in their stored form, without duplicates. Throws a 400 that names the first entry that cannot be resolved. */
export function resolveEntries<T>({ field, entries, stored, resolve, what }: NamedEntries<T>): T[] {
  const resolved = entries.map((entry, index) => {
    const value = stored?.includes(entry) ? entry : resolve(entry);
    if (value === undefined) throw new GatewayError(400, `${field}[${index}] is not ${what}`);
    return value;
  });
  return [...new Set(resolved)];
}
