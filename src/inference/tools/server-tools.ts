import type { FunctionTool, InnerTool, TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { Call } from '../call.ts';

/** A page that a search found or a tool read: what an answer may cite. */
export interface Source {
  url: string;
  title: string;
  content: string;
}

/** What came of one run of a tool. */
export interface ToolOutcome {
  /** What the model is told. */
  content: string;
  sources: readonly Source[];
  /** At most the tool's `cost_nano_max`. */
  cost_nano: number;
  counts: Pick<NonNullable<TokenClasses['counts']>, 'web_search' | 'web_fetch'>;
  /** It did not work; `content` says why, in words for the model. */
  has_failed?: true;
}

/** What a run may know of its surroundings. */
export interface ToolContext {
  call: Call;
  /** Aborted when the client has left, or the time is over. */
  signal: AbortSignal;
  /** Now, by the wall clock. */
  now_ms: number;
}

/** A tool that the gateway runs, as one call asked for it: with its options, and what it remembers between its runs. */
export interface ServerTool {
  /** What the client calls it: `gateway:web_search`. */
  type: string;
  /** As the model sees it; the name is changed where the client has a tool of that name. */
  declaration: FunctionTool;
  /** What one run may cost at most: set aside before it runs. */
  cost_nano_max: number;
  /** Runs in one call; absent: as many as the call may have. */
  max_uses?: number;
  /** What clients are shown as the query of a run with these arguments; absent: nothing is shown of its runs. */
  query?(args: JsonObject): string;
  /** A rejection is told to the model in its own words where it is a `GatewayError`. */
  run(args: JsonObject, context: ToolContext): Promise<ToolOutcome>;
}

/** The gateway's tools of one call. */
export interface CallTools {
  /** Which of them an entry of `request.tools` is, as the adapters left it for an endpoint; undefined: none of ours. */
  of(tool: InnerTool): ServerTool | undefined;
}

/** Looks at a call; undefined: it asks for no tool of the gateway's. */
export type ServerTools = (call: Call) => CallTools | undefined;

/** What one piece of paid work beside the attempts cost. */
export interface FeeOutcome<T> {
  value: T;
  cost_nano: number;
  counts?: ToolOutcome['counts'];
}

/** What adapters of a call may use while its attempts are prepared. */
export interface CallResources {
  fees: Fees;
  /** Pages that the answer may cite. An adapter that puts pages into the prompt adds them. */
  sources: Source[];
}

/** Pays for work of a call that no model does: a search before it, pages that are read from pictures. */
export interface Fees {
  /**
   * Sets aside what it may cost, makes that durable, runs it, and charges what it did cost. `name` is what the line of the bill is
   * called. Rejects with the ledger's 402 or 503 where it cannot be paid, and then nothing was run; with what `run` rejects
   * with, and then it is charged nothing, or all that was set aside where that is `CallCancelled`. Not while an attempt is under way.
   */
  spend<T>(fee: { name: string; cost_nano_max: number }, run: () => Promise<FeeOutcome<T>>): Promise<T>;
}
