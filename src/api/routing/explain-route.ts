import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import type { Clock } from '../../inference/call.ts';
import type { Inference } from '../../inference/create-inference.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { ChatCompletionBody } from '../../schemas/chat.ts';
import { errors } from '../../schemas/error.ts';
import { RouteExplanation } from '../../schemas/route-explanation.ts';
import { principalOf } from '../change.ts';
import { checkSamplers, type SamplerOffValues } from '../shared/sampler-off-values.ts';
import { explainCall } from './explain-call.ts';

/**
 * `POST /route/explain`: how a chat completion would be routed. Also explains a request that would be refused for lack of endpoints or
 * budget: `error` has the refusal.
 */
export function explainRoute(
  server: Server,
  {
    inference,
    recorder,
    clock,
    samplerOffValues,
  }: {
    inference: Inference;
    recorder: Pick<Recorder, 'flush'>;
    clock: Clock;
    samplerOffValues(): SamplerOffValues;
  },
): void {
  server.route({
    method: 'POST',
    url: '/route/explain',
    config: { metered: inference, prepareBody: checkSamplers(samplerOffValues) },
    schema: {
      operationId: 'explainRoute',
      tags: ['Routing'],
      summary: 'Explains where a chat completion would be sent, and what would be reserved for it.',
      description:
        'Accepts the body of a chat completion. Nothing is sent, fetched, reserved or recorded. The answer is true at this moment: ' +
        'a draw among equal endpoints may have another result for the next request; `weight` is the chance of each.',
      body: ChatCompletionBody,
      response: { 200: Type.Object({ data: RouteExplanation }), ...errors(400, 401, 403, 413, 500) },
    },
    handler: async (request, reply) => {
      reply.header('cache-control', 'private, no-store');
      return { data: await explainCall(request, principalOf(request), { inference, recorder, clock }) };
    },
  });
}
