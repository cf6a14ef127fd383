import type { Encoding as ClaudeEncoding } from '../anthropic-messages/to-wire.ts';
import type { Media } from '../dialect.ts';
import type { Family } from './family.ts';

/** What the parts of one request's encoding share; the rules of Claude are those of its own wire. */
export interface Encoding extends ClaudeEncoding {
  family: Family;
  upstream_model: string;
  media: Media;
  input_modalities: readonly string[];
  /** Names of documents so far: no two of a request may share one. */
  documents: Set<string>;
}
