import { buildCatalog, type Catalog } from '../src/catalog/catalog.ts';
import { loadConfig, readBundledCatalog } from '../src/config.ts';
import { GatewayError } from '../src/errors.ts';
import { createServer, type Server } from '../src/http/server.ts';

const environment = {
  OPENAI_API_KEY: 'k',
  ANTHROPIC_API_KEY: 'k',
  DEEPINFRA_API_KEY: 'k',
  GROQ_API_KEY: 'k',
  GEMINI_API_KEY: 'k',
};

/** A server of operations that read the catalog: the bundled one, with five providers on and no key known. */
export async function startCatalogServer(
  register: (server: Server, options: { catalog(): Catalog }) => void,
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
  register(server, { catalog: () => catalog });
  await server.ready();
  return { server, catalog };
}
