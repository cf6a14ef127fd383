import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { limits } from '../limits.ts';
import { pieceEnd } from '../schemas/json-pieces.ts';
import type { Events } from './sources.ts';
import { boundUnread } from './unread.ts';

export interface EventStream<T extends object> {
  events: Events<T>;
  /** One event as the text of the wire, at once but where it must wait for something; an empty text is not written. */
  encode(event: T): string | Promise<string>;
  /** The end of a stream whose source threw after the 200 was sent; `throw` tells it of an event that has no text. */
  encodeFailure(error: unknown): string;
  /** Sent in silence, at event boundaries: a comment or a ping of the wire. */
  heartbeat: string;
  /** The client has left: nobody reads any more, but `events` is still read to its end. */
  onClientGone(): void;
  /** The gateway stops: `events` must end soon, and the client is there to hear why. */
  onStop(): void;
  heartbeat_first_ms: number;
  heartbeat_ms: number;
}

/**
 * Sends events as they come. The 200 is committed with the first event or the first heartbeat; until then what `events`
 * throws is thrown on, so that the client gets a proper status. Back-pressure: the next event is asked for when the
 * client has taken the last. Resolves when the source has ended, also when the client left before.
 */
export async function sendEventStream<T extends object>(
  request: FastifyRequest,
  reply: FastifyReply,
  stream: EventStream<T>,
): Promise<void> {
  if (request.long_body_bytes > 0) await nextTurn();
  const socket = reply.raw;
  const { events } = stream;
  let committed = false;
  let gone = false;
  /** A part of an event is written, and the rest of it is not. */
  let isInEvent = false;

  const commit = () => {
    committed = true;
    reply.hijack();
    const headers = { ...reply.getHeaders() } as Record<string, string>;
    headers['content-type'] = 'text/event-stream; charset=utf-8';
    headers['cache-control'] = 'no-cache';
    headers['x-accel-buffering'] = 'no';
    socket.writeHead(200, headers);
    // From now on silence is counted from the last write.
    clearTimeout(beat);
    beat = setTimeout(tick, stream.heartbeat_ms);
  };
  const write = (text: string) => {
    if (gone) return true;
    if (committed) beat.refresh();
    else commit();
    return socket.write(text);
  };
  // A client that does not read gets no heartbeats until it does.
  const tick = () => {
    if (gone) return;
    if (isInEvent || socket.writableNeedDrain) beat.refresh();
    else write(stream.heartbeat);
  };
  let beat = setTimeout(tick, stream.heartbeat_first_ms);

  const leave = () => {
    if (gone || socket.writableFinished) return;
    gone = true;
    clearTimeout(beat);
    stream.onClientGone();
  };
  socket.on('close', leave);
  socket.on('error', leave);
  request.on_stop = () => stream.onStop();
  if (socket.destroyed || request.raw.socket.destroyed) leave();

  /** The source hears of what cannot be written, so that it can end as it should. */
  const refused = async (error: unknown): Promise<string> => {
    const last = await events.throw(error);
    if (!committed || last.done === true) throw error;
    return stream.encode(last.value);
  };
  const encoded = (event: T): string | Promise<string> => {
    try {
      const text = stream.encode(event);
      return typeof text === 'string' ? text : text.catch(refused);
    } catch (error) {
      return refused(error);
    }
  };

  /** Encoding all of a long text takes long: others are served in between. */
  const writeLong = async (text: string) => {
    await nextTurn();
    isInEvent = true;
    for (let at = 0; at < text.length && !gone; ) {
      const end = pieceEnd(text, at + limits.json_long_chars_min);
      if (!write(text.slice(at, end)) && !(await drained(socket))) leave();
      at = end;
      await nextTurn();
    }
    isInEvent = false;
  };

  try {
    for (;;) {
      let text: string;
      try {
        const coming = events.coming();
        if (coming !== undefined) await coming;
        const event = events.take();
        if (event === undefined) {
          if (events.ended) break;
          continue;
        }
        const encoding = encoded(event);
        text = typeof encoding === 'string' ? encoding : await encoding;
      } catch (error) {
        if (!committed && !gone) throw error;
        write(stream.encodeFailure(error));
        break;
      }
      if (text.length > limits.json_long_chars_min) await writeLong(text);
      else if (text !== '' && !write(text) && !(await drained(socket))) leave();
    }
  } finally {
    // At its end already, but for a fault of ours.
    await events.return();
    clearTimeout(beat);
    request.on_stop = undefined;
    socket.off('close', leave);
    if (committed && !gone) {
      // The last of it must be taken as well.
      boundUnread(socket);
      socket.end();
    } else if (gone && !reply.sent) reply.hijack();
  }
}

/** Waits until the client has taken what was written; false when it left, or did not read for too long. */
function drained(socket: ServerResponse): Promise<boolean> {
  if (socket.destroyed) return Promise.resolve(false);
  return new Promise((resolve) => {
    const settle = (taken: boolean) => {
      clearTimeout(stall);
      socket.off('drain', onDrain);
      socket.off('close', onClose);
      resolve(taken);
    };
    const onDrain = () => settle(true);
    const onClose = () => settle(false);
    const stall = setTimeout(() => {
      settle(false);
      socket.destroy();
    }, limits.client_stall_ms_max);
    socket.once('drain', onDrain);
    socket.once('close', onClose);
  });
}
