import { GatewayError } from '../errors.ts';
import type { ChatRequest } from '../schemas/inner.ts';
import type { Candidate, Plan } from './candidate.ts';
import { GUARDRAILS, laterSteps, type Rule, rules } from './rules.ts';

/** No endpoint may serve the request; `plan` has all candidates with the reasons. */
export class NoEndpoint extends GatewayError {
  readonly plan: Plan;

  constructor(plan: Plan, message: string, metadata: Record<string, unknown>, status: 400 | 403 | 404 = 404) {
    super(status, message, { metadata });
    this.plan = plan;
  }
}

const steps = new Map<string, Pick<Rule, 'message' | 'status' | 'constraint'>>(
  [...rules, ...Object.values(laterSteps)].map((one) => [one.step, one]),
);

/** The refusal of a plan without attempts: the step that left none, and what the caller can change. */
export function refuse(plan: Plan, request: ChatRequest): NoEndpoint {
  const failed = plan.funnel.find((entry) => entry.endpoint_count === 0)?.step ?? laterSteps.initial.step;
  const metadata: Record<string, unknown> = { routing_funnel: plan.funnel, failed_routing_step: failed };
  const constraint = steps.get(failed)?.constraint;
  if (constraint !== undefined) metadata['constraint'] = constraint;
  if (request.provider?.only?.length) {
    metadata['available_providers'] = [...new Set(plan.candidates.map(({ provider }) => provider.slug))];
    metadata['requested_providers'] = request.provider.only;
  }
  if (isBlocked(plan)) {
    return new NoEndpoint(plan, `A guardrail blocked the request: ${messageOf(GUARDRAILS, plan)}`, metadata, 403);
  }
  return new NoEndpoint(plan, messageOf(failed, plan), metadata, steps.get(failed)?.status);
}

/** Whether guardrails alone exclude all endpoints of every model of the request. */
function isBlocked({ candidates }: Plan): boolean {
  return candidates.length > 0 && candidates.every(({ excluded }) => excluded?.step === GUARDRAILS);
}

function messageOf(failed: string, { requested, candidates }: { requested: string; candidates: Candidate[] }): string {
  const message = steps.get(failed)?.message;
  if (message !== undefined) return message;
  if (failed === laterSteps.initial.step)
    return `No endpoints found for ${requested}: no configured provider serves it`;
  const reasons = new Set(candidates.flatMap(({ excluded }) => excluded?.reason ?? []));
  return `No endpoints found for ${requested}: ${[...reasons].join('; ')}`;
}
