import { createListings, type Listings } from '../src/api/catalog/listings.ts';
import { buildCatalog, type Catalog } from '../src/catalog/catalog.ts';
import { loadConfig, readBundledCatalog } from '../src/config.ts';
import { GatewayError } from '../src/errors.ts';
import { createServer, type Server } from '../src/http/server.ts';
import type { Site } from '../src/http/site.ts';

const environment = {
  OPENAI_API_KEY: 'k',
  ANTHROPIC_API_KEY: 'k',
  DEEPINFRA_API_KEY: 'k',
  GROQ_API_KEY: 'k',
  GEMINI_API_KEY: 'k',
};

interface CatalogOptions {
  catalog(): Catalog;
  listings(): Listings;
  site: Site;
}

/** A server of operations that read the catalog: the bundled one, with five providers on and no key known. */
export async function startCatalogServer(
  register: (server: Server, options: CatalogOptions) => void,
): Promise<{ server: Server; catalog: Catalog }> {
  const config = loadConfig(environment);
  const bundled = readBundledCatalog();
  const catalog = buildCatalog({ bundled, config, providers: config.providers, created_default: 0 });
  const server = createServer({
    authenticate: () => {
      throw new GatewayError(401, 'No such key');
    },
    logger: false,
    body_bytes_max: 1024,
  });
  const listingsFor = createListings();
  register(server, {
    catalog: () => catalog,
    listings: () => listingsFor(catalog),
    site: { public_origin: undefined },
  });
  await server.ready();
  return { server, catalog };
}
