import { Resolver } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import type { Dispatcher } from 'undici';
import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { MediaNeed } from '../dialect.ts';
import { isPublicAddress } from './addresses.ts';
import { boundInterim } from './interim-answers.ts';
import { fitsKind, mediaTypeOf } from './media-type.ts';
import { boundedReads, yieldingReads } from './pieces.ts';
import { type ProxyRules, proxyFor, throughProxy } from './proxy.ts';
import type { MemoryBudget } from './room.ts';
import { Client } from './undici.ts';

/** Copies in memory of fetched media: received, as base64, in the request that is written for an upstream, and sent. */
export const MEDIA_COPIES = 5;
/** The timeout for the connection of one fetch. */
const MEDIA_CONNECT_MS_MAX = 5_000;

/** Addresses that the operator allows in addition to the public internet at the usual ports. */
export interface MediaRules {
  ports: readonly number[];
  /** Lower case: `host`, or `host:port` for one port only. */
  private_hosts: readonly string[];
}

/** How the operator's list allows a private address: at its port only, at the usual ports (`host`), or not at all. */
export function listedAs(
  { private_hosts: privateHosts }: Pick<MediaRules, 'private_hosts'>,
  url: URL,
): 'port' | 'host' | undefined {
  const host = url.hostname.replace(/\.$/, '');
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  if (privateHosts.includes(`${host}:${port}`)) return 'port';
  return privateHosts.includes(host) ? 'host' : undefined;
}

export interface FetchedMedia {
  /** Detected from the bytes. */
  mime_type: string;
  base64: string;
  bytes: number;
}

/** The reason why content is not fetched, fit for clients: it contains no addresses. */
export class MediaRefused extends Error {
  override readonly name = 'MediaRefused';
}

export interface MediaFetcher {
  /** Throws `MediaRefused`, the error of `room`, or the reason of the signal. */
  fetch(need: MediaNeed, options: FetchOptions): Promise<FetchedMedia>;
}

/** A page as its server returned it. */
export interface FetchedPage {
  /** After all redirects. */
  url: string;
  /** As declared by its server; undefined if not declared. */
  content_type: string | undefined;
  bytes: Buffer;
}

export interface PageFetcher {
  /**
   * Checks each address with `allows` before it is requested. Throws `MediaRefused`, the error of `room`, or the reason of the
   * signal.
   */
  fetch(url: string, options: FetchOptions & { allows(url: URL): boolean }): Promise<FetchedPage>;
}

export interface FetchOptions {
  signal: AbortSignal;
  bytes_max: number;
  /** The caller that it is fetched for. No caller may occupy all fetches. */
  owner: string;
  /** Counts the memory of what is read; not counted if not set. */
  room?: MemoryBudget | undefined;
}

/** All addresses of a host. Rejects or returns none if there is no such host. */
export type Resolve = (host: string, isPrivate: boolean) => Promise<readonly string[]>;

/**
 * Uses only the name service for hosts that anybody may name: no search domain, no hosts file, and no thread of the pool that writes the
 * journal. Hosts that the operator listed are resolved by the system, since they may be known to this machine only.
 */
function systemResolve(): Resolve {
  const resolver = new Resolver({ timeout: MEDIA_CONNECT_MS_MAX / 2, tries: 2 });
  return async (host, isPrivate) => {
    if (isPrivate) {
      const { lookup } = await import('node:dns/promises');
      return (await lookup(host, { all: true })).map(({ address }) => address);
    }
    const results = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    return results.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  };
}

/** The destination of one request: addresses that were checked, whatever the name resolves to later. */
interface Target {
  url: URL;
  addresses: readonly string[];
  /** The proxy to use; undefined for a direct connection. */
  proxy: string | undefined;
}

const NOT_PUBLIC = 'its host does not resolve to a public address';

interface QueuedFetch {
  owner: string;
  start(): void;
}

/** A count for each owner that has one above zero. */
class Counts {
  readonly #counts = new Map<string, number>();

  of(owner: string): number {
    return this.#counts.get(owner) ?? 0;
  }

  add(owner: string, delta: 1 | -1): void {
    const count = this.of(owner) + delta;
    if (count === 0) this.#counts.delete(owner);
    else this.#counts.set(owner, count);
  }
}

/** A fair queue: a bounded number of fetches at once, fewer per owner; the owner with the fewest active fetches is next. */
function createFetchQueue() {
  let running = 0;
  const active = new Counts();
  const waiting = new Set<QueuedFetch>();
  const queued = new Counts();

  /** The next fetch to start: of the owners with the fewest active ones, the one that waits longest. */
  function next(): QueuedFetch | undefined {
    let best: QueuedFetch | undefined;
    for (const one of waiting) {
      const count = active.of(one.owner);
      if (count < limits.media_fetches_per_owner_max && (!best || count < active.of(best.owner))) best = one;
    }
    return best;
  }

  function leaveQueue(one: QueuedFetch): void {
    waiting.delete(one);
    queued.add(one.owner, -1);
  }

  function startNext(): void {
    while (running < limits.media_fetches_max) {
      const one = next();
      if (one === undefined) return;
      leaveQueue(one);
      running += 1;
      active.add(one.owner, 1);
      one.start();
    }
  }

  return {
    async acquire(owner: string, signal: AbortSignal): Promise<void> {
      // A signal that is already aborted fires no event.
      signal.throwIfAborted();
      const isFull = waiting.size >= limits.media_fetches_waiting_max;
      if (isFull || queued.of(owner) >= limits.media_fetches_waiting_per_owner_max) {
        throw new MediaRefused('too many files are being fetched');
      }
      await new Promise<void>((resolve, reject) => {
        const leave = () => {
          leaveQueue(one);
          reject(signal.reason as Error);
        };
        const one: QueuedFetch = {
          owner,
          start() {
            signal.removeEventListener('abort', leave);
            resolve();
          },
        };
        waiting.add(one);
        queued.add(owner, 1);
        signal.addEventListener('abort', leave, { once: true });
        startNext();
      });
    },
    release(owner: string): void {
      running -= 1;
      active.add(owner, -1);
      startNext();
    },
  };
}

/** Resolves an address, and refuses hosts that are not public. */
type ResolveTarget = (url: URL, signal: AbortSignal) => Promise<Target>;

function createTargetResolver(
  rules: MediaRules,
  { resolve = systemResolve(), proxies }: FetcherOptions,
): ResolveTarget {
  return async (url, signal) => {
    checkUrl(url);
    const { hostname } = url;
    const host = hostname.replace(/\.$/, '');
    const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
    const listed = listedAs(rules, url);
    const isPrivate = listed !== undefined;
    // Listed hosts are in the operator's own network: no proxy.
    const proxy = isPrivate ? undefined : proxyFor(proxies, url);
    if (listed !== 'port' && !rules.ports.includes(port)) throw new MediaRefused(`its port ${port} is not allowed`);
    const literal = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
    if (isIP(literal) !== 0) {
      if (!isPrivate && !isPublicAddress(literal)) throw new MediaRefused(NOT_PUBLIC);
      return { url, addresses: [literal], proxy };
    }
    const addresses = await withSignal(
      resolve(host, isPrivate).catch(() => []),
      signal,
    );
    // A name with both a public and a private address would pass a check of the public one only.
    const isAllowed = addresses.length > 0 && (isPrivate || addresses.every(isPublicAddress));
    if (!isAllowed) throw new MediaRefused(NOT_PUBLIC);
    return { url, addresses, proxy };
  };
}

/** Runs one fetch with its queue slot and timeout, and turns failures into messages for the client. */
type RunFetch = <T>(
  options: Pick<FetchOptions, 'signal' | 'owner'>,
  work: (signal: AbortSignal) => Promise<T>,
) => Promise<T>;

function createFetchRunner(msMax: number = limits.media_ms_max): RunFetch {
  const queue = createFetchQueue();
  return async ({ signal, owner }, work) => {
    const timeout = AbortSignal.timeout(msMax);
    const either = AbortSignal.any([signal, timeout]);
    try {
      await queue.acquire(owner, either);
      try {
        return await work(either);
      } finally {
        queue.release(owner);
      }
    } catch (error) {
      if (error instanceof MediaRefused || error instanceof GatewayError) throw error;
      if (signal.aborted) throw signal.reason;
      if (timeout.aborted) throw new MediaRefused(`it took longer than ${msMax / 1000} seconds`);
      throw new MediaRefused('its server could not be reached, or broke off', { cause: error });
    }
  };
}

/** Options of fetchers. `ms_max` bounds a whole fetch. */
export interface FetcherOptions {
  resolve?: Resolve | undefined;
  proxies?: ProxyRules | undefined;
  ms_max?: number | undefined;
}

/** Follows redirects to an answer, each address checked like the first. */
async function follow(
  start: string,
  { find: resolveTarget, allows }: { find: ResolveTarget; allows?: (url: URL) => boolean },
  bounds: Bounds,
): Promise<{ url: URL; answer: FetchedBody }> {
  let url = parseUrl(start);
  for (let hops = 0; ; hops += 1) {
    if (allows?.(url) === false) throw new MediaRefused('its domain is not allowed');
    const answer = await requestOnce(await resolveTarget(url, bounds.signal), bounds);
    if ('bytes' in answer) return { url, answer };
    if (hops === limits.media_redirects_max) {
      throw new MediaRefused(`it redirects more than ${limits.media_redirects_max} times`);
    }
    url = parseUrl(answer.location, url);
  }
}

/**
 * Fetches the media that requests point at, from the public internet only: every address of every hop is checked after its name was
 * resolved, and the connection is made to the checked address. A proxy is sent that address, never the name.
 */
export function createMediaFetcher(rules: MediaRules, options: FetcherOptions = {}): MediaFetcher {
  const resolveTarget = createTargetResolver(rules, options);
  const run = createFetchRunner(options.ms_max);
  return {
    fetch: (need, { signal, bytes_max: bytesMax, owner, room }) =>
      run({ signal, owner }, async (either) => {
        const bound = Math.min(bytesMax, limits.media_bytes_max);
        const { answer } = await follow(need.url, { find: resolveTarget }, { signal: either, bytes_max: bound, room });
        return describe(answer, need.kind);
      }),
  };
}

/** Fetches pages for models, with the same checks: of any type, and compressed or not. */
export function createPageFetcher(rules: MediaRules, options: FetcherOptions = {}): PageFetcher {
  const resolveTarget = createTargetResolver(rules, options);
  const run = createFetchRunner(options.ms_max);
  return {
    fetch: (url, { signal, bytes_max: bytesMax, owner, room, allows }) =>
      run({ signal, owner }, async (either) => {
        const bounds = { signal: either, bytes_max: bytesMax, room, takes_compressed: true };
        const { url: at, answer } = await follow(url, { find: resolveTarget, allows }, bounds);
        const bytes = await decompressed(answer, bytesMax);
        return { url: at.href, content_type: answer.declared, bytes };
      }),
  };
}

const decompressors = new Map([
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  ['br', promisify(brotliDecompress)],
  ['deflate', promisify(inflate)],
]);

async function decompressed({ bytes, encoding }: FetchedBody, bytesMax: number): Promise<Buffer> {
  if (encoding === undefined) return bytes;
  const decompress = decompressors.get(encoding);
  if (decompress === undefined) throw new MediaRefused('its server uses an unknown compression');
  try {
    return await decompress(bytes, { maxOutputLength: bytesMax });
  } catch (cause) {
    const isLarge = (cause as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    throw new MediaRefused(isLarge ? `it is larger than ${bytesMax} bytes` : 'its server sent invalid data', {
      cause,
    });
  }
}

function parseUrl(text: string, base?: URL): URL {
  const url = text.length > limits.media_url_chars_max ? null : URL.parse(text, base?.href);
  if (url === null) throw new MediaRefused('it is not a URL');
  return url;
}

function checkUrl({ protocol, username, password }: URL): void {
  if (protocol !== 'http:' && protocol !== 'https:') throw new MediaRefused('it must be an http(s) URL');
  if (username !== '' || password !== '') throw new MediaRefused('it must not hold a user name or password');
}

/** Rejects when the signal aborts; the work itself continues. */
function withSignal<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason as Error);
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}

/** A lookup that returns the checked addresses in place of the name service. */
function pinned(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, options, callback) => {
    if (options.all) callback(null, all);
    else callback(null, all[0]!.address, all[0]!.family);
  };
}

interface FetchedBody {
  bytes: Buffer;
  declared: string | undefined;
  /** The content encoding; undefined if not compressed. */
  encoding: string | undefined;
}
type FetchResult = { location: string } | FetchedBody;

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

type Bounds = Omit<FetchOptions, 'owner'> & { takes_compressed?: boolean };

/** The connection to a checked address, and the origin to request there. */
function connectionTo({ url, addresses, proxy }: Target): { connection: Dispatcher; origin: string } {
  const options = {
    connect: { timeout: MEDIA_CONNECT_MS_MAX },
    headersTimeout: limits.media_ms_max,
    bodyTimeout: limits.media_ms_max,
    maxHeaderSize: limits.header_bytes_max,
  };
  if (proxy === undefined) {
    const connect = { ...options.connect, lookup: pinned(addresses) };
    return { connection: new Client(url.origin, { ...options, connect }), origin: url.origin };
  }
  const [address = ''] = addresses;
  const port = url.port === '' ? '' : `:${url.port}`;
  // A proxy that received the name would resolve it itself, perhaps to another address than the checked one.
  const origin = `${url.protocol}//${isIP(address) === 6 ? `[${address}]` : address}${port}`;
  const isNamed = isIP(url.hostname.replace(/^\[|\]$/g, '')) === 0;
  const connection = throughProxy(proxy, options, {
    proxyTunnel: true,
    ...(isNamed ? { requestTls: { servername: url.hostname } } : {}),
  });
  return { connection, origin };
}

async function requestOnce(target: Target, bounds: Bounds): Promise<FetchResult> {
  const { url } = target;
  const { connection, origin } = connectionTo(target);
  try {
    const answer = await connection.request({
      origin,
      method: 'GET',
      path: `${url.pathname}${url.search}`,
      headers: { host: url.host, accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'model-gateway' },
      ...boundInterim(bounds.signal, () => new MediaRefused('its server sent too many interim answers')),
      ...boundedReads,
    });
    return await readAnswer(answer, bounds);
  } finally {
    // Unread bytes are not waited for.
    await connection.destroy();
  }
}

async function readAnswer(
  { statusCode, headers, body }: Dispatcher.ResponseData,
  bounds: Bounds,
): Promise<FetchResult> {
  // Errors of a body that is not read to its end are of no interest.
  body.on('error', () => {});
  const { location } = headers;
  if (REDIRECTS.has(statusCode) && typeof location === 'string') return { location };
  if (statusCode !== 200) throw new MediaRefused(`its server answered with status ${statusCode}`);
  const contentEncoding = headers['content-encoding'];
  const encoding =
    contentEncoding === undefined || contentEncoding === 'identity' ? undefined : String(contentEncoding).toLowerCase();
  if (encoding !== undefined && !bounds.takes_compressed) throw new MediaRefused('its server sent it compressed');
  const type = headers['content-type'];
  return {
    bytes: await readBytes(body, Number(headers['content-length']), bounds),
    declared: typeof type === 'string' ? type : undefined,
    encoding,
  };
}

/** Reads into one buffer if the length is known, so that no second copy is made. */
async function readBytes(
  body: AsyncIterable<Buffer>,
  contentLength: number,
  { bytes_max: bytesMax, room }: Bounds,
): Promise<Buffer> {
  const tooLarge = () => new MediaRefused(`it is larger than ${bytesMax} bytes`);
  if (contentLength > bytesMax) throw tooLarge();
  if (contentLength > 0) await room?.take(contentLength * MEDIA_COPIES);
  const whole = contentLength > 0 ? Buffer.allocUnsafeSlow(contentLength) : undefined;
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of yieldingReads(body)) {
    if (length + part.length > (whole?.length ?? bytesMax)) throw tooLarge();
    if (whole) part.copy(whole, length);
    else {
      await room?.take(part.length * MEDIA_COPIES);
      parts.push(part);
    }
    length += part.length;
  }
  return whole ? whole.subarray(0, length) : Buffer.concat(parts, length);
}

function describe({ bytes, declared }: Pick<FetchedBody, 'bytes' | 'declared'>, kind: MediaNeed['kind']) {
  if (bytes.length === 0) throw new MediaRefused('it is empty');
  const mimeType = mediaTypeOf(bytes, declared);
  if (mimeType === undefined) throw new MediaRefused(`its type is not known (${kind} expected)`);
  if (!fitsKind(mimeType, kind)) throw new MediaRefused(`it is ${mimeType}, not ${kind}`);
  return { mime_type: mimeType, base64: bytes.toString('base64'), bytes: bytes.length };
}
