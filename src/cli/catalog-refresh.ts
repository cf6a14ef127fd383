import { readFile, rename, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type BundledCatalog, parseBundledCatalog, printBundledCatalog } from '../catalog/bundled.ts';
import type { ModelsDev, PublicSlugs } from '../catalog/listing.ts';
import { bundleCatalog } from '../catalog/models-dev.ts';
import { readProxies } from '../config/proxy.ts';
import type { ProxyRules } from '../providers/transport/proxy.ts';
import { createServices, ServiceFailed, type Services } from '../providers/transport/services.ts';
import { type Command, readArguments, UsageError } from './command.ts';

/** The bytes that `catalog refresh` reads of one source. */
const CATALOG_BYTES_MAX = 64 * 1024 * 1024;
const CATALOG_DOWNLOAD_MS_MAX = 60_000;
const CATALOG_REDIRECTS_MAX = 5;

const bundledFile = fileURLToPath(new URL('../../catalog/models.json', import.meta.url));

const usage = `Usage: model-gateway catalog refresh --from URL|FILE [--slugs URL|FILE] [--out FILE]

Rebuilds the bundled model facts from a file in the format of https://models.dev/api.json.
  --slugs  public author/slug ids to use; by default those of the present catalog
  --out    the file to write; by default the bundled one, ${bundledFile}
Known names, dates and ids do not change. A running gateway uses the new facts after SIGHUP.
`;

/** The sources and the target of a refresh: addresses or paths. */
export interface CatalogRefresh {
  from: string;
  slugs?: string | undefined;
  out: string;
  proxies?: ProxyRules | undefined;
}

/** The result of a refresh. */
export interface RefreshOutcome {
  models: number;
  endpoints: number;
  added: string[];
  removed: string[];
  left_out: number;
}

/** Rebuilds the catalog file from published model facts. Writes the whole new file, or none if it rejects. */
export async function refreshCatalog({ from, slugs, out, proxies }: CatalogRefresh): Promise<RefreshOutcome> {
  const before = await previousCatalog(out);
  const source = object(await read(from, proxies), from) as ModelsDev;
  const known = slugs === undefined ? {} : (object(await read(slugs, proxies), slugs) as PublicSlugs);
  const { catalog, left_out } = bundled(from, () => bundleCatalog(source, known, before));
  if (catalog.models.length === 0) throw new Error(`${from} contains no model of a provider that the gateway knows`);
  const draft = `${out}.${process.pid}.new`;
  await writeFile(draft, printBundledCatalog(catalog));
  await rename(draft, out);
  const ids = (models: BundledCatalog['models']) => new Set(models.map(({ id }) => id));
  const [old, now] = [ids(before?.models ?? []), ids(catalog.models)];
  return {
    models: catalog.models.length,
    endpoints: catalog.models.reduce((sum, model) => sum + model.endpoints.length, 0),
    added: [...now].filter((id) => !old.has(id)),
    removed: [...old].filter((id) => !now.has(id)),
    left_out: left_out.length,
  };
}

/** `model-gateway catalog`, whose only action is `refresh`. */
export const catalogCommand: Command = {
  usage,
  async run(args, environment) {
    const { values, positionals } = readArguments({
      args,
      allowPositionals: true,
      options: { from: { type: 'string' }, slugs: { type: 'string' }, out: { type: 'string', default: bundledFile } },
    });
    if (values.from === undefined || positionals.join(' ') !== 'refresh') throw new UsageError();
    const proxies = readProxies(environment);
    const done = await refreshCatalog({ from: values.from, slugs: values.slugs, out: values.out, proxies });
    process.stdout.write(
      `${values.out}: ${done.models} models with ${done.endpoints} endpoints; ${done.left_out} listings left out.\n` +
        done.added.map((id) => `+ ${id}\n`).join('') +
        done.removed.map((id) => `- ${id}\n`).join(''),
    );
    return 0;
  },
};

async function previousCatalog(path: string): Promise<BundledCatalog | undefined> {
  try {
    return parseBundledCatalog(await readFile(path, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`${path} exists and is not a catalog; it was not changed. Set --out to another file`, {
      cause: error,
    });
  }
}

function object(text: string, from: string): object {
  let value: unknown;
  try {
    // A byte order mark is not part of the JSON.
    value = JSON.parse(text.replace(/^\uFEFF/, ''));
  } catch (cause) {
    throw new Error(`${from} is not JSON`, { cause });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error(`${from} does not have the format of models.dev: expected an object of providers`);
  }
  return value;
}

/** Runs `bundle`, whose type errors show that a value in the source has another type than expected. */
function bundled<T>(from: string, bundle: () => T): T {
  try {
    return bundle();
  } catch (cause) {
    throw new Error(`${from} does not have the format of models.dev: a field of a model has another type`, { cause });
  }
}

function unread(from: string): (error: unknown) => never {
  return (cause) => {
    const { code, cause: inner, name } = cause as NodeJS.ErrnoException & { cause?: NodeJS.ErrnoException };
    // `Services` puts the reason into the cause of its error.
    const reason = code ?? inner?.code ?? (cause instanceof ServiceFailed ? cause.message : name);
    throw new Error(`${from} cannot be read (${reason})`, { cause });
  };
}

async function read(from: string, proxies: ProxyRules | undefined): Promise<string> {
  if (!/^https?:\/\//.test(from)) return readFile(from, 'utf8').catch(unread(from));
  const services = createServices(proxies);
  try {
    return await download(from, services);
  } finally {
    await services.close();
  }
}

async function download(from: string, services: Services): Promise<string> {
  let url = from;
  for (let hops = 0; hops <= CATALOG_REDIRECTS_MAX; hops += 1) {
    const { status, headers, body } = await services
      .ask({
        url,
        method: 'GET',
        bytes_max: CATALOG_BYTES_MAX,
        timeout_ms: CATALOG_DOWNLOAD_MS_MAX,
      })
      .catch(unread(from));
    const next = status >= 300 && status < 400 ? URL.parse(String(headers['location']), url) : null;
    if (next !== null && /^https?:$/.test(next.protocol)) {
      url = next.href;
      continue;
    }
    if (status < 200 || status > 299) throw new Error(`${from} answered ${status}`);
    return body.toString('utf8');
  }
  throw new Error(`${from} redirects more than ${CATALOG_REDIRECTS_MAX} times`);
}
