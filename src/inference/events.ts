/** The engine's result for a chat call: a whole answer, or the events of a stream. */
import type { GatewayError } from '../errors.ts';
import type { Source } from '../http/sources.ts';
import type { ChatChunk, ChatCompletion, TokenClasses } from '../schemas/inner.ts';
import type { AnswerUsage } from './money/answer-usage.ts';
import type { SentBody, Served } from './state.ts';

export type { SentBody, Served } from './state.ts';

/** A whole answer. */
export interface WholeAnswer {
  completion: ChatCompletion;
  served: Served;
  usage: AnswerUsage;
  /** The usage in disjoint classes, as it is priced; null: nothing was used, or the usage is unknown. */
  classes: TokenClasses | null;
  metadata: Record<string, unknown> | undefined;
}

/** The events of a stream: one `open`, then `chunks`, then one `end`. A further `open` says that another endpoint continues. */
export type StreamEvent =
  | { type: 'open'; served: Served; upstream_bodies: SentBody[] }
  | { type: 'chunks'; chunks: ChatChunk[] }
  | StreamEnd;

/** An event of a stream, or a source that yields events. */
export type StreamPart = StreamEvent | Source<StreamEvent>;

/** The end of a stream, with its usage and cost over all attempts. */
export interface StreamEnd {
  type: 'end';
  usage: AnswerUsage;
  /** The usage in disjoint classes, as it is priced; null: nothing was used, or the usage is unknown. */
  classes: TokenClasses | null;
  metadata: Record<string, unknown> | undefined;
  error: GatewayError | undefined;
}
