import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The results of a search for a query. */
export interface FoundPage {
  url: string;
  title: string;
  text: string;
}

/** A search engine that speaks Exa's API, for tests of other subjects. */
export interface SearchStandIn {
  /** For `plugins.web.engines.exa.base_url`. */
  url: string;
  /** The bodies of the received searches. */
  readonly searches: Record<string, unknown>[];
  /** Awaited before each answer. */
  before: () => Promise<unknown>;
  stop(): Promise<void>;
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const piece of request.setEncoding('utf8')) text += piece;
  return text;
}

/** Starts it on a free port. Every query finds `pages`, or gets the given status if it is another one. */
export async function startSearchEngine(pages: readonly FoundPage[], status = 200): Promise<SearchStandIn> {
  const searches: Record<string, unknown>[] = [];
  const server = createServer((request, response) => {
    void textOf(request).then(async (text) => {
      searches.push(JSON.parse(text) as Record<string, unknown>);
      await standIn.before();
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ requestId: 'r', results: pages }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const standIn: SearchStandIn = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    searches,
    before: () => Promise.resolve(),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return standIn;
}
