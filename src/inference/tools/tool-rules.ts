import { limits } from '../../limits.ts';
import type { ChatRequest, FinishReason } from '../../schemas/inner.ts';
import type { StopCondition } from '../../schemas/server-tools.ts';

/** How far an answer with tools of the gateway's has come. */
export interface LoopState {
  /** Turns of the model that are over. */
  steps: number;
  /** What the model called in the last of them: the gateway's tools by what clients call them. */
  called: ReadonlySet<string>;
  finish_reason: FinishReason | null;
  /** Calls of the gateway's tools, run or refused. */
  calls: number;
  /** In and out, over all steps. */
  tokens: number;
  cost_usd: number;
}

/** When the model has to come to its end: asked after each step that called tools of the gateway's. */
export interface LoopRules {
  /** Calls that are run at most. */
  calls_max: number;
  isOver(state: LoopState): boolean;
}

const SHORT = /^(?:gateway|openrouter):/;

/** A tool's name without who runs it: clients know it by either. */
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

/** What a request says of its loop. Conditions of its own take the place of `max_tool_calls`, but not of the most that there is. */
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
