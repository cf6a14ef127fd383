import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** One answer, as its bytes on the wire. */
export interface RawAnswer {
  status: number;
  /** Names in lower case; the last one of several headers with one name. */
  headers: Record<string, string>;
  body: string;
}

/** Reads answers that have a length. The remaining bytes belong to no answer. */
export function answersIn(text: string): { answers: RawAnswer[]; rest: string } {
  const answers: RawAnswer[] = [];
  let rest = text;
  for (;;) {
    const end = rest.indexOf('\r\n\r\n');
    const status = /^HTTP\/1\.1 (\d{3})/.exec(rest)?.[1];
    if (end < 0 || status === undefined) return { answers, rest };
    const lines = rest.slice(0, end).split('\r\n').slice(1);
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    );
    const length = Number(headers['content-length'] ?? 0);
    answers.push({ status: Number(status), headers, body: rest.slice(end + 4, end + 4 + length) });
    rest = rest.slice(end + 4 + length);
  }
}

/** A connection that sends whatever a test writes. */
export interface RawClient {
  socket: Socket;
  send(text: string): void;
  /** Resolves once this number of answers has arrived, or the connection has ended. */
  answers(count: number): Promise<RawAnswer[]>;
  closed: Promise<unknown>;
  received(): string;
}

export async function rawClient(url: string): Promise<RawClient> {
  const { port, hostname } = new URL(url);
  const socket = connect(Number(port), hostname.replace(/^\[|\]$/g, ''));
  let text = '';
  socket.on('error', () => {});
  socket.on('data', (bytes: Buffer) => {
    text += bytes.toString('latin1');
  });
  const closed = once(socket, 'close');
  await once(socket, 'connect');
  return {
    socket,
    send: (bytes) => void socket.write(bytes, 'latin1'),
    async answers(count) {
      while (answersIn(text).answers.length < count && !socket.closed) {
        await Promise.race([once(socket, 'data'), closed]);
      }
      return answersIn(text).answers;
    },
    closed,
    received: () => text,
  };
}

/** The first answer on a connection that sends `text` and then waits; undefined if it was closed without an answer. */
export async function ask(url: string, text: string): Promise<RawAnswer | undefined> {
  const client = await rawClient(url);
  client.send(text);
  const [answer] = await client.answers(1);
  client.socket.destroy();
  return answer;
}
