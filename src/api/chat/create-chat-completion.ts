import type { FastifyReply, FastifyRequest } from 'fastify';
import type { GatewayError } from '../../errors.ts';
import { toGatewayError } from '../../http/error-envelope.ts';
import { sendEventStream } from '../../http/event-stream.ts';
import type { Server } from '../../http/server.ts';
import type { Inference } from '../../inference/answer.ts';
import type { Call, Clock } from '../../inference/call.ts';
import { ClientGone } from '../../inference/exchange.ts';
import type { StreamEvent } from '../../inference/stream-answer.ts';
import { ChatCompletionAnswer, ChatCompletionBody, ChatCompletionChunk } from '../../schemas/chat.ts';
import { errors } from '../../schemas/error.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { answerWhole } from '../answer-whole.ts';
import { callOf } from './call-of.ts';
import { chatRequest } from './door.ts';
import { createStreamEncoder, type Envelope, encodeCompletion } from './encode.ts';

export interface ChatOptions {
  inference: Inference;
  clock: Clock;
  heartbeat_first_ms: number;
  heartbeat_ms: number;
}

/** A comment that clients ignore; it keeps proxies from closing a quiet stream. */
const HEARTBEAT = ': GATEWAY PROCESSING\n\n';

function hidesReasoning(request: ChatRequest): boolean {
  return request.reasoning?.exclude === true || (request.include_reasoning === false && !request.reasoning);
}

function envelopeOf(call: Call): Envelope {
  return {
    id: call.generation_id,
    created: Math.floor(call.accepted_ms / 1000),
    text_form: call.request.ext?.client === 'completions',
    hide_reasoning: hidesReasoning(call.request),
  };
}

/** `POST /chat/completions`: an answer of the model, whole or as a stream of server-sent events. */
export function createChatCompletion(server: Server, options: ChatOptions): void {
  server.route({
    method: 'POST',
    url: '/chat/completions',
    config: { metered: options.inference, events: ChatCompletionChunk },
    schema: {
      operationId: 'createChatCompletion',
      tags: ['Chat'],
      summary: 'Creates a chat completion.',
      description:
        'Answers with server-sent events when `stream` is true: chunks of object `chat.completion.chunk`, a last chunk with usage and empty `choices`, then `[DONE]`.',
      body: ChatCompletionBody,
      response: { 200: ChatCompletionAnswer, ...errors(400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503) },
    },
    handler: async (request, reply) => {
      const call = callOf(request, chatRequest(request.body), options.clock);
      reply.header('x-generation-id', call.generation_id);
      request.log_facts = {
        generation_id: call.generation_id,
        model: call.request.model,
        streamed: call.request.stream === true,
      };
      return call.request.stream === true ? streamed(request, reply, call, options) : whole(reply, call, options);
    },
  });
}

function whole(reply: FastifyReply, call: Call, { inference }: ChatOptions): Promise<FastifyReply> {
  return answerWhole(reply, call, async () => encodeCompletion(await inference.complete(call), envelopeOf(call)));
}

async function streamed(
  request: FastifyRequest,
  reply: FastifyReply,
  call: Call,
  { inference, heartbeat_first_ms, heartbeat_ms }: ChatOptions,
): Promise<FastifyReply> {
  const encoder = createStreamEncoder(envelopeOf(call));
  const echoes = call.request.debug?.echo_upstream_body === true;
  const logFault = (fault: GatewayError) =>
    request.log.error({ request_id: request.id, err: fault.cause ?? fault }, 'stream failed');
  const encode = (event: StreamEvent): string => {
    switch (event.type) {
      case 'open':
        encoder.open(event.served);
        return echoes ? event.upstream_bodies.map((body) => encoder.debug(body)).join('') : '';
      case 'chunks':
        return encoder.chunks(event.chunks);
      case 'end':
        if (event.error?.status === 500) logFault(event.error);
        return encoder.end(event.usage, event.metadata, event.error);
    }
  };
  await sendEventStream(request, reply, {
    events: inference.stream(call),
    encode,
    encodeFailure(error) {
      if (error instanceof ClientGone) return '';
      const shown = toGatewayError(error);
      if (shown.status === 500) logFault(shown);
      return encoder.failed(shown, call.principal.user_id);
    },
    heartbeat: HEARTBEAT,
    onClientGone: () => call.cancellation.cancel(),
    heartbeat_first_ms,
    heartbeat_ms,
  });
  return reply;
}
