import type { JsonObject } from '../../schemas/json.ts';

/** Receives the blocks of an answer. One is open at a time. */
export interface BlockSink {
  start(block: JsonObject): void;
  text(piece: string): void;
  thinking(piece: string): void;
  signature(signature: string): void;
  /** A piece of a tool's input, as JSON text. */
  input(piece: string): void;
  /** A delta of a native block, as received. */
  raw(delta: JsonObject): void;
  cite(citation: JsonObject): void;
  stop(): void;
}
