import type { FastifyReply } from 'fastify';
import type { Cancellation } from '../inference/call.ts';
import { ClientGone } from '../inference/exchange.ts';

/** Asks, and writes what comes in one piece: JSON where nothing else is said. Tells the call when its client leaves before that. */
export async function answerWhole<A>(
  reply: FastifyReply,
  call: { cancellation: Pick<Cancellation, 'cancel'> },
  ask: () => Promise<A>,
  write: (answer: A) => string | Promise<string>,
  content_type = 'application/json; charset=utf-8',
): Promise<void> {
  reply.request.on_leave = () => call.cancellation.cancel();
  try {
    const written = write(await ask());
    const text = typeof written === 'string' ? written : await written;
    void reply.header('content-type', content_type).send(text);
  } catch (error) {
    if (!(error instanceof ClientGone)) throw error;
    // Nobody is there to answer.
    reply.hijack();
  } finally {
    reply.request.on_leave = undefined;
  }
}
