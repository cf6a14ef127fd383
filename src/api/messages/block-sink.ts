import type { JsonObject } from '../../schemas/json.ts';

/** What blocks are written to: one is open at a time. */
export interface BlockSink {
  start(block: JsonObject): void;
  text(piece: string): void;
  thinking(piece: string): void;
  signature(signature: string): void;
  /** A piece of a tool's input, as text. */
  input(piece: string): void;
  /** A delta of a native block, as its wire told it. */
  raw(delta: JsonObject): void;
  cite(citation: JsonObject): void;
  stop(): void;
}
