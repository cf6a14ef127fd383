import type { Server } from '../../http/server.ts';
import type { Clock } from '../../inference/call.ts';
import type { Inference } from '../../inference/create-inference.ts';
import type { Envelopes } from '../../inference/reasoning/envelope.ts';
import { nextTurn } from '../../next-turn.ts';
import { CountTokensBody, TokenCount } from '../../schemas/messages.ts';
import { messagesErrors } from '../../schemas/messages-answer.ts';
import { answerWhole } from '../shared/answer-whole.ts';
import { callOf } from '../shared/call-of.ts';
import { betasOf } from './betas.ts';
import { messagesError } from './errors.ts';
import { regainInputs } from './exact-inputs.ts';
import { messagesFieldNames } from './field-names.ts';
import { messagesRequest } from './parse-request.ts';
import { sendRequestId } from './request-id.ts';

export interface CountOptions {
  inference: Inference;
  envelopes: Envelopes;
  clock: Clock;
}

/** `POST /messages/count_tokens`: the tokens of a prompt, counted by the provider that a call would go to, or estimated. */
export function countMessageTokens(server: Server, { inference, envelopes, clock }: CountOptions): void {
  server.route({
    method: 'POST',
    url: '/messages/count_tokens',
    config: { metered: inference, errorFormat: messagesError, regain: regainInputs },
    schema: {
      operationId: 'countMessageTokens',
      tags: ['Messages'],
      summary: 'Counts the tokens of a message.',
      description:
        'Accepts the same body as `POST /messages`. The provider that would receive the call counts if it does so free of charge ' +
        '(Anthropic, also on Vertex AI); otherwise the answer is an estimate, and is marked as one. Counts as one request against rate limits; costs nothing.',
      body: CountTokensBody,
      response: { 200: TokenCount, ...messagesErrors(400, 401, 403, 404, 413, 429, 500, 503) },
    },
    onSend: sendRequestId,
    handler: async (request, reply) => {
      const envelope = envelopes(request.principal?.organization_id ?? '');
      const chat = messagesRequest(request.body, { envelope, betas: betasOf(request.raw.headers) });
      if (request.long_body_bytes > 0) await nextTurn();
      chat.stream = false;
      const call = callOf(request, chat, clock, { api_type: 'messages', fieldName: messagesFieldNames(request.body) });
      request.log_facts = () => ({ model: chat.model });
      return answerWhole(
        reply,
        call,
        () => inference.countTokens(call),
        ({ input_tokens, rest, is_estimate }) =>
          JSON.stringify({ ...rest, input_tokens, ...(is_estimate ? { estimated: true } : {}) }),
      );
    },
  });
}
