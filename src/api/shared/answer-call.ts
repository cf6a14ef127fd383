import type { FastifyReply, FastifyRequest } from 'fastify';
import type { GatewayError } from '../../errors.ts';
import { toGatewayError } from '../../http/error-envelope.ts';
import { sendEventStream } from '../../http/event-stream.ts';
import type { Inference } from '../../inference/answer.ts';
import { CallCancelled } from '../../inference/attempt/exchange.ts';
import type { Call } from '../../inference/call.ts';
import type { SentBody, Served, StreamEnd, StreamEvent, WholeAnswer } from '../../inference/events.ts';
import type { ChatChunk } from '../../schemas/inner.ts';
import { answerWhole } from './answer-whole.ts';
import { clientError } from './client-error.ts';

/** Writes one stream in a client API: events of a call in, text of the wire out. An empty text is not written. */
export interface StreamEncoder {
  /** Who answers. Told again where another endpoint goes on with the answer (a continuation). */
  open(served: Served): string;
  /** What one attempt sent upstream (`debug.echo_upstream_body`). */
  debug(sent: SentBody): string;
  chunks(chunks: readonly ChatChunk[]): string;
  /** The end of a stream that was opened; with an `error`, of one that failed late. */
  end(end: StreamEnd): string;
  /** All of a stream that failed after its 200 and before it was opened. */
  failed(error: GatewayError, user_id: string | null): string;
}

/** The same, whose end may wait for something. */
export type ClientStream = Omit<StreamEncoder, 'end'> & { end(end: StreamEnd): string | Promise<string> };

/** How one call's answer looks in the API that its client speaks. */
export interface ClientAnswer {
  /** Its text, or the bytes of a long one. */
  whole(answer: WholeAnswer): string | Promise<string | Buffer>;
  stream(): ClientStream;
  /** What is sent in silence: a comment or an event that clients pass over; it keeps proxies from closing a quiet stream. */
  heartbeat: string;
}

export interface AnswerOptions {
  inference: Inference;
  heartbeat_first_ms: number;
  heartbeat_ms: number;
}

/** A comment that clients of every API but Messages pass over. */
export const COMMENT_HEARTBEAT = ': GATEWAY PROCESSING\n\n';

/** Answers a call that is in the inner language, whole or as a stream, as its request asks. Errors before the 200 are thrown. */
export function answerCall(
  request: FastifyRequest,
  reply: FastifyReply,
  call: Call,
  answer: ClientAnswer,
  options: AnswerOptions,
): Promise<void> {
  const { model, stream } = call.request;
  reply.header('x-generation-id', call.generation_id);
  request.log_facts = { generation_id: call.generation_id, model, streamed: stream === true };
  if (stream !== true) {
    return answerWhole(
      reply,
      call,
      () => options.inference.complete(call),
      (told) => answer.whole(told),
    );
  }
  return streamed(request, reply, call, answer, options);
}

function streamed(
  request: FastifyRequest,
  reply: FastifyReply,
  call: Call,
  answer: ClientAnswer,
  { inference, heartbeat_first_ms, heartbeat_ms }: AnswerOptions,
): Promise<void> {
  const encoder = answer.stream();
  const echoes = call.request.debug?.echo_upstream_body === true;
  const logFault = (fault: GatewayError) =>
    request.log.error({ request_id: request.id, err: fault.cause ?? fault }, 'stream failed');
  const encode = (event: StreamEvent): string | Promise<string> => {
    switch (event.type) {
      case 'open': {
        const opened = encoder.open(event.served);
        return echoes ? opened + event.upstream_bodies.map((sent) => encoder.debug(sent)).join('') : opened;
      }
      case 'chunks':
        return encoder.chunks(event.chunks);
      case 'end':
        if (event.error?.status === 500) logFault(event.error);
        return encoder.end(event);
    }
  };
  return sendEventStream(request, reply, {
    events: inference.stream(call),
    encode,
    encodeFailure(thrown) {
      const error = clientError(thrown, call.cancellation);
      if (error instanceof CallCancelled) return '';
      const shown = toGatewayError(error);
      if (shown.status === 500) logFault(shown);
      return encoder.failed(shown, call.principal.user_id);
    },
    heartbeat: answer.heartbeat,
    onClientGone: () => call.cancellation.cancel(),
    onStop: () => call.cancellation.stop(),
    heartbeat_first_ms,
    heartbeat_ms,
  }).catch((thrown: unknown) => Promise.reject(clientError(thrown, call.cancellation)));
}
