import { describe, expect, it } from 'vitest';
import { EventCounter } from './event-counter.ts';
import { HttpReader } from './http-reader.ts';

const BODY = 'data: {"content":""}\n\n: comment\n\ndata: {"content":"a"}\n\ndata: [DONE]\n\n';
/** The chunks end in the middle of lines, as after a proxy that splits them. */
const CHUNKED = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${[
  BODY.slice(0, 3),
  BODY.slice(3, 25),
  BODY.slice(25),
]
  .map((part) => `${part.length.toString(16)}\r\n${part}\r\n`)
  .join('')}0\r\n\r\n`;
const LENGTH = 'HTTP/1.1 404 Not Found\r\ncontent-length: 3\r\n\r\nabc';
const EMPTY = 'HTTP/1.1 204 No Content\r\n\r\n';

interface Message {
  head: string;
  body: string;
  chunks: number;
  first_content_at: number | undefined;
}

function read(parts: readonly Buffer[]): Message[] {
  const messages: Message[] = [];
  let current: Message = { head: '', body: '', chunks: 0, first_content_at: undefined };
  let counter = new EventCounter();
  const reader = new HttpReader({
    onHead: (head) => {
      current = { head, body: '', chunks: 0, first_content_at: undefined };
      counter = new EventCounter(() => {
        current.first_content_at = counter.chunks;
      });
    },
    onBody: (bytes, start, end) => {
      current.body += bytes.toString('latin1', start, end);
      counter.push(bytes, start, end);
    },
    onEnd: () => {
      messages.push({ ...current, chunks: counter.chunks });
    },
  });
  for (const part of parts) reader.push(part);
  return messages;
}

describe('the answer reader of the benchmark', () => {
  const bytes = Buffer.from(CHUNKED + LENGTH + EMPTY + CHUNKED);

  it('removes the transfer coding of consecutive answers', () => {
    const messages = read([bytes]);
    expect(messages.map(({ head }) => head.slice(9, 12))).toEqual(['200', '404', '204', '200']);
    expect(messages[0]!.body).toBe(BODY);
    expect(messages[1]!.body).toBe('abc');
  });

  it('counts chunks without comments, and ignores empty text', () => {
    expect(read([bytes])[0]).toMatchObject({ chunks: 3, first_content_at: 2 });
  });

  it('gives the same result for any split of the bytes', () => {
    const whole = read([bytes]);
    for (let at = 1; at < bytes.length; at += 1) {
      expect(read([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(whole);
    }
    expect(read([...bytes].map((byte) => Buffer.from([byte])))).toEqual(whole);
  });
});
