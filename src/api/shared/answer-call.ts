import type { GatewayError } from '../../errors.ts';
import { toGatewayError } from '../../http/error-envelope.ts';
import { type EncodedEvent, sendEventStream } from '../../http/event-stream.ts';
import type { HttpReply, HttpRequest } from '../../http/request.ts';
import { CallCancelled } from '../../inference/attempt/upstream-call.ts';
import type { Call } from '../../inference/call.ts';
import type { Inference } from '../../inference/create-inference.ts';
import type { SentBody, Served, StreamEnd, StreamEvent, WholeAnswer } from '../../inference/events.ts';
import type { ChatChunk } from '../../schemas/inner.ts';
import { answerWhole } from './answer-whole.ts';
import { logFacts } from './call-of.ts';
import { clientError } from './client-error.ts';

/** Encodes one stream for a client API: events of a call in, text of the wire out. An empty text is not written. */
export interface StreamEncoder {
  /** The endpoint that answers. Called again if another endpoint continues the answer. */
  open(served: Served): string;
  /** The body that one attempt sent upstream (`debug.echo_upstream_body`). */
  debug(sent: SentBody): string;
  /** A list if the texts are long: each is written before the next one is joined. */
  chunks(chunks: readonly ChatChunk[]): string | readonly string[];
  /** The end of an opened stream; with an `error` if the stream failed. A list if it is long. */
  end(end: StreamEnd): string | readonly string[];
  /** The whole text of a stream that failed after the 200 and before it was opened. */
  failed(error: GatewayError, userId: string | null): string;
}

/** A stream encoder whose `end` may be asynchronous. */
export type ClientStream = Omit<StreamEncoder, 'end'> & { end(end: StreamEnd): EncodedEvent };

/** Encodes the answer to one call for the client's API. */
export interface ClientAnswer {
  /** The text of a whole answer, or the bytes of a long one. */
  whole(answer: WholeAnswer): string | Promise<string | Buffer>;
  stream(): ClientStream;
  /** Sent during silence: a comment or an event that clients ignore. It keeps proxies from closing a quiet stream. */
  heartbeat: string;
}

export interface AnswerOptions {
  inference: Inference;
  heartbeat_first_ms: number;
  heartbeat_ms: number;
}

/** A comment, which clients of every API but Messages ignore. */
export const COMMENT_HEARTBEAT = ': GATEWAY PROCESSING\n\n';

/** Answers a call, whole or as a stream, as its request requires. Throws errors that occur before the 200 is sent. */
export function answerCall(
  request: HttpRequest,
  reply: HttpReply,
  call: Call,
  answer: ClientAnswer,
  options: AnswerOptions,
): Promise<void> {
  reply.header('x-generation-id', call.generation_id);
  request.log_facts = () => logFacts([call]);
  if (call.request.stream !== true) {
    return answerWhole(
      reply,
      call,
      () => options.inference.complete(call),
      (completed) => answer.whole(completed),
    );
  }
  return streamed(request, reply, call, answer, options);
}

function streamed(
  request: HttpRequest,
  reply: HttpReply,
  call: Call,
  answer: ClientAnswer,
  { inference, heartbeat_first_ms, heartbeat_ms }: AnswerOptions,
): Promise<void> {
  const encoder = answer.stream();
  const echoes = call.request.debug?.echo_upstream_body === true;
  const logFault = (fault: GatewayError) =>
    request.log.error({ request_id: request.id, err: fault.cause ?? fault }, 'stream failed');
  const encode = (event: StreamEvent): EncodedEvent => {
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
    onClientLeft: () => call.cancellation.cancel(),
    onStop: () => call.cancellation.stop(),
    heartbeat_first_ms,
    heartbeat_ms,
  }).catch((thrown: unknown) => Promise.reject(clientError(thrown, call.cancellation)));
}
