import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { type JsonObject, type JsonValue, parseJson } from '../../schemas/json.ts';
import { answerLevels, structureBreach } from '../../schemas/json-structure.ts';
import { CallCancelled } from '../attempt/upstream-call.ts';
import type { Call, Clock } from '../call.ts';
import type { Pay } from '../money/fees.ts';
import type { CallState } from '../state.ts';
import type { FeeOutcome, ServerTool, ToolOutcome } from './server-tools.ts';
import { shortName } from './tool-rules.ts';
import type { ServerCall } from './tool-turn.ts';

/** Calls of the gateway's own tools that run at the same time. */
const SERVER_TOOLS_AT_ONCE_MAX = 8;
/** Characters of the result of one run. */
const SERVER_TOOL_RESULT_CHARS_MAX = 400_000;

/** The result of one call. */
export interface ToolRun {
  call: ServerCall['call'];
  tool: ServerTool;
  args: JsonObject;
  outcome: ToolOutcome;
}

/** How often the tools of one call ran. */
export interface Uses {
  calls_max: number;
  /** By type. */
  readonly byTool: Map<string, number>;
  requested: number;
  executed: number;
}

/** A tool that was not run, or failed, in words for the model. */
function failed(content: string, costNano = 0): ToolOutcome {
  return { content, sources: [], cost_nano: costNano, counts: {}, has_failed: true };
}

/** The arguments of a call; undefined if they are no JSON object. */
export function argumentsOf(text: string): JsonObject | undefined {
  if (text.trim() === '') return {};
  if (structureBreach(text, answerLevels) !== undefined) return undefined;
  let value: JsonValue;
  try {
    value = parseJson(text);
  } catch {
    return undefined;
  }
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
}

/** The reason why a call is not run; undefined if it runs, and counts. */
function refusal({ tool }: ServerCall, args: JsonObject | undefined, uses: Uses): string | undefined {
  uses.requested += 1;
  const used = uses.byTool.get(tool.type) ?? 0;
  if (args === undefined) return 'The arguments of this call are not a JSON object.';
  if (tool.max_uses !== undefined && used >= tool.max_uses) {
    return `This tool was already called ${tool.max_uses} times for this answer, which is the maximum. Continue without it.`;
  }
  if (uses.executed >= uses.calls_max) {
    return `This answer has already called ${uses.calls_max} tools, which is the maximum. Continue without them.`;
  }
  uses.byTool.set(tool.type, used + 1);
  uses.executed += 1;
  return undefined;
}

/** Runs calls of the gateway's tools: several at a time, each for a bounded time, all paid for before they run. */
export type RunTools = (state: CallState, calls: readonly ServerCall[], uses: Uses) => Promise<ToolRun[]>;

export function createRunTools({ pay, clock }: { pay: Pay; clock: Clock }): RunTools {
  async function runOne(call: Call, tool: ServerTool, args: JsonObject): Promise<ToolOutcome> {
    const ending = new AbortController();
    const { promise: ended, resolve: end } = Promise.withResolvers<ToolOutcome>();
    // The aborted work may be billed: the whole hold is charged.
    const stop = (content: string) => {
      ending.abort();
      end(failed(content, tool.cost_nano_max));
    };
    const late = setTimeout(stop, limits.server_tool_ms_max, 'The tool did not answer in time.');
    const forget = call.cancellation.onCancel(() => stop('The client disconnected.'));
    try {
      return await Promise.race([ended, screened(call, tool, args, ending.signal)]);
    } finally {
      clearTimeout(late);
      forget();
    }
  }

  /** Results from outside pass the caller's filters, like everything that the client sends. */
  async function screened(call: Call, tool: ServerTool, args: JsonObject, signal: AbortSignal): Promise<ToolOutcome> {
    const nowMs = clock.nowMs();
    let outcome: ToolOutcome;
    try {
      outcome = await tool.run(args, { call, signal, now_ms: nowMs });
    } catch (error) {
      return failed(error instanceof GatewayError ? error.message : 'The tool failed.');
    }
    const content = outcome.content.slice(0, SERVER_TOOL_RESULT_CHARS_MAX).toWellFormed();
    if (call.screening === undefined) return { ...outcome, content };
    try {
      // Filtered as a tool's result, so that escaped strings are filtered as well.
      const [clean] = await call.screening.messages([{ role: 'tool', tool_call_id: '', content }], {
        isOptional: true,
      });
      return { ...outcome, content: clean?.content as string };
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      const { cost_nano, counts } = outcome;
      return { ...failed('A guardrail blocked the result of the tool.', cost_nano), counts };
    }
  }

  async function runAll(call: Call, runs: readonly { tool: ServerTool; args: JsonObject }[]) {
    const outcomes: FeeOutcome<ToolOutcome>[] = [];
    let next = 0;
    const work = async () => {
      for (let at = next++; at < runs.length; at = next++) {
        const { tool, args } = runs[at]!;
        const outcome = await runOne(call, tool, args);
        outcomes[at] = { value: outcome, cost_nano: outcome.cost_nano, counts: outcome.counts };
      }
    };
    await Promise.all(Array.from({ length: Math.min(runs.length, SERVER_TOOLS_AT_ONCE_MAX) }, work));
    return outcomes;
  }

  return async (state, calls, uses) => {
    const { call } = state;
    const made = calls.map((one) => {
      const args = argumentsOf(one.call.function.arguments);
      const refused = refusal(one, args, uses);
      return { ...one, args: args ?? {}, outcome: refused === undefined ? undefined : failed(refused) };
    });
    const wanted = made.filter(({ outcome }) => outcome === undefined);
    const fees = wanted.map(({ tool }) => ({ name: shortName(tool.type), cost_nano_max: tool.cost_nano_max }));
    let outcomes: readonly ToolOutcome[];
    try {
      outcomes = wanted.length === 0 ? [] : await pay(state, fees, () => runAll(call, wanted));
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      outcomes = wanted.map(() => failed(`The tool was not run: ${error.message}`));
      uses.executed -= wanted.length;
      uses.calls_max = uses.executed;
    }
    if (call.cancellation.cancelled) throw new CallCancelled({ may_be_billed: false });
    let at = 0;
    return made.map(({ outcome, ...run }): ToolRun => {
      if (outcome !== undefined) return { ...run, outcome };
      at += 1;
      return { ...run, outcome: outcomes[at - 1]! };
    });
  };
}
