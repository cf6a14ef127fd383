import { createServer } from 'node:http';
import { Pool } from 'undici';

/**
 * The minimum for a streamed chunk in Node: `node:http` in front, undici's lowest interface behind, bytes unchanged,
 * one write for each read. Arguments: the upstream's origin, and a port or 0.
 */
const [origin = '', port = '0'] = process.argv.slice(2);
const pool = new Pool(origin, { connections: 1_024 });

const server = createServer((request, response) => {
  if (request.method !== 'POST') {
    response.writeHead(404).end();
    return;
  }
  const headers = {
    'content-type': 'application/json',
    'content-length': request.headers['content-length'] ?? '0',
    authorization: request.headers.authorization ?? '',
  };
  pool.dispatch(
    { method: 'POST', path: '/v1/chat/completions', headers, body: request },
    {
      onRequestStart: (controller) => {
        response.on('close', () => {
          if (!response.writableFinished) controller.abort(new Error('The client disconnected.'));
        });
        response.on('drain', () => controller.resume());
      },
      onResponseStart: (_controller, status, headers) => {
        response.writeHead(status, { 'content-type': String(headers['content-type']) });
      },
      onResponseData: (controller, bytes) => {
        if (!response.write(bytes)) controller.pause();
      },
      onResponseEnd: () => {
        response.end();
      },
      onResponseError: () => {
        response.destroy();
      },
    },
  );
});

server.listen({ host: '127.0.0.1', port: Number(port), backlog: 4_096 }, () => {
  const address = server.address();
  if (address !== null && typeof address === 'object') process.stdout.write(`listening ${address.port}\n`);
});
process.on('SIGTERM', () => process.exit(0));
