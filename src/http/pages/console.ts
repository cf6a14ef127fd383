import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { GatewayError } from '../../errors.ts';
import type { Server } from '../server.ts';
import { frontPage } from './front.ts';

/** Where `console/build.ts` writes the bundle, in a clone and in the package. */
const BUNDLE = join(import.meta.dirname, '../../../console/dist');

/** What the build wrote: the paths of pages, and the type of each file by its name. */
interface Manifest {
  pages: string[];
  files: Record<string, string>;
}

/** Scripts, styles and requests come from this gateway alone; nothing is inline, and no text becomes markup. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

const HEADERS = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  vary: 'accept-encoding',
};

/** The bundle's list of files; undefined if the console is not built. */
function readManifest(bundle: string): Manifest | undefined {
  try {
    return JSON.parse(readFileSync(join(bundle, 'manifest.json'), 'utf8')) as Manifest;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** The encodings in which the build wrote each file, the smallest first, with the end of their names. */
const ENCODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const;

function encodingFor(request: FastifyRequest): (typeof ENCODINGS)[number] | readonly [undefined, ''] {
  const accepted = String(request.headers['accept-encoding'] ?? '')
    .split(',')
    .map((one) => one.trim().toLowerCase())
    .filter((one) => !/;\s*q=0(?:\.0*)?$/.test(one))
    .map((one) => one.split(';', 1)[0]?.trim());
  return ENCODINGS.find(([name]) => accepted.includes(name)) ?? [undefined, ''];
}

/** Serves the console: its pages at `/` and the files that they load, each read once, at its first request. */
export function serveConsole(server: Server, { is_on, bundle = BUNDLE }: { is_on: boolean; bundle?: string }): void {
  const manifest = is_on ? readManifest(bundle) : undefined;
  if (manifest === undefined) {
    const page = frontPage(is_on);
    server.get('/', { config: { access: 'open' } }, (_request, reply) =>
      reply
        .header('content-type', 'text/html; charset=utf-8')
        .header(
          'content-security-policy',
          "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
        )
        .send(page),
    );
    return;
  }
  const files = new Map<string, Buffer>();
  const read = (name: string): Buffer => {
    let bytes = files.get(name);
    if (bytes === undefined) {
      bytes = readFileSync(join(bundle, name));
      files.set(name, bytes);
    }
    return bytes;
  };
  const sendFile = (request: FastifyRequest, reply: FastifyReply, name: string, headers: Record<string, string>) => {
    const [encoding, suffix] = encodingFor(request);
    // Before any header: an error must not be stored for long, nor as if it was compressed.
    const bytes = read(`${name}${suffix}`);
    if (encoding !== undefined) reply.header('content-encoding', encoding);
    return reply.headers(HEADERS).headers(headers).send(bytes);
  };

  let tag: string | undefined;
  for (const path of manifest.pages) {
    server.get(`/${path}`, { config: { access: 'open' } }, (request, reply) => {
      tag ??= `W/"${createHash('sha256').update(read('index.html')).digest('base64url').slice(0, 22)}"`;
      reply.headers({ 'cache-control': 'no-cache', etag: tag, 'content-security-policy': POLICY });
      if (request.headers['if-none-match'] === tag) return reply.code(304).send();
      return sendFile(request, reply, 'index.html', { 'content-type': 'text/html; charset=utf-8' });
    });
  }
  server.get<{ Params: { file: string } }>('/assets/:file', { config: { access: 'open' } }, (request, reply) => {
    const { file } = request.params;
    const type = Object.hasOwn(manifest.files, file) ? manifest.files[file] : undefined;
    if (type === undefined) {
      // Another node of the gateway may have the file.
      throw new GatewayError(404, 'No such file; reload the page', { headers: { 'cache-control': 'no-store' } });
    }
    // The name has the hash of the content.
    const kept = 'public, max-age=31536000, immutable';
    return sendFile(request, reply, `assets/${file}`, { 'content-type': type, 'cache-control': kept });
  });
}
