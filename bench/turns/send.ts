/** Sends a body in HTTP chunks of a few bytes, which ordinary clients do not do. */
import { connect } from 'node:net';
import { text as textOf } from 'node:stream/consumers';

function chunked(body: string, pieceBytes: number): Buffer {
  const bytes = Buffer.from(body);
  const size = Buffer.from(`${pieceBytes.toString(16)}\r\n`);
  const end = Buffer.from('\r\n');
  const pieces: Buffer[] = [];
  let at = 0;
  for (; at + pieceBytes <= bytes.length; at += pieceBytes) {
    pieces.push(size, bytes.subarray(at, at + pieceBytes), end);
  }
  const rest = bytes.subarray(at);
  if (rest.length > 0) pieces.push(Buffer.from(`${rest.length.toString(16)}\r\n`), rest, end);
  return Buffer.concat([...pieces, Buffer.from('0\r\n\r\n')]);
}

/** The status and the text of the answer. */
export async function send(address: string, key: string, body: string, pieceBytes: number): Promise<Response> {
  const { hostname, port, pathname } = new URL(address);
  const socket = connect(Number(port), hostname);
  socket.write(
    `POST ${pathname} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n`,
  );
  socket.write(chunked(body, pieceBytes));
  const answer = await textOf(socket);
  return new Response(answer.slice(answer.indexOf('\r\n\r\n') + 4), { status: Number(answer.split(' ')[1]) });
}
