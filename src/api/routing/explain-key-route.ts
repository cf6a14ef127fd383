import Type from 'typebox';
import type { Server } from '../../http/server.ts';
import type { Clock } from '../../inference/call.ts';
import type { Inference } from '../../inference/create-inference.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { ChatCompletionBody } from '../../schemas/chat.ts';
import { errors } from '../../schemas/error.ts';
import { RouteExplanation } from '../../schemas/route-explanation.ts';
import { principalOf } from '../change.ts';
import { findKeyCaller, type KeyCallerSources } from '../keys/find-key-caller.ts';
import { KeyParams } from '../keys/require-key.ts';
import { checkSamplers, type SamplerOffValues } from '../shared/sampler-off-values.ts';
import { explainCall } from './explain-call.ts';

export interface ExplainKeyRouteDependencies extends KeyCallerSources {
  inference: Inference;
  recorder: Pick<Recorder, 'flush'>;
  clock: Clock;
  samplerOffValues(): SamplerOffValues;
}

/** Serves `POST /keys/{hash}/route/explain`: how a chat completion of that key would be routed, whether or not the key is accepted now. */
export function explainKeyRoute(server: Server, dependencies: ExplainKeyRouteDependencies): void {
  server.route({
    method: 'POST',
    url: '/keys/:hash/route/explain',
    config: { access: 'management', forMembers: true, prepareBody: checkSamplers(dependencies.samplerOffValues) },
    schema: {
      operationId: 'explainKeyRoute',
      tags: ['Routing'],
      summary: 'Explains where a chat completion of this key would be sent, and what would be reserved for it.',
      description:
        'The same as `POST /route/explain` with the key itself: its limits, guardrails and defaults apply. Nothing is sent, fetched, ' +
        'reserved or recorded. Members may name their own keys.',
      params: KeyParams,
      body: ChatCompletionBody,
      response: { 200: Type.Object({ data: RouteExplanation }), ...errors(400, 401, 403, 404, 413, 429, 500) },
    },
    handler: async (request, reply) => {
      reply.header('cache-control', 'private, no-store');
      const { principal } = await findKeyCaller(principalOf(request), request.params.hash, dependencies);
      return { data: await explainCall(request, principal, dependencies) };
    },
  });
}
