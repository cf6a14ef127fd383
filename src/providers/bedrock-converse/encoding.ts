import type { Encoding as ClaudeEncoding } from '../anthropic-messages/to-wire.ts';
import type { Media } from '../dialect.ts';
import type { Family } from './family.ts';

/** The state that the steps of one encoding share; the rules of Claude are those of its own wire. */
export interface Encoding extends ClaudeEncoding {
  family: Family;
  upstream_model: string;
  media: Media;
  input_modalities: readonly string[];
  /** Names of the documents so far, which must be unique in a request. */
  documents: Set<string>;
}
