import { publishedPolicies } from '../providers/data-policies.ts';
import { dialects } from '../providers/dialects.ts';
import type { DataPolicy, Provider } from '../providers/provider.ts';
import { type ProviderRow, providerRows } from '../providers/table.ts';
import { ConfigError, didYouMean, readEach } from './config-error.ts';
import type { ProviderSection } from './file-schema.ts';
import { googleCredential } from './google-credential.ts';
import type { Path, ReadFile } from './read-file.ts';
import { fileVariable, readSecretFile } from './secret-files.ts';

/** Environment variables, as the process was started with them. A blank value counts as unset. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A known provider that is off, and the reason, such as a missing variable. */
export interface ProviderOff {
  slug: string;
  name: string;
  reason: string;
}

export interface Providers {
  on: Provider[];
  /** The providers that are off only for lack of a credential: organizations can use them with their own. */
  own_only: Provider[];
  off: ProviderOff[];
  warnings: string[];
}

const SLUG = /^[a-z0-9][a-z0-9._-]*$/;
/** A header value that every HTTP client can send. */
const HEADER_VALUE = /^[\x20-\x7e]+$/;
const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/**
 * The value of a variable, without surrounding space; undefined when unset or blank. For a secret, `NAME_FILE` may name a file that
 * holds it; throws a `ConfigError` if that cannot be read.
 */
export function variable(environment: Environment, name: string): string | undefined {
  const value = environment[name]?.trim() || undefined;
  const pathVariable = fileVariable(name);
  const path = pathVariable === undefined ? undefined : environment[pathVariable]?.trim() || undefined;
  if (pathVariable === undefined || path === undefined) return value;
  if (value !== undefined) throw new ConfigError(`${name} and ${pathVariable} are both set: unset one of them`);
  return readSecretFile(pathVariable, path);
}

/** Replaces each `${NAME}` by the value of the variable; `unset` is the first name without a value. */
export function expand(text: string, environment: Environment): { text: string; unset: string | undefined } {
  let unset: string | undefined;
  const expanded = text.replace(REFERENCE, (_, name: string) => {
    const value = variable(environment, name);
    if (value === undefined) unset ??= name;
    return value ?? '';
  });
  return { text: expanded, unset };
}

/** Decides which providers are on: the rows of the table by their variables, then the file's, which override and extend them. */
export function resolveProviders(environment: Environment, file: ReadFile | undefined): Providers {
  const sections = new Map(Object.entries(file?.value.providers ?? {}));
  const result: Providers = { on: [], own_only: [], off: [], warnings: [] };
  const rows = new Map(providerRows.map((row) => [row.slug, row]));
  const slugs = new Set([...rows.keys(), ...sections.keys()]);
  readEach(
    [...slugs].map((slug) => () => resolveOne(slug, rows.get(slug), sections.get(slug), environment, file, result)),
  );
  refuseSharedNames(result, file);
  return result;
}

/** Requests select providers by name, so two providers must not share a name. */
function refuseSharedNames(providers: Providers, file: ReadFile | undefined): void {
  const owners = new Map<string, string>();
  for (const { slug } of [...providers.on, ...providers.off]) owners.set(slug.toLowerCase(), slug);
  for (const { slug, name } of [...providers.on, ...providers.off]) {
    const owner = owners.get(name.toLowerCase());
    if (owner !== undefined && owner !== slug && file?.value.providers?.[slug] !== undefined) {
      throw file.wrong(['providers', slug, 'name'], `is already the name of provider "${owner}"`);
    }
    if (owner === undefined) owners.set(name.toLowerCase(), slug);
  }
}

function resolveOne(
  slug: string,
  row: ProviderRow | undefined,
  section: ProviderSection | undefined,
  environment: Environment,
  file: ReadFile | undefined,
  result: Providers,
): void {
  const name = section?.name ?? row?.name ?? slug;
  const off = (reason: string, ownOnly?: Provider): void => {
    result.off.push({ slug, name, reason });
    if (ownOnly) result.own_only.push(ownOnly);
  };
  const place: Path = ['providers', slug];
  const wrong = (path: Path, expectation: string) =>
    file?.wrong([...place, ...path], expectation) ?? new ConfigError(`${[...place, ...path].join('.')} ${expectation}`);

  if (!SLUG.test(slug)) throw wrong([], 'must have a slug of lower-case letters, digits, dots and hyphens');
  const dialect = section?.dialect ?? row?.dialect;
  if (dialect === undefined) throw wrong([], `must have dialect and base_url${hint(slug)}`);

  let address = baseUrl(row, section, environment, wrong);
  const credential = credentialOf(row, section, environment, wrong);
  const provider = (): Provider => ({
    slug,
    name,
    dialect,
    base_url: address.url,
    credential: credential.value,
    quirks: { ...(isInside(row, section) ? { inline_media: true } : {}), ...row?.quirks, ...section?.quirks },
    embeddings_dialect: section?.embeddings_dialect ?? row?.embeddings_dialect,
    transcription_dialect: section?.transcription_dialect ?? row?.transcription_dialect,
    ...dataPolicies(row, section),
    abort_stops_billing:
      section?.abort_stops_billing ?? (row === undefined ? true : (row.abort_stops_billing ?? false)),
    ...attemptsUrl(section, wrong),
    ...variantsOf(row, section, environment),
    headers: headersOf(section, environment, wrong),
  });
  const isComplete = (): boolean =>
    address.unset === undefined &&
    dialects.has(dialect) &&
    Object.values(section?.headers ?? {}).every((text) => expand(text, environment).unset === undefined);
  const ownOnly = (): Provider | undefined => {
    if (address.unset !== undefined && row?.own_base_url !== undefined) address = { url: row.own_base_url };
    return isComplete() ? { ...provider(), is_own_only: true } : undefined;
  };
  if (credential.unset !== undefined) {
    result.warnings.push(`Provider "${slug}" is off: its api_key refers to ${credential.unset}, which is not set`);
    off(`${credential.unset} is not set`, ownOnly());
    return;
  }
  if (credential.missing !== undefined) {
    off(`${credential.missing} is not set`, ownOnly());
    return;
  }
  const local = row === undefined || row.address_variable !== undefined;
  if (
    row?.address_variable !== undefined &&
    section === undefined &&
    variable(environment, row.address_variable) === undefined
  ) {
    off(`${row.address_variable} is not set`);
    return;
  }
  if (!local && credential.value === undefined && section?.base_url === undefined) {
    off(`${row.credential_variables.join(' or ')} is not set`, ownOnly());
    return;
  }
  if (address.unset !== undefined) {
    off(`${address.unset} is not set`);
    return;
  }
  if (!dialects.has(dialect)) {
    if (section)
      result.warnings.push(`Provider "${slug}" is off: its dialect ${dialect} is not available in this version`);
    off(`its dialect ${dialect} is not available in this version`);
    return;
  }
  const mistaken = section?.variants === undefined ? mistakenPlace(row, environment) : undefined;
  if (mistaken !== undefined) result.warnings.push(mistaken);
  result.on.push(provider());
}

/** Whether a provider may be inside the operator's own network: a server of the operator's, or a known provider at another address. */
function isInside(row: ProviderRow | undefined, section: ProviderSection | undefined): boolean {
  if (row === undefined || row.address_variable !== undefined) return true;
  const { base_url } = section ?? {};
  return base_url !== undefined && base_url !== row.base_url && !row.base_url.includes('${');
}

/** Returns a warning for an unknown region: requests to it would fail, and only a few variants would be offered. */
function mistakenPlace(row: ProviderRow | undefined, environment: Environment): string | undefined {
  if (row?.variants_by === undefined) return undefined;
  const { variable: name, form, example } = row.variants_by;
  const value = variable(environment, name);
  if (value === undefined || form.test(value)) return undefined;
  return `${name} is "${value}", which does not look like one of ${row.name}; an example is ${example}`;
}

function hint(slug: string): string {
  return didYouMean(
    slug,
    providerRows.map((row) => row.slug),
  );
}

function credentialOf(
  row: ProviderRow | undefined,
  section: ProviderSection | undefined,
  environment: Environment,
  wrong: Wrong,
): { value?: string; unset?: string; missing?: string } {
  const isGoogle = (section?.quirks?.google_cloud ?? row?.quirks.google_cloud) === true;
  if (section?.api_key !== undefined) {
    const { text, unset } = expand(section.api_key, environment);
    if (unset !== undefined) return { unset };
    if (/^\$\w+$/.test(text) || text.includes('${')) {
      throw wrong(['api_key'], `must refer to a variable as \${NAME}, in letters, digits and underscores`);
    }
    const value = isGoogle ? googleCredential(text, (expectation) => wrong(['api_key'], expectation)) : text;
    if (!HEADER_VALUE.test(value))
      throw wrong(['api_key'], 'must be one line of plain ASCII, because it is sent in a header');
    return { value };
  }
  for (const name of row?.credential_variables ?? []) {
    const text = variable(environment, name);
    if (text === undefined) continue;
    const value = isGoogle ? googleCredential(text, (expectation) => new ConfigError(`${name} ${expectation}`)) : text;
    if (!HEADER_VALUE.test(value))
      throw new ConfigError(`${name} must be one line of plain ASCII, because it is sent in a header`);
    const parts = row?.credential_parts?.[name];
    return parts === undefined ? { value } : joinParts(parts, environment);
  }
  return {};
}

/** Joins the variables of a credential to JSON text; names the first one that is missing. */
function joinParts(
  { members, optional }: NonNullable<ProviderRow['credential_parts']>[string],
  environment: Environment,
): { value?: string; missing?: string } {
  const joined: Record<string, string> = {};
  for (const [member, name] of Object.entries(members)) {
    const value = variable(environment, name);
    if (value !== undefined) joined[member] = value;
    else if (!optional.includes(name)) return { missing: name };
  }
  return { value: JSON.stringify(joined) };
}

type Wrong = (path: Path, expectation: string) => ConfigError;

function baseUrl(
  row: ProviderRow | undefined,
  section: ProviderSection | undefined,
  environment: Environment,
  wrong: Wrong,
): { url: string; unset?: string } {
  if (section?.base_url !== undefined) {
    const { text, unset } = expand(section.base_url, environment);
    if (unset !== undefined) throw wrong(['base_url'], `refers to ${unset}, which is not set`);
    const url = plainUrl(text);
    if (url === undefined) {
      throw wrong(['base_url'], 'must be a URL that starts with http:// or https://, without user, query or fragment');
    }
    return { url };
  }
  if (row === undefined) throw wrong([], 'must have base_url');
  const text = row.address_variable === undefined ? undefined : variable(environment, row.address_variable);
  if (row.address_variable !== undefined && text !== undefined) {
    const url = serverUrl(text, row.base_url);
    if (url === undefined) throw new ConfigError(`${row.address_variable} must be an address such as ${row.base_url}`);
    return { url };
  }
  let unset: string | undefined;
  const url = row.base_url.replace(/\{([A-Z_]+)\}/g, (_, name: string) => {
    const value = variable(environment, name);
    if (value === undefined) unset ??= name;
    else if (!/^[\w.-]+$/.test(value)) throw new ConfigError(`${name} must be only a name, not a URL or a path`);
    return value ?? '';
  });
  return unset === undefined ? { url } : { url, unset };
}

/** The variants that the operator names, else those of the row for the operator's region. */
function variantsOf(
  row: ProviderRow | undefined,
  section: ProviderSection | undefined,
  environment: Environment,
): Pick<Provider, 'variants'> {
  if (section?.variants !== undefined) return { variants: section.variants };
  const place = row?.variants_by === undefined ? undefined : variable(environment, row.variants_by.variable);
  const match = place === undefined ? undefined : row?.variants_by?.variants.find(([pattern]) => pattern.test(place));
  return match === undefined ? {} : { variants: match[1] };
}

function attemptsUrl(section: ProviderSection | undefined, wrong: Wrong): Pick<Provider, 'attempts_url'> {
  if (section?.attempts_url === undefined) return {};
  const url = plainUrl(section.attempts_url);
  if (url !== undefined) return { attempts_url: url };
  throw wrong(['attempts_url'], 'must be a URL that starts with http:// or https://, without user, query or fragment');
}

function plainUrl(text: string): string | undefined {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    return undefined;
  return text.replace(/\/+$/, '');
}

/**
 * The address of a local server from any of its usual forms: `host`, `host:port`, `:port`, with or without scheme and path.
 * 0.0.0.0, an address to listen on, becomes 127.0.0.1.
 */
function serverUrl(text: string, usual: string): string | undefined {
  const fallback = new URL(usual);
  const bare = !/^https?:\/\//.test(text);
  if (bare && text.includes('://')) return undefined;
  const url = URL.parse(bare ? `http://${text.startsWith(':') ? '127.0.0.1' : ''}${text}` : text);
  if (!url || url.username || url.password || url.search || url.hash) return undefined;
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1';
  if (url.hostname === '[::]') url.hostname = '[::1]';
  if (bare && url.port === '' && !/:\d+/.test(text)) url.port = fallback.port;
  if (url.pathname === '/') url.pathname = fallback.pathname;
  return url.href.replace(/\/+$/, '');
}

/**
 * The data policies of a provider: each field as the operator declares it, else as the provider publishes it. The published
 * policy does not apply to another address than the provider's own.
 */
function dataPolicies(
  row: ProviderRow | undefined,
  section: ProviderSection | undefined,
): Pick<Provider, 'data_policy' | 'data_policy_apart'> {
  const published = section?.base_url === undefined && row !== undefined ? publishedPolicies[row.slug] : undefined;
  const declared = section?.data_policy ?? {};
  const days = { none: 0, unknown: 'unknown' } as const;
  const policyBy = (fact: DataPolicy | undefined): DataPolicy => {
    const { training = fact?.training ?? 'unknown', retention } = declared;
    if (retention === undefined) return { training, retention_days: fact?.retention_days ?? 'unknown' };
    const known = retention === 'none' || retention === 'unknown';
    return { training, retention_days: known ? days[retention] : Number.parseInt(retention, 10) };
  };
  const dataPolicy = policyBy(published);
  if (published?.not_of === undefined) return { data_policy: dataPolicy };
  return { data_policy: dataPolicy, data_policy_apart: { models: published.not_of, policy: policyBy(undefined) } };
}

function headersOf(
  section: ProviderSection | undefined,
  environment: Environment,
  wrong: Wrong,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(section?.headers ?? {})) {
    if (!/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(name)) throw wrong(['headers', name], 'is not a valid header name');
    const { text, unset } = expand(value, environment);
    if (unset !== undefined) throw wrong(['headers', name], `refers to ${unset}, which is not set`);
    if (/[\r\n\0]/.test(text)) throw wrong(['headers', name], 'must be one line');
    headers[name.toLowerCase()] = text;
  }
  return headers;
}
