import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import type { JsonObject } from '../src/schemas/json.ts';

/** A proxy between a gateway and an upstream that records the traffic. */
export interface RecordingProxy {
  url: string;
  /** The received bodies, and whether the gateway disconnected before the end of their answers. */
  passed: { path: string; body: JsonObject; status: number; left: boolean }[];
  stop(): Promise<void>;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString();
}

/** Starts a proxy in front of an upstream that passes every byte on. */
export async function startRecordingProxy(upstream: string): Promise<RecordingProxy> {
  const passed: RecordingProxy['passed'] = [];
  const server = createServer(async (request, response) => {
    const text = await textOf(request);
    const { host: _, 'content-length': __, connection: ___, ...headers } = request.headers;
    const leaving = new AbortController();
    const entry = { path: request.url!, body: JSON.parse(text) as JsonObject, status: 0, left: false };
    passed.push(entry);
    response.once('close', () => {
      entry.left = !response.writableFinished;
      leaving.abort();
    });
    try {
      const init = { method: request.method!, body: text, signal: leaving.signal };
      const answer = await fetch(upstream + request.url, { ...init, headers: headers as Record<string, string> });
      entry.status = answer.status;
      response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' });
      for await (const piece of Readable.fromWeb(answer.body as ReadableStream)) response.write(piece);
      response.end();
    } catch {
      response.destroy();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    passed,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
