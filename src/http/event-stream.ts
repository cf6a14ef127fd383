import { limits } from '../limits.ts';
import { nextTurn } from '../next-turn.ts';
import { pieceEnd } from '../schemas/json-pieces.ts';
import type { HttpReply, HttpRequest } from './request.ts';
import type { Events } from './sources.ts';
import { StreamWriter } from './stream-writer.ts';
import { boundUnread } from './unread.ts';

type EventText = string | readonly string[];
/** The text of an event on the wire, in several texts if it is long; a promise only if it must wait. An empty text is not written. */
export type EncodedEvent = EventText | Promise<EventText>;

export interface EventStream<T extends object> {
  events: Events<T>;
  encode(event: T): EncodedEvent;
  /** The last text of a stream whose source failed after the 200 was sent. Events that cannot be encoded are reported to the source by `throw`. */
  encodeFailure(error: unknown): string;
  /** Sent during silence, between events: a comment or a ping of the wire. */
  heartbeat: string;
  /** The client left. Nothing is written any more, but `events` is still read to its end. */
  onClientLeft(): void;
  /** The gateway stops: `events` must end soon. The client is still connected and receives the reason. */
  onStop(): void;
  heartbeat_first_ms: number;
  heartbeat_ms: number;
}

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
};

/**
 * Sends events as they arrive. The 200 is sent with the first event or the first heartbeat; before that, errors of `events` are
 * thrown, so that the client gets a status. Back-pressure: the next event is read when the client has taken the last. Resolves when the
 * source has ended, also if the client left before.
 */
export async function sendEventStream<T extends object>(
  request: HttpRequest,
  reply: HttpReply,
  stream: EventStream<T>,
): Promise<void> {
  if (request.long_body_bytes > 0) await nextTurn();
  const response = reply.raw;
  const { events } = stream;
  /** Set when the 200 is committed. */
  let writer: StreamWriter | undefined;
  let hasLeft = false;
  /** A part of an event is written, and the rest of it is not. */
  let isInEvent = false;

  const write = (text: string) => {
    if (hasLeft) return true;
    if (writer !== undefined) beat.refresh();
    else {
      reply.hijack();
      writer = new StreamWriter(response, { ...reply.getHeaders(), ...STREAM_HEADERS } as Record<string, string>);
      // From here on, silence is measured from the last write.
      clearTimeout(beat);
      beat = setTimeout(tick, stream.heartbeat_ms);
    }
    return writer.write(text);
  };
  // No heartbeats while the client does not read.
  const tick = () => {
    if (hasLeft) return;
    if (isInEvent || writer?.isFull) beat.refresh();
    else write(stream.heartbeat);
  };
  let beat = setTimeout(tick, stream.heartbeat_first_ms);

  const leave = () => {
    if (hasLeft || response.writableFinished) return;
    hasLeft = true;
    clearTimeout(beat);
    stream.onClientLeft();
  };
  response.on('close', leave);
  response.on('error', leave);
  request.on_stop = () => stream.onStop();
  if (response.destroyed || request.raw.socket.destroyed) leave();

  /** Reports an event that cannot be encoded to the source, which ends and may have a last event. */
  const encodeRefusal = async (error: unknown): Promise<EventText> => {
    const last = await events.throw(error);
    if (writer === undefined || last.done === true) throw error;
    return stream.encode(last.value);
  };

  /** Writes long texts in pieces, and yields to other requests in between. */
  const writeLong = async (texts: readonly string[]) => {
    await nextTurn();
    isInEvent = true;
    let chars = 0;
    for (const text of texts) {
      for (let at = 0; at < text.length && !hasLeft; ) {
        const end = pieceEnd(text, at + limits.json_long_chars_min);
        if (!write(text.slice(at, end)) && !(await writer?.drained())) leave();
        chars += end - at;
        at = end;
        if (chars < limits.json_long_chars_min) continue;
        chars = 0;
        await nextTurn();
      }
    }
    isInEvent = false;
    await nextTurn();
  };

  /** Writes the last text of a failed stream. Without one the connection is cut: an end would say that the answer is whole. */
  const writeFailure = (failure: unknown) => {
    try {
      write(stream.encodeFailure(failure));
    } catch (error) {
      response.destroy();
      throw error;
    }
  };

  try {
    for (;;) {
      let text: EventText;
      try {
        const ready = events.ready();
        if (ready !== undefined) await ready;
        // What was written last may fill the connection after its turn.
        if (writer?.isFull && !hasLeft && !(await writer.drained())) leave();
        const event = events.read();
        if (event === undefined) {
          if (events.ended) break;
          continue;
        }
        try {
          const encoding = stream.encode(event);
          text = encoding instanceof Promise ? await encoding : encoding;
        } catch (error) {
          text = await encodeRefusal(error);
        }
      } catch (error) {
        if (writer === undefined && !hasLeft) throw error;
        writeFailure(error);
        break;
      }
      if (typeof text !== 'string') await writeLong(text);
      else if (text.length > limits.json_long_chars_min) await writeLong([text]);
      else if (text !== '' && !write(text) && !(await writer?.drained())) leave();
    }
  } finally {
    // Ends the source if an error of the gateway left it open.
    if (!events.ended) await events.return();
    clearTimeout(beat);
    request.on_stop = undefined;
    response.off('close', leave);
    if (writer !== undefined && !hasLeft) {
      // The client must take the rest as well.
      boundUnread(response);
      writer.end();
    } else if (hasLeft && !reply.sent) reply.hijack();
  }
}
