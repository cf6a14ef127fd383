import { createHash } from 'node:crypto';
import { limits } from '../../limits.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const FITS = /^[A-Za-z0-9_-]+$/;
const NAME_HASH_CHARS = 6;

/** The id if the wire accepts it (`^[a-zA-Z0-9_-]+$`), else a hash of it: the same for call and result. */
export function wireCallId(id: string): string {
  return id.length <= limits.tool_call_id_chars_max && FITS.test(id) ? id : base62(id, limits.tool_call_id_chars_max);
}

/** An id for a call whose own is missing or already used: deterministic for an answer and ordinal. */
export function mintCallId(generationId: string, ordinal: number): string {
  return `call_${base62(`${generationId}:${ordinal}`, 24)}`;
}

/** Maps names of tools to the wire's form and back. One per request. */
export interface ToolNames {
  toWire(name: string): string;
  /** Wire name to the client's, for changed names only. */
  renamed(): Record<string, string>;
}

/** Leaves names unchanged. */
export const unchangedNames: ToolNames = { toWire: (name) => name, renamed: () => lookupTable({}) };

/** An empty map of names. */
export function createToolNames(): ToolNames {
  const renamed = new Map<string, string>();
  return {
    toWire(name) {
      if (name.length <= limits.tool_name_chars_max && FITS.test(name)) return name;
      const hash = createHash('sha256').update(name).digest('hex').slice(0, NAME_HASH_CHARS);
      const stem = name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, limits.tool_name_chars_max - NAME_HASH_CHARS - 1);
      const wire = `${stem}_${hash}`;
      renamed.set(wire, name);
      return wire;
    },
    renamed: () => lookupTable(Object.fromEntries(renamed)),
  };
}

function base62(text: string, charsMax: number): string {
  let rest = BigInt(`0x${createHash('sha256').update(text).digest('hex')}`);
  let digits = '';
  while (rest > 0n && digits.length < charsMax) {
    digits += BASE62[Number(rest % 62n)];
    rest /= 62n;
  }
  return digits;
}
