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
import { inTurns, slowly } from './pieces.ts';
import { type ProxyRules, proxyFor, throughProxy } from './proxy.ts';
import type { Room } from './room.ts';
import { Client } from './undici.ts';

/** What the operator allows beside the public internet at the usual ports. */
export interface MediaRules {
  ports: readonly number[];
  /** Lower case: `host`, or `host:port` for one port alone. */
  private_hosts: readonly string[];
}

/** How the operator's list allows an address though it is private: at its port alone, at the usual ones, or not. */
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
  /** By the bytes themselves. */
  mime_type: string;
  base64: string;
  bytes: number;
}

/** Why something is not fetched, as the client may be told: it says nothing of addresses. */
export class MediaRefused extends Error {
  override readonly name = 'MediaRefused';
}

export interface MediaFetcher {
  /** Throws `MediaRefused`, what the room throws, or the reason of the signal. */
  fetch(need: MediaNeed, options: FetchOptions): Promise<FetchedMedia>;
}

/** A page as its server gave it. */
export interface FetchedPage {
  /** After all redirects. */
  url: string;
  /** As its server says; undefined: it says nothing. */
  content_type: string | undefined;
  bytes: Buffer;
}

export interface PageFetcher {
  /**
   * `allows` is asked of each address on the way, before it is. Throws `MediaRefused`, what the room throws, or the reason of the
   * signal.
   */
  fetch(url: string, options: FetchOptions & { allows(url: URL): boolean }): Promise<FetchedPage>;
}

export interface FetchOptions {
  signal: AbortSignal;
  bytes_max: number;
  /** Whose request it is for: nobody gets all turns. */
  owner: string;
  /** Where what is read is counted. Absent: nowhere. */
  room?: Room | undefined;
}

/** Every address of a host; throws, or finds none, where there is no such host. */
export type Resolve = (host: string, isPrivate: boolean) => Promise<readonly string[]>;

/**
 * The name service alone for hosts that anybody may name: no search domain, no file of this machine, and no thread of the
 * pool that the journal writes with. Hosts that the operator named may be known to this machine only.
 */
function systemResolve(): Resolve {
  const resolver = new Resolver({ timeout: limits.media_connect_ms_max / 2, tries: 2 });
  return async (host, isPrivate) => {
    if (isPrivate) {
      const { lookup } = await import('node:dns/promises');
      return (await lookup(host, { all: true })).map(({ address }) => address);
    }
    const found = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    return found.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  };
}

/** Where one request goes: an address that was checked, and nothing else, whatever the name says the next time. */
interface Target {
  url: URL;
  addresses: readonly string[];
  /** The proxy that leads there; undefined: none is between. */
  proxy: string | undefined;
}

const NOT_PUBLIC = 'its host does not resolve to a public address';

interface Waiting {
  owner: string;
  start(): void;
}

/** What each owner has, in numbers above zero. */
class Counts {
  readonly #counts = new Map<string, number>();

  of(owner: string): number {
    return this.#counts.get(owner) ?? 0;
  }

  add(owner: string, more: 1 | -1): void {
    const count = this.of(owner) + more;
    if (count === 0) this.#counts.delete(owner);
    else this.#counts.set(owner, count);
  }
}

/** Takes turns: some at once, fewer of each owner, and who has the fewest comes next. */
function createTurns() {
  let running = 0;
  const theirs = new Counts();
  const waiting = new Set<Waiting>();
  const queued = new Counts();

  /** The next who may start: of those with the fewest turns, who waits longest. */
  function next(): Waiting | undefined {
    let found: Waiting | undefined;
    for (const one of waiting) {
      const turns = theirs.of(one.owner);
      if (turns < limits.media_fetches_per_owner_max && (!found || turns < theirs.of(found.owner))) found = one;
    }
    return found;
  }

  function leaveQueue(one: Waiting): void {
    waiting.delete(one);
    queued.add(one.owner, -1);
  }

  function startNext(): void {
    while (running < limits.media_fetches_max) {
      const one = next();
      if (one === undefined) return;
      leaveQueue(one);
      running += 1;
      theirs.add(one.owner, 1);
      one.start();
    }
  }

  return {
    async take(owner: string, signal: AbortSignal): Promise<void> {
      // An end that has come already is not told again to who waits.
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
        const one: Waiting = {
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
    give(owner: string): void {
      running -= 1;
      theirs.add(owner, -1);
      startNext();
    },
  };
}

/** Finds out where an address leads, and refuses what is not public. */
type FindTarget = (url: URL, signal: AbortSignal) => Promise<Target>;

function createTargets(rules: MediaRules, { resolve = systemResolve(), proxies }: FetcherOptions): FindTarget {
  return async (url, signal) => {
    checkUrl(url);
    const { hostname } = url;
    const host = hostname.replace(/\.$/, '');
    const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
    const listed = listedAs(rules, url);
    const isPrivate = listed !== undefined;
    // What the operator listed stands in the operator's own network.
    const proxy = isPrivate ? undefined : proxyFor(proxies, url);
    if (listed !== 'port' && !rules.ports.includes(port)) throw new MediaRefused(`its port ${port} is not allowed`);
    const literal = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
    if (isIP(literal) !== 0) {
      if (!isPrivate && !isPublicAddress(literal)) throw new MediaRefused(NOT_PUBLIC);
      return { url, addresses: [literal], proxy };
    }
    const found = await withSignal(
      resolve(host, isPrivate).catch(() => []),
      signal,
    );
    // A name with a public and a private address is meant to pass a check of the first.
    const may = found.length > 0 && (isPrivate || found.every(isPublicAddress));
    if (!may) throw new MediaRefused(NOT_PUBLIC);
    return { url, addresses: found, proxy };
  };
}

/** One fetch with its turn, its time, and failures in words for the client. */
type Run = <T>(
  options: Pick<FetchOptions, 'signal' | 'owner'>,
  work: (signal: AbortSignal) => Promise<T>,
) => Promise<T>;

function createRuns(msMax: number = limits.media_ms_max): Run {
  const turns = createTurns();
  return async ({ signal, owner }, work) => {
    const late = AbortSignal.timeout(msMax);
    const either = AbortSignal.any([signal, late]);
    try {
      await turns.take(owner, either);
      try {
        return await work(either);
      } finally {
        turns.give(owner);
      }
    } catch (error) {
      if (error instanceof MediaRefused || error instanceof GatewayError) throw error;
      if (signal.aborted) throw signal.reason;
      if (late.aborted) throw new MediaRefused(`it took longer than ${msMax / 1000} seconds`);
      throw new MediaRefused('its server could not be reached, or broke off', { cause: error });
    }
  };
}

export interface FetcherOptions {
  resolve?: Resolve | undefined;
  proxies?: ProxyRules | undefined;
  ms_max?: number | undefined;
}

/** Follows an address to what it leads to, each hop checked as the first. */
async function follow(
  start: string,
  { find, allows }: { find: FindTarget; allows?: (url: URL) => boolean },
  bounds: Bounds,
): Promise<{ url: URL; answer: Answered }> {
  let url = parseUrl(start);
  for (let hops = 0; ; hops += 1) {
    if (allows?.(url) === false) throw new MediaRefused('its domain is not allowed');
    const answer = await visit(await find(url, bounds.signal), bounds);
    if ('bytes' in answer) return { url, answer };
    if (hops === limits.media_redirects_max) {
      throw new MediaRefused(`it redirects more than ${limits.media_redirects_max} times`);
    }
    url = parseUrl(answer.location, url);
  }
}

/**
 * Fetches what requests point at, from nowhere but the public internet: every address of every hop is checked after its name was
 * resolved, and the connection goes to the address that was checked. A proxy is asked for that address, never for the name.
 */
export function createMediaFetcher(rules: MediaRules, options: FetcherOptions = {}): MediaFetcher {
  const find = createTargets(rules, options);
  const run = createRuns(options.ms_max);
  return {
    fetch: (need, { signal, bytes_max: bytesMax, owner, room }) =>
      run({ signal, owner }, async (either) => {
        const most = Math.min(bytesMax, limits.media_bytes_max);
        const { answer } = await follow(need.url, { find }, { signal: either, bytes_max: most, room });
        return describe(answer, need.kind);
      }),
  };
}

/** The same for pages that models want to read: whatever their type is, and compressed ones as well. */
export function createPageFetcher(rules: MediaRules, options: FetcherOptions = {}): PageFetcher {
  const find = createTargets(rules, options);
  const run = createRuns(options.ms_max);
  return {
    fetch: (url, { signal, bytes_max: bytesMax, owner, room, allows }) =>
      run({ signal, owner }, async (either) => {
        const bounds = { signal: either, bytes_max: bytesMax, room, takes_compressed: true };
        const { url: at, answer } = await follow(url, { find, allows }, bounds);
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

async function decompressed({ bytes, encoding }: Answered, bytesMax: number): Promise<Buffer> {
  if (encoding === undefined) return bytes;
  const decompress = decompressors.get(encoding);
  if (decompress === undefined) throw new MediaRefused('its server sent it with an unknown compression');
  try {
    return await decompress(bytes, { maxOutputLength: bytesMax });
  } catch (cause) {
    const isLarge = (cause as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    throw new MediaRefused(isLarge ? `it is larger than ${bytesMax} bytes` : 'what its server sent is broken', {
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

/** Waits no longer than the signal allows; what is waited for goes on by itself. */
function withSignal<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason as Error);
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}

/** Answers with the addresses that were checked, in place of the name service. */
function pinned(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, options, callback) => {
    if (options.all) callback(null, all);
    else callback(null, all[0]!.address, all[0]!.family);
  };
}

interface Answered {
  bytes: Buffer;
  declared: string | undefined;
  /** How it is compressed; undefined: not at all. */
  encoding: string | undefined;
}
type Visited = { location: string } | Answered;

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

type Bounds = Omit<FetchOptions, 'owner'> & { takes_compressed?: boolean };

/** The way to an address that was checked, and the origin under which it is asked. */
function wayTo({ url, addresses, proxy }: Target): { way: Dispatcher; origin: string } {
  const options = {
    connect: { timeout: limits.media_connect_ms_max },
    headersTimeout: limits.media_ms_max,
    bodyTimeout: limits.media_ms_max,
    maxHeaderSize: limits.header_bytes_max,
  };
  if (proxy === undefined) {
    const connect = { ...options.connect, lookup: pinned(addresses) };
    return { way: new Client(url.origin, { ...options, connect }), origin: url.origin };
  }
  const [address = ''] = addresses;
  const port = url.port === '' ? '' : `:${url.port}`;
  // A proxy that were asked for the name would look it up itself, and may find another address than the one that was checked.
  const origin = `${url.protocol}//${isIP(address) === 6 ? `[${address}]` : address}${port}`;
  const isNamed = isIP(url.hostname.replace(/^\[|\]$/g, '')) === 0;
  const way = throughProxy(proxy, options, {
    proxyTunnel: true,
    ...(isNamed ? { requestTls: { servername: url.hostname } } : {}),
  });
  return { way, origin };
}

async function visit(target: Target, bounds: Bounds): Promise<Visited> {
  const { url } = target;
  const { way, origin } = wayTo(target);
  try {
    const answer = await way.request({
      origin,
      method: 'GET',
      path: `${url.pathname}${url.search}`,
      headers: { host: url.host, accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'model-gateway' },
      ...boundInterim(bounds.signal, () => new MediaRefused('its server sent interim answers in place of one')),
      ...slowly,
    });
    return await readAnswer(answer, bounds);
  } finally {
    // What was not read is not waited for.
    await way.destroy();
  }
}

async function readAnswer({ statusCode, headers, body }: Dispatcher.ResponseData, bounds: Bounds): Promise<Visited> {
  // Whatever becomes of a body that is given up, nobody waits for it.
  body.on('error', () => {});
  const { location } = headers;
  if (REDIRECTS.has(statusCode) && typeof location === 'string') return { location };
  if (statusCode !== 200) throw new MediaRefused(`its server answered with status ${statusCode}`);
  const told = headers['content-encoding'];
  const encoding = told === undefined || told === 'identity' ? undefined : String(told).toLowerCase();
  if (encoding !== undefined && !bounds.takes_compressed) throw new MediaRefused('its server sent it compressed');
  const type = headers['content-type'];
  return {
    bytes: await readBytes(body, Number(headers['content-length']), bounds),
    declared: typeof type === 'string' ? type : undefined,
    encoding,
  };
}

/** Reads into one piece of memory where the length is told, so that no second copy is made. */
async function readBytes(
  body: AsyncIterable<Buffer>,
  told: number,
  { bytes_max: bytesMax, room }: Bounds,
): Promise<Buffer> {
  const tooLarge = () => new MediaRefused(`it is larger than ${bytesMax} bytes`);
  if (told > bytesMax) throw tooLarge();
  if (told > 0) await room?.take(told * limits.media_copies);
  const whole = told > 0 ? Buffer.allocUnsafeSlow(told) : undefined;
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of inTurns(body)) {
    if (length + part.length > (whole?.length ?? bytesMax)) throw tooLarge();
    if (whole) part.copy(whole, length);
    else {
      await room?.take(part.length * limits.media_copies);
      parts.push(part);
    }
    length += part.length;
  }
  return whole ? whole.subarray(0, length) : Buffer.concat(parts, length);
}

function describe({ bytes, declared }: Pick<Answered, 'bytes' | 'declared'>, kind: MediaNeed['kind']) {
  if (bytes.length === 0) throw new MediaRefused('it is empty');
  const mimeType = mediaTypeOf(bytes, declared);
  if (mimeType === undefined) throw new MediaRefused(`its type is not known (${kind} expected)`);
  if (!fitsKind(mimeType, kind)) throw new MediaRefused(`it is ${mimeType}, not ${kind}`);
  return { mime_type: mimeType, base64: bytes.toString('base64'), bytes: bytes.length };
}
