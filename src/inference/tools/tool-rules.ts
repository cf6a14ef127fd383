import { limits } from '../../limits.ts';
import type { ChatRequest, FinishReason } from '../../schemas/inner.ts';
import type { StopCondition } from '../../schemas/server-tools.ts';

/** The progress of an answer with tools of the gateway. */
export interface LoopState {
  /** Completed turns of the model. */
  steps: number;
  /** The tools that the last turn called. The gateway's tools have the names that clients use. */
  called: ReadonlySet<string>;
  finish_reason: FinishReason | null;
  /** Calls of the gateway's tools, whether run or refused. */
  calls: number;
  /** Input and output of all steps. */
  tokens: number;
  cost_usd: number;
}

/** Decides when the model must finish its answer. Evaluated after each step that called tools of the gateway. */
export interface LoopRules {
  /** The most calls that are run. */
  calls_max: number;
  isOver(state: LoopState): boolean;
}

const SHORT = /^(?:gateway|openrouter):/;

/** The name of a tool without the prefix of the service that runs it. Clients use both forms. */
export function shortName(type: string): string {
  return type.replace(SHORT, '');
}

function fires(condition: StopCondition, state: LoopState): boolean {
  switch (condition.type) {
    case 'step_count_is':
      return state.steps >= condition.step_count;
    case 'has_tool_call': {
      const name = shortName(condition.tool_name);
      return [...state.called].some((called) => shortName(called) === name);
    }
    case 'max_tokens_used':
      return state.tokens >= condition.max_tokens;
    case 'max_cost':
      return state.cost_usd >= condition.max_cost_in_dollars;
    case 'finish_reason_is':
      return state.finish_reason === condition.reason;
  }
}

/** The rules of a request. Its own conditions replace `max_tool_calls`, but not the limit of the gateway. */
export function loopRules(request: ChatRequest): LoopRules {
  const most = limits.server_tool_calls_max;
  const conditions = request['stop_server_tools_when'] as readonly StopCondition[] | null | undefined;
  if (conditions != null && conditions.length > 0) {
    return {
      calls_max: most,
      isOver: (state) => state.calls >= most || conditions.some((condition) => fires(condition, state)),
    };
  }
  const requested = request['max_tool_calls'];
  const callsMax = typeof requested === 'number' ? Math.min(requested, most) : most;
  return { calls_max: callsMax, isOver: ({ calls }) => calls >= callsMax };
}
