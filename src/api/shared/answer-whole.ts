import type { HttpReply } from '../../http/request.ts';
import { encodeInTurns } from '../../http/written-json.ts';
import { CallCancelled } from '../../inference/attempt/upstream-call.ts';
import type { Cancellation } from '../../inference/call.ts';
import { limits } from '../../limits.ts';
import { nextTurn } from '../../next-turn.ts';
import { clientError } from './client-error.ts';

/**
 * Runs a call and sends its whole answer, as JSON by default. Cancels the call if its client leaves before, or the gateway stops.
 */
export async function answerWhole<A>(
  reply: HttpReply,
  { cancellation }: { cancellation: Pick<Cancellation, 'cancel' | 'stop' | 'stopped'> },
  run: () => Promise<A>,
  write: (answer: A) => string | Promise<string | Buffer>,
  contentType = 'application/json; charset=utf-8',
): Promise<void> {
  const { request } = reply;
  request.on_leave = () => cancellation.cancel();
  request.on_stop = () => cancellation.stop();
  if (request.long_body_bytes > 0) await nextTurn();
  // The client may have left while a long body was read.
  if (reply.raw.destroyed) cancellation.cancel();
  try {
    const written = write(await run());
    const made = typeof written === 'string' ? written : await written;
    const isLong = typeof made === 'string' && made.length > limits.answer_turn_bytes_min;
    const body = isLong ? await encodeInTurns(made) : made;
    void reply.header('content-type', contentType).send(body);
  } catch (thrown) {
    const error = clientError(thrown, cancellation);
    if (!(error instanceof CallCancelled)) throw error;
    // The client has left.
    reply.hijack();
  } finally {
    request.on_leave = undefined;
    request.on_stop = undefined;
  }
}
