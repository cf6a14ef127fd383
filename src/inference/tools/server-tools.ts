import type { Candidate } from '../../routing/candidate.ts';
import type { FunctionTool, InnerTool, TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { Call } from '../call.ts';

/** A page that a search or a tool returned, and that an answer may cite. */
export interface CitedSource {
  url: string;
  title: string;
  content: string;
}

/** The result of one run of a tool. */
export interface ToolOutcome {
  /** The text for the model. */
  content: string;
  sources: readonly CitedSource[];
  /** At most the tool's `cost_nano_max`. */
  cost_nano: number;
  counts: Pick<NonNullable<TokenClasses['counts']>, 'web_search' | 'web_fetch'>;
  /** The run failed; `content` explains it to the model. */
  has_failed?: true;
}

/** The context of a run. */
export interface ToolContext {
  call: Call;
  /** Aborted if the client leaves or the time limit passes. */
  signal: AbortSignal;
  /** The current wall-clock time. */
  now_ms: number;
}

/** A tool that the gateway runs for one call, with the call's options and state that lasts from run to run. */
export interface ServerTool {
  /** The client's name for it: `gateway:web_search`. */
  type: string;
  /** The function for the model. Its name is changed if the client has a tool of that name. */
  declaration: FunctionTool;
  /** The most that one run may cost. Held before the run. */
  cost_nano_max: number;
  /** The most runs in one call. Not set if only the limit of the call applies. */
  max_uses?: number;
  /** The query of a run that clients see. Not set if its runs are not shown. */
  query?(args: JsonObject): string;
  /** If it rejects with a `GatewayError`, the model gets its message. */
  run(args: JsonObject, context: ToolContext): Promise<ToolOutcome>;
}

/** The gateway's tools of one call. */
export interface CallTools {
  /** The tool of an entry of `request.tools` after the adapters. Undefined if the entry is not a tool of the gateway. */
  of(tool: InnerTool): ServerTool | undefined;
}

/** Finds the gateway's tools of a call. Undefined if it requests none. */
export type ServerTools = (call: Call) => CallTools | undefined;

/** The result and cost of one piece of paid work beside the attempts. */
export interface FeeOutcome<T> {
  value: T;
  cost_nano: number;
  counts?: ToolOutcome['counts'];
}

/** What the adapters of a call may use during the preparation of its attempts. */
export interface CallResources {
  fees: Fees;
  /** The endpoints of its plan. */
  candidates: readonly Candidate[];
  /** Pages that the answer may cite. An adapter that puts pages into the prompt adds them. */
  sources: CitedSource[];
}

/** Pays for work of a call that is not done by its model, for example a search before the call. */
export interface Fees {
  /**
   * Holds the most that the work may cost, makes the hold durable, runs the work and charges its cost. `name`: the line of the bill.
   * Rejects with the ledger's 402 or 503 if it cannot be paid; then nothing was run. Rejects with the error of `run`; then nothing is
   * charged, or the whole hold for `CallCancelled`. Must not be called while an attempt is running.
   */
  spend<T>(fee: { name: string; cost_nano_max: number }, run: () => Promise<FeeOutcome<T>>): Promise<T>;
}
