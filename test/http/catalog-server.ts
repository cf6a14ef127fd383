import { createListings, type Listings } from '../../src/api/catalog/listings.ts';
import { buildCatalog, type Catalog } from '../../src/catalog/catalog.ts';
import type { StatisticsOf } from '../../src/catalog/describe.ts';
import { loadConfig, readBundledCatalog } from '../../src/config.ts';
import { GatewayError } from '../../src/errors.ts';
import { createServer } from '../../src/http/create-server.ts';
import type { Principal } from '../../src/http/principal.ts';
import type { Server } from '../../src/http/server.ts';
import type { Site } from '../../src/http/site.ts';
import type { RouterRules } from '../../src/routing/router-models.ts';

const environment = {
  OPENAI_API_KEY: 'k',
  ANTHROPIC_API_KEY: 'k',
  DEEPINFRA_API_KEY: 'k',
  GROQ_API_KEY: 'k',
  GEMINI_API_KEY: 'k',
};

/** The only known key. */
export const KNOWN_SECRET = 'sk-known';

const caller: Principal = {
  kind: 'key',
  key_hash: 'hash',
  key_id: 1,
  organization_id: 'organization',
  workspace_id: 'workspace',
  user_id: null,
  budgets: [],
  guardrails: [],
  budget_mode: null,
};

/** The statistics of every endpoint. */
const statistics: ReturnType<StatisticsOf> = {
  status: '0',
  latency_last_30m: { p50: 100, p75: 200, p90: 300, p99: 400 },
  throughput_last_30m: { p50: 50, p75: 40, p90: 30, p99: 20 },
  samples_last_30m: 120,
  uptime_last_5m: null,
  uptime_last_30m: 99.5,
  uptime_last_1d: 100,
};

const routers: RouterRules = {
  auto_models: ['openai/gpt-4o', 'acme/unknown', 'openai/gpt-5-nano'],
  free_models: undefined,
};

interface CatalogOptions {
  catalog(): Catalog;
  listings(): Listings;
  site: Site;
  statistics: StatisticsOf;
  routers(): RouterRules;
  now(): number;
}

/** A server of operations that read the catalog: the bundled one, with five enabled providers and one known key. */
export async function startCatalogServer(
  register: (server: Server, options: CatalogOptions) => void,
): Promise<{ server: Server; catalog: Catalog }> {
  const config = loadConfig(environment);
  const bundled = readBundledCatalog();
  const catalog = buildCatalog({ bundled, config, providers: config.providers, created_default: 0 });
  const server = createServer({
    authenticate: (secret) => {
      if (secret !== KNOWN_SECRET) throw new GatewayError(401, 'No such key');
      return caller;
    },
    logger: false,
    body_bytes_max: 1024,
  });
  const listingsFor = createListings();
  register(server, {
    catalog: () => catalog,
    listings: () => listingsFor(catalog, routers),
    routers: () => routers,
    site: { public_origin: undefined },
    statistics: () => statistics,
    now: Date.now,
  });
  await server.ready();
  return { server, catalog };
}
