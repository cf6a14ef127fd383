import { createHash } from 'node:crypto';
import { limits } from '../../limits.ts';
import { lookupTable } from '../../schemas/lookup-table.ts';
import type { Media } from '../dialect.ts';
import type { AddReport } from '../shared/reports.ts';
import type { ModelFacts } from './model-facts.ts';

/** The state that the steps of one encoding share. */
export interface Encoding {
  facts: ModelFacts;
  /** Vertex AI, not AI Studio. */
  is_cloud: boolean;
  media: Media;
  names: ToolNames;
  strip_state: boolean;
  addReport: AddReport;
}

/** Maps names of functions to the wire's form and back. One per request. */
export interface ToolNames {
  toWire(name: string): string;
  /** Wire name to the client's, for changed names only. */
  renamed(): Record<string, string>;
}

/** https://ai.google.dev/api/caching#FunctionDeclaration, `name`. */
const FITS = new RegExp(`^[A-Za-z_][A-Za-z0-9_.:-]{0,${limits.tool_name_chars_max - 1}}$`);
const HASH_CHARS = 6;

/** An empty map of names. */
export function createToolNames(): ToolNames {
  const renamed = new Map<string, string>();
  return {
    toWire(name) {
      if (FITS.test(name)) return name;
      const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH_CHARS);
      const legal = name.replaceAll(/[^A-Za-z0-9_.:-]/g, '_').replace(/^(?![A-Za-z_])/, '_');
      const wire = `${legal.slice(0, limits.tool_name_chars_max - HASH_CHARS - 1)}_${hash}`;
      renamed.set(wire, name);
      return wire;
    },
    renamed: () => lookupTable(Object.fromEntries(renamed)),
  };
}
