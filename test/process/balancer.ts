import { once } from 'node:events';
import { Agent, createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Backend {
  url: string;
  /** An API key of the node, which the balancer sends instead of the client's. */
  key: string;
}

/**
 * A plain balancer: round robin over the nodes whose readiness was 200 at the last probe, with kept connections and
 * without retries.
 */
export interface Balancer {
  url: string;
  isReady(backend: Backend): boolean;
  stop(): Promise<void>;
}

export async function startBalancer(backends: readonly Backend[], pollMs: number): Promise<Balancer> {
  const ready = new Set<Backend>();
  const agents = new Map(backends.map((backend) => [backend, new Agent({ keepAlive: true })]));
  let turn = 0;
  let isStopped = false;
  const polling = backends.map(async (backend) => {
    while (!isStopped) {
      const answer = await fetch(`${backend.url}/health/ready`).catch(() => undefined);
      await answer?.text();
      if (answer?.status === 200) ready.add(backend);
      else ready.delete(backend);
      await sleep(pollMs);
    }
  });
  const server: Server = createServer((incoming, outgoing) => {
    turn += 1;
    const backend = [...ready][turn % ready.size];
    const fail = (reason: string) => {
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(502).end(reason);
    };
    if (backend === undefined) return fail('no node is ready');
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${backend.key}` };
    const call = request(`${backend.url}${incoming.url}`, {
      method: incoming.method ?? 'GET',
      agent: agents.get(backend)!,
      headers,
    });
    call.on('error', (error) => fail(String(error)));
    call.on('response', (answer) => {
      answer.on('error', (error) => fail(String(error)));
      outgoing.writeHead(answer.statusCode ?? 502, { 'content-type': answer.headers['content-type'] ?? '' });
      answer.pipe(outgoing);
    });
    incoming.pipe(call);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    isReady: (backend) => ready.has(backend),
    async stop() {
      isStopped = true;
      await Promise.all(polling);
      server.closeAllConnections();
      server.close();
      for (const agent of agents.values()) agent.destroy();
    },
  };
}
