import type { Principal } from '../../http/principal.ts';
import type { HttpRequest } from '../../http/request.ts';
import type { Clock } from '../../inference/call.ts';
import type { Inference } from '../../inference/create-inference.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import type { RouteExplanation } from '../../schemas/route-explanation.ts';
import { type ChatBody, chatRequest } from '../chat/parse-request.ts';
import { recentOutcomes } from '../recent-outcomes.ts';
import { callOf } from '../shared/call-of.ts';
import { describeExplanation } from './describe-explanation.ts';

export interface ExplainCallDependencies {
  inference: Inference;
  recorder: Pick<Recorder, 'flush'>;
  clock: Clock;
}

/** Explains the chat completion in the body of a request, as a call of `principal`. */
export async function explainCall(
  request: HttpRequest & { body: ChatBody },
  principal: Principal,
  { inference, recorder, clock }: ExplainCallDependencies,
): Promise<RouteExplanation> {
  const call = { ...callOf(request, chatRequest(request.body), clock), principal, wants_metadata: false };
  // Outcomes that this node has not stored yet count as well.
  if (principal.budgets.length > 0) await recentOutcomes(recorder);
  return describeExplanation(await inference.explain(call), call.accepted_ms);
}
