import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import type { MediaNeed } from '../dialect.ts';
import { createMediaFetcher, MEDIA_COPIES, type MediaRules, type Resolve } from './fetch-media.ts';

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

let server: Server;
let port: number;
let visited: string[];
let answer: (request: IncomingMessage, response: ServerResponse) => void;

beforeEach(async () => {
  visited = [];
  answer = (_request, response) => response.end(png);
  server = createServer((request, response) => {
    visited.push(`${request.headers.host}${request.url}`);
    answer(request, response);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  ({ port } = server.address() as AddressInfo);
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => {
    server.close(resolve);
  });
});

const noAddresses: Resolve = async () => [];

/** All tests reach only the server above, by the name `files.test`. */
function fetcher(options: { rules?: Partial<MediaRules>; resolve?: Resolve; ms_max?: number } = {}) {
  const rules = { ports: [80, 443, port], private_hosts: ['files.test'], ...options.rules };
  const lookup = options.resolve ?? noAddresses;
  const resolve: Resolve = async (host, isPrivate) => (host === 'files.test' ? ['127.0.0.1'] : lookup(host, isPrivate));
  return createMediaFetcher(rules, { ...options, resolve });
}

function get(url: string, options: Parameters<typeof fetcher>[0] & { kind?: MediaNeed['kind'] } = {}) {
  const signal = new AbortController().signal;
  const need: MediaNeed = { url, kind: options.kind ?? 'image' };
  return fetcher(options).fetch(need, { signal, bytes_max: limits.media_bytes_max, owner: 'one' });
}

const refusal = (pattern: RegExp) =>
  expect.objectContaining({ name: 'MediaRefused', message: expect.stringMatching(pattern) });
const NOT_PUBLIC = refusal(/^its host does not resolve to a public address$/);

/** Every way to write an address of this machine that a client might try. */
// biome-ignore format: a list reads better in rows
const OWN_HOSTS = [
  '127.0.0.1', '127.1', '127.0.1', '2130706433', '0x7f000001', '0x7f.0.0.1', '0177.0.0.1', '017700000001', '127.0.0.1.',
  '0.0.0.0', '0', '[::]', '[::1]', '[0:0:0:0:0:0:0:1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::127.0.0.1]',
  '[64:ff9b::7f00:1]', '[64:ff9b:1::7f00:1]', '[2002:7f00:1::]', '[::ffff:0:127.0.0.1]', '１２７.０.０.１', '①②⑦.0.0.1', '127。0。0。1',
  '169.254.169.254', '[fe80::1]', '[fd00:ec2::254]', '10.0.0.1', '100.100.100.200', '224.0.0.1', '168.63.129.16',
];

test('a client that has already disconnected does not wait for a turn', async () => {
  answer = () => {};
  const one = fetcher();
  const need: MediaNeed = { url: `http://files.test:${port}/a.png`, kind: 'image' };
  const ending = new AbortController();
  const options = { signal: ending.signal, bytes_max: limits.media_bytes_max, owner: 'one' };
  const held = Array.from({ length: limits.media_fetches_max }, () => one.fetch(need, options).catch(() => undefined));
  const aborted = AbortSignal.abort(new Error('gone'));
  await expect(one.fetch(need, { ...options, signal: aborted })).rejects.toThrow('gone');
  ending.abort();
  await Promise.all(held);
});

test('one key cannot occupy all fetches, and the owner with the fewest is next', async () => {
  const open: ServerResponse[] = [];
  answer = (_request, response) => void open.push(response);
  const one = fetcher();
  const signal = new AbortController().signal;
  const ask = (owner: string, nth: number) =>
    one
      .fetch(
        { url: `http://files.test:${port}/${owner}-${nth}`, kind: 'image' },
        { signal, bytes_max: limits.media_bytes_max, owner },
      )
      .then(() => owner);
  const path = (at: number) => visited[at]?.split('/')[1];
  const greedy = Array.from({ length: 20 }, (_, nth) => ask('greedy', nth));
  await expect.poll(() => open.length).toBe(limits.media_fetches_per_owner_max);
  const modest = ask('modest', 0);
  await expect.poll(() => open.length).toBe(limits.media_fetches_per_owner_max + 1);
  expect(path(limits.media_fetches_per_owner_max)).toBe('modest-0');
  const others = Array.from({ length: 7 }, (_, nth) => ask(`other-${nth}`, 0));
  await expect.poll(() => open.length).toBe(limits.media_fetches_max);
  const late = ask('late', 0);
  // A fetch of the first key ends: it waits longest, but has more fetches than an owner without any.
  open[0]?.end(png);
  await expect.poll(() => visited.length).toBe(limits.media_fetches_max + 1);
  expect(path(limits.media_fetches_max)).toBe('late-0');
  answer = (_request, response) => response.end(png);
  for (const response of open.slice(1)) response.end(png);
  expect(await Promise.all([...greedy, modest, ...others, late])).toHaveLength(29);
});

test('fetches of one key beyond its waiting bound are refused, and another key can still wait', async () => {
  answer = () => {};
  const one = fetcher();
  const ending = new AbortController();
  const need: MediaNeed = { url: `http://files.test:${port}/a.png`, kind: 'image' };
  const ask = (owner: string) =>
    one.fetch(need, { signal: ending.signal, bytes_max: limits.media_bytes_max, owner }).catch((error: Error) => error);
  const most = limits.media_fetches_per_owner_max + limits.media_fetches_waiting_per_owner_max;
  const held = Array.from({ length: most }, () => ask('greedy'));
  expect(await ask('greedy')).toEqual(refusal(/too many files are being fetched/));
  const other = ask('modest');
  await expect.poll(() => visited.length).toBe(limits.media_fetches_per_owner_max + 1);
  ending.abort(new Error('over'));
  expect(await other).toMatchObject({ message: 'over' });
  await Promise.all(held);
});

test('a body without available memory is not read', async () => {
  const large = Buffer.alloc(4 * 1024 * 1024, png);
  answer = (_request, response) => void response.writeHead(200, { 'content-length': large.length }).write(png);
  const signal = new AbortController().signal;
  const need: MediaNeed = { url: `http://files.test:${port}/a.png`, kind: 'image' };
  const taken: number[] = [];
  const room = {
    take(bytes: number) {
      taken.push(bytes);
      throw new GatewayError(503, 'no memory');
    },
  };
  const fetching = fetcher().fetch(need, { signal, bytes_max: limits.media_bytes_max, owner: 'one', room });
  await expect(fetching).rejects.toMatchObject({ status: 503 });
  expect(taken).toEqual([large.length * MEDIA_COPIES]);
});

describe('addresses', () => {
  test.each(OWN_HOSTS)('an address of this machine is refused: %s', async (host) => {
    await expect(get(`http://${host}:${port}/a.png`)).rejects.toEqual(NOT_PUBLIC);
    expect(visited).toEqual([]);
  });

  test.each(OWN_HOSTS.filter((host) => /^[ -~]+$/.test(host)))(
    'a redirect to an address of this machine is refused: %s',
    async (host) => {
      answer = (_request, response) => response.writeHead(302, { location: `http://${host}:${port}/secret` }).end();
      await expect(get(`http://files.test:${port}/a.png`)).rejects.toEqual(NOT_PUBLIC);
      expect(visited).toEqual([`files.test:${port}/a.png`]);
    },
  );

  test.each([
    ['a private address', ['10.1.2.3']],
    ['loopback', ['127.0.0.1']],
    ['mapped loopback', ['::ffff:127.0.0.1']],
    ['a public and a private address', ['93.184.215.14', '127.0.0.1']],
    ['nothing', []],
  ])('a name that resolves to %s is refused with the same message', async (_what, addresses) => {
    const resolve: Resolve = async () => addresses;
    await expect(get(`http://evil.test:${port}/a.png`, { resolve })).rejects.toEqual(NOT_PUBLIC);
    expect(visited).toEqual([]);
  });

  test('a name that cannot be resolved is refused with the same message as a private one', async () => {
    const resolve: Resolve = async () => {
      throw new Error('queryA ESERVFAIL evil.test');
    };
    await expect(get(`http://evil.test:${port}/a.png`, { resolve })).rejects.toEqual(NOT_PUBLIC);
  });

  test('the connection uses the address that was checked, also if the name then resolves to another', async () => {
    let requestCount = 0;
    const resolve: Resolve = async () => {
      requestCount += 1;
      return requestCount === 1 ? ['127.0.0.1'] : ['127.0.0.2'];
    };
    const rules = { private_hosts: ['moving.test'] };
    await expect(get(`http://moving.test:${port}/a.png`, { rules, resolve })).resolves.toMatchObject({
      bytes: png.length,
    });
    expect(requestCount).toBe(1);
    expect(visited).toEqual([`moving.test:${port}/a.png`]);
  });

  test('each hop is checked: a name that resolves to this machine is refused after a redirect', async () => {
    const answers = [['127.0.0.1'], ['127.0.0.1']];
    const resolve: Resolve = async (_host, isPrivate) => (isPrivate ? answers[0]! : answers[1]!);
    answer = (_request, response) => response.writeHead(307, { location: `http://rebind.test:${port}/` }).end();
    await expect(get(`http://files.test:${port}/a.png`, { resolve })).rejects.toEqual(NOT_PUBLIC);
    expect(visited).toHaveLength(1);
  });

  test('the message of a refusal contains no address', async () => {
    const outcome = await get(`http://evil.test:${port}/`, { resolve: async () => ['10.20.30.40'] }).catch(String);
    expect(outcome).not.toMatch(/10\.20|127/);
  });
});

describe('URLs', () => {
  test.each([
    ['another scheme', 'ftp://files.test/a', /^it must be an http\(s\) URL$/],
    ['a file', 'file:///etc/passwd', /^it must be an http\(s\) URL$/],
    ['a password', 'http://user:secret@files.test/a', /^it must not hold a user name or password$/],
    ['a port that is not allowed', 'http://files.test:22/a', /^its port 22 is not allowed$/],
    ['nonsense', 'http://', /^it is not a URL$/],
    [
      'an address above the length bound',
      `http://files.test/${'a'.repeat(limits.media_url_chars_max)}`,
      /^it is not a URL$/,
    ],
  ])('%s is refused, also in a redirect', async (_what, url, pattern) => {
    await expect(get(url)).rejects.toEqual(refusal(pattern));
    answer = (_request, response) => response.writeHead(301, { location: url }).end();
    // Node's own header parser refuses headers longer than its buffer.
    if (url.length < 8_000) await expect(get(`http://files.test:${port}/`)).rejects.toEqual(refusal(pattern));
  });

  test('a host can be allowed at one port alone', async () => {
    const rules = { ports: [80, 443], private_hosts: [`files.test:${port}`] };
    await expect(get(`http://files.test:${port}/a.png`, { rules })).resolves.toMatchObject({ mime_type: 'image/png' });
    await expect(get('http://files.test:8443/a.png', { rules })).rejects.toEqual(refusal(/port 8443/));
    const literal = { ports: [80], private_hosts: ['127.0.0.1', port === 0 ? '' : `127.0.0.1:${port}`] };
    await expect(get(`http://127.0.0.1:${port}/a.png`, { rules: literal })).resolves.toMatchObject({
      bytes: png.length,
    });
    // The same machine under another name stays refused.
    await expect(get(`http://[::1]:${port}/a.png`, { rules: { ...literal, ports: [port] } })).rejects.toEqual(
      NOT_PUBLIC,
    );
  });

  test('redirects are followed up to a bound, relative ones too', async () => {
    answer = (request, response) => {
      if (request.url === '/last') response.end(png);
      else response.writeHead(303, { location: request.url === '/first' ? 'last' : request.url! }).end();
    };
    await expect(get(`http://files.test:${port}/first`)).resolves.toMatchObject({ mime_type: 'image/png' });
    await expect(get(`http://files.test:${port}/round`)).rejects.toEqual(refusal(/redirects more than/));
    expect(visited.filter((one) => one.endsWith('/round'))).toHaveLength(limits.media_redirects_max + 1);
  });

  test('no credential and no cookie is sent', async () => {
    let headers: IncomingMessage['headers'] = {};
    answer = (request, response) => {
      headers = request.headers;
      response.end(png);
    };
    await get(`http://files.test:${port}/a.png#fragment`);
    expect(Object.keys(headers).sort()).toEqual(['accept', 'accept-encoding', 'connection', 'host', 'user-agent']);
    expect(visited).toEqual([`files.test:${port}/a.png`]);
  });
});

describe('bodies', () => {
  const url = () => `http://files.test:${port}/a`;
  const sends = (body: string | Buffer, headers: Record<string, string> = {}) => {
    answer = (_request, response) => response.writeHead(200, headers).end(body);
  };

  test('the type is detected from the bytes, whatever the server declares', async () => {
    sends(png, { 'content-type': 'text/html' });
    await expect(get(url())).resolves.toEqual({
      mime_type: 'image/png',
      base64: png.toString('base64'),
      bytes: png.length,
    });
    sends('<html>Not an image</html>', { 'content-type': 'image/png' });
    await expect(get(url())).rejects.toEqual(refusal(/^it is text\/plain, not image$/));
    sends('<svg xmlns="http://www.w3.org/2000/svg"/>', { 'content-type': 'image/svg+xml' });
    await expect(get(url())).rejects.toEqual(refusal(/not image$/));
    sends('%PDF-1.7 …', { 'content-type': 'image/jpeg' });
    await expect(get(url(), { kind: 'file' })).resolves.toMatchObject({ mime_type: 'application/pdf' });
    sends('\u0000\u0001\u0002', { 'content-type': 'image/png' });
    await expect(get(url())).rejects.toEqual(refusal(/its type is not known/));
  });

  test('a compressed, empty or unsuccessful response is refused', async () => {
    sends(png, { 'content-encoding': 'gzip' });
    await expect(get(url())).rejects.toEqual(refusal(/compressed/));
    sends('');
    await expect(get(url())).rejects.toEqual(refusal(/empty/));
    answer = (_request, response) => response.writeHead(404).end(png);
    await expect(get(url())).rejects.toEqual(refusal(/status 404/));
    answer = (_request, response) => response.writeHead(206).end(png);
    await expect(get(url())).rejects.toEqual(refusal(/status 206/));
  });

  test('a body over the bound is refused, whether its length is declared or not', async () => {
    const bytesMax = 10_000;
    const ask = () =>
      fetcher().fetch(
        { url: url(), kind: 'image' },
        { signal: new AbortController().signal, bytes_max: bytesMax, owner: 'one' },
      );
    answer = (_request, response) => response.writeHead(200, { 'content-length': '10001' }).write(png);
    await expect(ask()).rejects.toEqual(refusal(/larger than 10000 bytes/));
    let sent = 0;
    answer = (_request, response) => {
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(4_096))) sent += 4_096;
      };
      response.on('drain', more);
      more();
    };
    await expect(ask()).rejects.toEqual(refusal(/larger than 10000 bytes/));
    await expect.poll(() => sent).toBeLessThan(64 * 1024 * 1024);
  });

  test('a server that is slow with its name, head or body is a refusal after the time limit', async () => {
    answer = () => {};
    await expect(get(url(), { ms_max: 100 })).rejects.toEqual(refusal(/took longer than 0.1 seconds/));
    answer = (_request, response) => {
      response.writeHead(200, { 'content-length': '1000' });
      const drip = setInterval(() => response.write('a'), 20);
      response.on('close', () => clearInterval(drip));
    };
    await expect(get(url(), { ms_max: 200 })).rejects.toEqual(refusal(/took longer than 0.2 seconds/));
    const resolve: Resolve = () => new Promise(() => {});
    await expect(get(`http://slow.test:${port}/`, { ms_max: 100, resolve })).rejects.toEqual(refusal(/took longer/));
  });

  test('a server that breaks off in the middle is a refusal', async () => {
    answer = (_request, response) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write(png, () => response.destroy());
    };
    await expect(get(url())).rejects.toEqual(refusal(/could not be reached, or broke off/));
  });

  test('an abort by the client ends the fetch immediately', async () => {
    const left = new Error('left');
    const client = new AbortController();
    const closed = new Promise<void>((resolve) => {
      answer = (_request, response) => {
        response.on('close', resolve);
        response.writeHead(200).write(png);
        client.abort(left);
      };
    });
    const fetching = fetcher().fetch(
      { url: url(), kind: 'image' },
      { signal: client.signal, bytes_max: 1_000_000, owner: 'one' },
    );
    await expect(fetching).rejects.toBe(left);
    await closed;
  });

  test('the number of concurrent fetches is bounded', async () => {
    let running = 0;
    let most = 0;
    answer = (_request, response) => {
      running += 1;
      most = Math.max(most, running);
      setTimeout(() => {
        running -= 1;
        response.end(png);
      }, 20);
    };
    const one = fetcher();
    const signal = new AbortController().signal;
    const fetches = Array.from({ length: 40 }, (_, nth) =>
      one.fetch({ url: url(), kind: 'image' }, { signal, bytes_max: 1e6, owner: `key ${nth % 3}` }),
    );
    expect((await Promise.all(fetches)).every(({ bytes }) => bytes === png.length)).toBe(true);
    expect(most).toBe(limits.media_fetches_max);
  });
});
