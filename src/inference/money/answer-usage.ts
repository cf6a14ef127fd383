/** The usage and cost of an answer as its client sees them. */
import { type PublicUsage, publicUsage } from '../../schemas/usage.ts';
import type { ToolUse } from '../state.ts';

/** The public usage with what it cost, in USD. */
export interface AnswerUsage extends PublicUsage {
  /** Not set if a price, and so the cost, is unknown. */
  cost?: number;
  is_byok: boolean;
  cost_details?: {
    upstream_inference_cost: number | null;
    upstream_inference_prompt_cost: number;
    upstream_inference_completions_cost: number;
  };
  server_tool_use_details?: ToolUse;
}

/** The usage of an answer that used nothing. */
export const NO_USAGE: AnswerUsage = {
  ...publicUsage({}),
  cost: 0,
  is_byok: false,
  cost_details: {
    upstream_inference_cost: null,
    upstream_inference_prompt_cost: 0,
    upstream_inference_completions_cost: 0,
  },
};
