import Type, { type Static } from 'typebox';

/** A condition on which the tool loop ends: pending calls are still run, then a last turn without tools follows. */
export const StopCondition = Type.Union(
  [
    Type.Object({ type: Type.Literal('step_count_is'), step_count: Type.Integer({ minimum: 1 }) }),
    Type.Object({ type: Type.Literal('has_tool_call'), tool_name: Type.String({ minLength: 1, maxLength: 200 }) }),
    Type.Object({ type: Type.Literal('max_tokens_used'), max_tokens: Type.Integer({ minimum: 1 }) }),
    Type.Object({ type: Type.Literal('max_cost'), max_cost_in_dollars: Type.Number({ minimum: 0 }) }),
    Type.Object({ type: Type.Literal('finish_reason_is'), reason: Type.String({ minLength: 1, maxLength: 200 }) }),
  ],
  { title: 'StopServerToolsCondition' },
);
export type StopCondition = Static<typeof StopCondition>;
