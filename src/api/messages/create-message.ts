import type { Server } from '../../http/server.ts';
import type { Call, Clock } from '../../inference/call.ts';
import { roughPrompt } from '../../inference/money/meter.ts';
import type { Envelope, Envelopes } from '../../inference/reasoning/envelope.ts';
import { nextTurn } from '../../next-turn.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { MessagesBody } from '../../schemas/messages.ts';
import { MessagesAnswer, MessagesEvent, messagesErrors } from '../../schemas/messages-answer.ts';
import { type AnswerOptions, answerCall, type ClientAnswer } from '../shared/answer-call.ts';
import { callOf } from '../shared/call-of.ts';
import { writeSteps } from '../shared/json-parts.ts';
import { betasOf } from './betas.ts';
import { messageParts } from './encode.ts';
import { messagesError } from './errors.ts';
import { regainInputs } from './exact-inputs.ts';
import { messagesFieldNames } from './field-names.ts';
import { messagesRequest } from './parse-request.ts';
import { sendRequestId } from './request-id.ts';
import { createMessagesStream, type MessagesEnvelope, PING } from './stream.ts';
import type { ReasoningShown } from './thinking.ts';

export interface MessagesOptions extends AnswerOptions {
  clock: Clock;
  envelopes: Envelopes;
}

/** How much of the reasoning the client wants to see. */
function reasoningShown({ ext, reasoning }: ChatRequest): ReasoningShown {
  const thinking = ext?.rest['thinking'];
  const display = typeof thinking === 'object' && thinking !== null && 'display' in thinking ? thinking.display : null;
  if (display === 'omitted') return 'omitted';
  return reasoning?.exclude === true ? 'hidden' : 'shown';
}

function envelopeOf(call: Call, envelope: Envelope): MessagesEnvelope {
  const promptTokens = () => roughPrompt(call.request);
  return { id: call.generation_id, envelope, reasoning: reasoningShown(call.request), promptTokens };
}

/** `POST /messages`: an answer in the Messages API of Anthropic, whole or as a stream of server-sent events. */
export function createMessage(server: Server, options: MessagesOptions): void {
  server.route({
    method: 'POST',
    url: '/messages',
    config: {
      metered: options.inference,
      direct: true,
      events: MessagesEvent,
      errorFormat: messagesError,
      regain: regainInputs,
    },
    schema: {
      operationId: 'createMessage',
      tags: ['Messages'],
      summary: 'Creates a message.',
      description:
        "Anthropic's Messages API, for every model. Answers with server-sent events if `stream` is true, from `message_start` to `message_stop`, with `ping` while nothing arrives and `error` if the answer breaks off.",
      body: MessagesBody,
      response: {
        200: MessagesAnswer,
        ...messagesErrors(400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503),
      },
    },
    onSend: sendRequestId,
    handler: async (request, reply) => {
      const envelope = options.envelopes(request.principal?.organization_id ?? '');
      const chat = messagesRequest(request.body, { envelope, betas: betasOf(request.raw.headers) });
      if (request.long_body_bytes > 0) await nextTurn();
      const call = callOf(request, chat, options.clock, {
        api_type: 'messages',
        fieldName: messagesFieldNames(request.body),
      });
      reply.header('request-id', call.generation_id);
      const shown = envelopeOf(call, envelope);
      const answer: ClientAnswer = {
        whole: (answer) => writeSteps(messageParts(answer, shown)),
        stream: () => createMessagesStream(shown),
        heartbeat: PING,
      };
      return answerCall(request, reply, call, answer, options);
    },
  });
}
