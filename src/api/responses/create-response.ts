import { claimOf } from '../../http/bounded-bodies.ts';
import type { Principal } from '../../http/principal.ts';
import type { Server } from '../../http/server.ts';
import type { Call, Clock } from '../../inference/call.ts';
import type { Envelopes } from '../../inference/reasoning/envelope.ts';
import { limits } from '../../limits.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { isLongJson } from '../../schemas/json-pieces.ts';
import { ResponsesBody } from '../../schemas/responses.ts';
import { ResponseAnswer, ResponseEvent, responsesErrors } from '../../schemas/responses-answer.ts';
import { type AnswerOptions, answerCall, type ClientAnswer, COMMENT_HEARTBEAT } from '../shared/answer-call.ts';
import { callOf } from '../shared/call-of.ts';
import { hidesReasoning } from '../shared/hides-reasoning.ts';
import { writeParts } from '../shared/json-parts.ts';
import { checkSamplers, type SamplerOffValues } from '../shared/sampler-off-values.ts';
import { requestedModel } from '../shared/unanswered.ts';
import { declaredTools } from './declared-tools.ts';
import { type ResponseContext, responseParts } from './encode.ts';
import { responsesError } from './errors.ts';
import { responsesFieldNames } from './field-names.ts';
import { type ResponsesRequestBody, responsesRequest } from './parse-request.ts';
import { checkRepeated, createResponseObject, type ResponseObject } from './response-object.ts';
import { storedAnswer } from './stored-answer.ts';
import type { StoredResponses } from './stored-responses.ts';
import { createResponseStream } from './stream.ts';

/**
 * Copies in memory of the request's fields that a Response object repeats: encoded once, in its first two events and in its last,
 * and sent.
 */
const REPEATED_COPIES = 6;

export interface ResponsesOptions extends AnswerOptions {
  samplerOffValues(): SamplerOffValues;
  clock: Clock;
  envelopes: Envelopes;
  /** Undefined if responses are not stored. */
  stored: StoredResponses | undefined;
}

const secondsOf = (ms: number) => Math.floor(ms / 1000);

function objectOf({ generation_id, request, accepted_ms }: Call, body: ResponsesRequestBody): ResponseObject {
  const facts = { id: generation_id, created_at: secondsOf(accepted_ms), model: requestedModel(request) };
  return createResponseObject(facts, body as unknown as JsonObject);
}

function itemsOf({ input }: ResponsesRequestBody): number {
  return Array.isArray(input) ? input.length : 1;
}

/** `POST /responses`: an answer as a Response object, whole or as a stream of events. */
export function createResponse(server: Server, options: ResponsesOptions): void {
  const { clock, envelopes, inference, stored } = options;

  function contextOf(call: Call, body: ResponsesRequestBody): ResponseContext {
    const { generation_id, request, principal } = call;
    return {
      generation_id,
      response: objectOf(call, body),
      tools: declaredTools(request.tools),
      envelope: envelopes(principal.organization_id),
      hide_reasoning: hidesReasoning(request),
      wants_summary: request.reasoning?.summary != null,
      shows_logprobs: request.logprobs === true,
      now: () => secondsOf(clock.nowMs()),
    };
  }

  server.route({
    method: 'POST',
    url: '/responses',
    config: {
      metered: inference,
      direct: true,
      errorFormat: responsesError,
      events: ResponseEvent,
      prepareBody: checkSamplers(options.samplerOffValues, ['top_k', 'top_p']),
    },
    schema: {
      operationId: 'createResponse',
      tags: ['Responses'],
      summary: 'Creates a response.',
      description:
        'Answers with server-sent events if `stream` is true; each has a `type` and a `sequence_number`; `response.completed`, `response.incomplete` or `response.failed` is the last before `[DONE]`.',
      body: ResponsesBody,
      response: { 200: ResponseAnswer, ...responsesErrors(400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503) },
    },
    handler: async (request, reply) => {
      const { body } = request;
      const principal = request.principal as Principal;
      const envelope = envelopes(principal.organization_id);
      const input = await stored?.inputOf(body, principal, claimOf(request), request.store_wait);
      if (input !== undefined && isLongJson(input)) request.long_body_bytes = limits.json_long_chars_min;
      const full = input === undefined ? body : { ...body, input: input as unknown as typeof body.input };
      const inner = responsesRequest(full, { envelope, stored: stored !== undefined });
      const fieldName = responsesFieldNames(full, itemsOf(full) - itemsOf(body));
      const call = callOf(request, inner, clock, { api_type: 'responses', fieldName });
      if (request.long_body_bytes > limits.repeated_chars_max) checkRepeated(body as unknown as JsonObject);
      const context = contextOf(call, body);
      const repeatedBytes = context.response.repeatedBytes();
      if (repeatedBytes > limits.counted_bytes_min) await call.room?.take(repeatedBytes * REPEATED_COPIES);
      const answer: ClientAnswer = {
        ...(stored === undefined || input === undefined || body.store !== true
          ? {
              whole: (answer) => writeParts(responseParts(answer, context)),
              stream: () => createResponseStream(context),
            }
          : storedAnswer(context, {
              unstored: objectOf(call, { ...body, store: false }),
              keep: (finished) => stored.keep(call, input, finished),
            })),
        heartbeat: COMMENT_HEARTBEAT,
      };
      return answerCall(request, reply, call, answer, options);
    },
  });
}
