import type { Server } from '../../http/server.ts';
import type { Clock } from '../../inference/call.ts';
import type { WholeAnswer } from '../../inference/events.ts';
import type { Envelopes } from '../../inference/reasoning/envelope.ts';
import { ChatCompletionAnswer, ChatCompletionBody, ChatCompletionChunk } from '../../schemas/chat.ts';
import { errors } from '../../schemas/error.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { type AnswerOptions, answerCall, type ClientAnswer, COMMENT_HEARTBEAT } from '../shared/answer-call.ts';
import { callOf } from '../shared/call-of.ts';
import { hidesReasoning } from '../shared/hides-reasoning.ts';
import { writeParts } from '../shared/json-parts.ts';
import { openBroughtEnvelopes } from '../shared/opened-envelopes.ts';
import { checkSamplers, type SamplerOffValues } from '../shared/sampler-off-values.ts';
import { requestedModel } from '../shared/unanswered.ts';
import { type ChatAnswerFields, ChatStreamEncoder, completionOf } from './encode.ts';
import { chatRequest, usesFunctions } from './parse-request.ts';

export interface ChatOptions extends AnswerOptions {
  samplerOffValues(): SamplerOffValues;
  clock: Clock;
  envelopes: Envelopes;
}

/** A class and not closures: every call has one. */
class ChatAnswer implements ClientAnswer {
  readonly heartbeat = COMMENT_HEARTBEAT;
  readonly #fields: ChatAnswerFields;

  constructor(fields: ChatAnswerFields) {
    this.#fields = fields;
  }

  whole(answer: WholeAnswer): string | Promise<string | Buffer> {
    return writeParts([{ value: completionOf(answer, this.#fields) as JsonObject }]);
  }

  stream(): ChatStreamEncoder {
    return new ChatStreamEncoder(this.#fields);
  }
}

/** `POST /chat/completions`: a completion, whole or as a stream of server-sent events. */
export function createChatCompletion(server: Server, options: ChatOptions): void {
  server.route({
    method: 'POST',
    url: '/chat/completions',
    config: {
      metered: options.inference,
      direct: true,
      events: ChatCompletionChunk,
      prepareBody: checkSamplers(options.samplerOffValues),
    },
    schema: {
      operationId: 'createChatCompletion',
      tags: ['Chat'],
      summary: 'Creates a chat completion.',
      description:
        'Answers with server-sent events when `stream` is true: chunks of object `chat.completion.chunk`, a last chunk with usage and empty `choices`, then `[DONE]`.',
      body: ChatCompletionBody,
      response: { 200: ChatCompletionAnswer, ...errors(400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503) },
    },
    handler: (request, reply) => {
      const chat = chatRequest(request.body);
      const organizationId = request.principal?.organization_id ?? '';
      chat.messages = openBroughtEnvelopes(chat.messages, () => options.envelopes(organizationId));
      const call = callOf(request, chat, options.clock);
      const fields: ChatAnswerFields = {
        id: call.generation_id,
        created: Math.floor(call.accepted_ms / 1000),
        model: requestedModel(chat),
        choices: chat.n ?? 1,
        function_form: usesFunctions(request.body),
        text_form: chat.ext?.client.hasPrompt === true,
        hide_reasoning: hidesReasoning(chat),
      };
      return answerCall(request, reply, call, new ChatAnswer(fields), options);
    },
  });
}
