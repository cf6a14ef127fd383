import type { FastifyReply } from 'fastify';
import type { Cancellation } from '../inference/call.ts';
import { ClientGone } from '../inference/exchange.ts';

/** Answers a call in one piece, with JSON where nothing else is said, and tells the call when its client leaves before that. */
export async function answerWhole(
  reply: FastifyReply,
  call: { cancellation: Pick<Cancellation, 'cancel'> },
  answer: () => Promise<string>,
  content_type = 'application/json; charset=utf-8',
): Promise<void> {
  reply.request.on_leave = () => call.cancellation.cancel();
  try {
    const text = await answer();
    void reply.header('content-type', content_type).send(text);
  } catch (error) {
    if (!(error instanceof ClientGone)) throw error;
    // Nobody is there to answer.
    reply.hijack();
  } finally {
    reply.request.on_leave = undefined;
  }
}
