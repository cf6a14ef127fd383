import { StringDecoder } from 'node:string_decoder';
import fastify, { type FastifyReply } from 'fastify';
import { type Dispatcher, Pool } from 'undici';

/**
 * The reference for gateways: Fastify and `undici.request`, JSON parsed and written for request and answer, every
 * streamed event parsed, rewritten and sent on, and nothing else: no validation, keys, metering or log. Arguments: the
 * upstream's origin, and a port or 0.
 */
const [origin = '', port = '0'] = process.argv.slice(2);
const pool = new Pool(origin, { connections: 1_024 });
const app = fastify({ logger: false });

interface ChatBody {
  model: string;
  stream?: boolean;
}

function rewriteEvent(event: string): string {
  const data = event.slice(6);
  if (data === '[DONE]') return 'data: [DONE]\n\n';
  const chunk = JSON.parse(data) as Record<string, unknown>;
  chunk['provider'] = 'bench';
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

/** Rewrites the events of one read, and writes once. */
function forwardStream(upstream: Dispatcher.ResponseData, reply: FastifyReply): void {
  const out = reply.raw;
  const text = new StringDecoder('utf8');
  let rest = '';
  reply.hijack();
  out.writeHead(upstream.statusCode, { 'content-type': 'text/event-stream' });
  out.on('close', () => upstream.body.destroy());
  upstream.body.on('data', (bytes: Buffer) => {
    const events = (rest + text.write(bytes)).split('\n\n');
    rest = events.pop() ?? '';
    let rewritten = '';
    for (const event of events) rewritten += rewriteEvent(event);
    if (rewritten !== '' && !out.write(rewritten)) {
      upstream.body.pause();
      out.once('drain', () => upstream.body.resume());
    }
  });
  upstream.body.on('end', () => out.end());
  upstream.body.on('error', () => out.destroy());
}

app.post<{ Body: ChatBody }>('/v1/chat/completions', async (request, reply) => {
  const upstream = await pool.request({
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { 'content-type': 'application/json', authorization: request.headers.authorization ?? '' },
    body: JSON.stringify(request.body),
  });
  if (request.body.stream === true) {
    forwardStream(upstream, reply);
    return reply;
  }
  const answer = JSON.parse(await upstream.body.text()) as Record<string, unknown>;
  answer['provider'] = 'bench';
  return reply.code(upstream.statusCode).send(answer);
});

const address = await app.listen({ host: '127.0.0.1', port: Number(port), backlog: 4_096 });
process.stdout.write(`listening ${new URL(address).port}\n`);
process.on('SIGTERM', () => process.exit(0));
