import { expect, test } from 'vitest';
import type { BoundGuardrail } from '../../schemas/guardrail.ts';
import type { Call } from '../call.ts';
import type { Inference } from '../create-inference.ts';
import { createPipeline } from '../pipeline.ts';
import { inputGuardrails } from './input-guardrails.ts';

const guardrails = [
  { id: 'g', scope: 'api-key', content_filter_builtins: [{ slug: 'email', action: 'block' }], content_filters: null },
] as unknown as BoundGuardrail[];

/** A call after its guardrails, and the counts in its metrics. */
async function passed() {
  const counted: string[] = [];
  const original = { request: { messages: [] }, principal: { guardrails }, stages: [] } as unknown as Call;
  const { promise, resolve } = Promise.withResolvers<Call>();
  const inner = {
    countTokens: async (call: Call) => resolve(call),
    routingOf: async () => undefined,
  } as unknown as Inference;
  const guardrailsOf = inputGuardrails({
    analyzer: { analyze: async () => [], stop: async () => {} },
    rules: () => ({ on_failure: 'block', timeout_ms: 1_000, phone_regions: undefined }),
    metrics: { contentFiltered: (filter, action) => counted.push(`${filter} ${action}`) },
    log: { warn: () => {} },
  });
  await createPipeline(inner, [guardrailsOf]).countTokens(original);
  return { call: await promise, counted };
}

test.each([
  [true, 'Left out: 1 match (email)', 'left_out', 'email redact'],
  [false, 'Blocked: 1 match (email)', 'blocked', 'email block'],
])(
  'a blocked later text (optional: %s) is recorded as what happens to the call',
  async (isOptional, summary, action, count) => {
    const { call, counted } = await passed();
    await expect(call.screening!.texts(['jane.doe@example.com'], { isOptional })).rejects.toThrow('blocked');
    expect(call.stages).toMatchObject([{ summary, data: { action } }]);
    expect(counted).toEqual([count]);
  },
);
