import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What a search for a query finds. */
export interface FoundPage {
  url: string;
  title: string;
  text: string;
}

/** A search engine that speaks Exa's API, for tests that are not about engines. */
export interface SearchStandIn {
  /** For `plugins.web.engines.exa.base_url`. */
  url: string;
  /** The bodies of the searches that came. */
  readonly searches: Record<string, unknown>[];
  /** Waited for before each answer. */
  before: () => Promise<unknown>;
  stop(): Promise<void>;
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const piece of request.setEncoding('utf8')) text += piece;
  return text;
}

/** Starts it on a free port; every query finds `pages`, or what it is answered with where that is another status. */
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
