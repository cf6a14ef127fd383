import type { Server } from '../../http/server.ts';
import type { Call, Clock } from '../../inference/call.ts';
import type { Envelopes } from '../../inference/state/envelope.ts';
import { errors } from '../../schemas/error.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { ResponsesBody } from '../../schemas/responses.ts';
import { ResponseAnswer, ResponseEvent } from '../../schemas/responses-answer.ts';
import { type AnswerOptions, answerCall, type ClientAnswer, COMMENT_HEARTBEAT } from '../answer-call.ts';
import { callOf } from '../call-of.ts';
import { declaredTools } from './declared-tools.ts';
import { type ResponsesRequestBody, responsesRequest } from './door.ts';
import { encodeResponse, type ResponseContext } from './encode.ts';
import { responsesError } from './errors.ts';
import { createResponseObject } from './response-object.ts';
import { createResponseStream } from './stream.ts';

export interface ResponsesOptions extends AnswerOptions {
  clock: Clock;
  envelopes: Envelopes;
}

function hidesReasoning({ reasoning, include_reasoning }: ChatRequest): boolean {
  return reasoning?.exclude === true || (include_reasoning === false && !reasoning);
}

/** `POST /responses`: an answer of the model as a Response object, whole or as a stream of events. */
export function createResponse(server: Server, options: ResponsesOptions): void {
  const { clock, envelopes, inference } = options;

  function contextOf(call: Call, body: ResponsesRequestBody): ResponseContext {
    const { generation_id, request, principal, accepted_ms } = call;
    const seconds = (ms: number) => Math.floor(ms / 1000);
    const created_at = seconds(accepted_ms);
    const model = request.model ?? '';
    return {
      generation_id,
      response: createResponseObject({ id: generation_id, created_at, model }, body as unknown as JsonObject),
      tools: declaredTools(body.tools),
      envelope: envelopes(principal.organization_id),
      hide_reasoning: hidesReasoning(request),
      shows_logprobs: request.logprobs === true,
      now: () => seconds(clock.now_ms()),
    };
  }

  server.route({
    method: 'POST',
    url: '/responses',
    config: { metered: inference, skin: responsesError, events: ResponseEvent },
    schema: {
      operationId: 'createResponse',
      tags: ['Responses'],
      summary: 'Creates a response.',
      description:
        'Answers with server-sent events when `stream` is true: each says its `type` and its `sequence_number`; `response.completed`, `response.incomplete` or `response.failed` is the last before `[DONE]`.',
      body: ResponsesBody,
      response: { 200: ResponseAnswer, ...errors(400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503) },
    },
    handler: async (request, reply) => {
      const { body } = request;
      const envelope = envelopes(request.principal?.organization_id ?? '');
      const call = callOf(request, responsesRequest(body, { envelope }), clock, { api_type: 'responses' });
      const context = contextOf(call, body);
      const answer: ClientAnswer = {
        whole: (told) => encodeResponse(told, context),
        stream: () => createResponseStream(context),
        heartbeat: COMMENT_HEARTBEAT,
      };
      return answerCall(request, reply, call, answer, options);
    },
  });
}
