/**
 * Bundles the console into `console/dist`: `npm ci` in a clone and `npm pack` call this. Files have the hash of their content in their names and
 * are compressed here, so that a gateway serves them as they are. Without esbuild (`npm ci --omit=dev`) it does nothing and says so.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const home = import.meta.dirname;
const dist = join(home, 'dist');

/** Paths that open the console. Pages are one level deep, so that relative addresses work below any path of a proxy. */
const PAGES = [
  '',
  'logs',
  'sessions',
  'usage',
  'keys',
  'models',
  'playground',
  'workspaces',
  'budgets',
  'guardrails',
  'routing',
  'credentials',
  'audit',
  'ledger',
  'system',
];

const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};

async function loadBundler() {
  try {
    return await import('esbuild');
  } catch {
    return undefined;
  }
}

function writeCompressed(file: string, bytes: Uint8Array): void {
  writeFileSync(file, bytes);
  writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11 };
  writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }));
}

async function build(): Promise<void> {
  const bundler = await loadBundler();
  if (bundler === undefined) {
    process.stdout.write('The console is not built: esbuild, a development dependency, is not installed.\n');
    return;
  }
  const { outputFiles, metafile } = await bundler.build({
    entryPoints: [join(home, 'main.tsx'), join(home, 'style.css'), join(home, 'icon.svg')],
    absWorkingDir: home,
    bundle: true,
    splitting: true,
    format: 'esm',
    target: 'es2022',
    minify: true,
    jsx: 'automatic',
    jsxImportSource: 'preact',
    loader: { '.svg': 'copy' },
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    outdir: join(dist, 'assets'),
    legalComments: 'none',
    metafile: true,
    write: false,
  });
  const made = `${dist}.new`;
  rmSync(made, { recursive: true, force: true });
  mkdirSync(join(made, 'assets'), { recursive: true });
  const files: Record<string, string> = {};
  for (const { path, contents } of outputFiles) {
    const name = basename(path);
    files[name] = TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream';
    writeCompressed(join(made, 'assets', name), contents);
  }
  const outputOf = (source: string) => {
    const found = Object.entries(metafile.outputs).find(
      ([, { entryPoint, inputs }]) => entryPoint === source || (Object.keys(inputs).join() === source && !entryPoint),
    );
    if (found === undefined) throw new Error(`esbuild wrote nothing for ${source}`);
    return `assets/${basename(found[0])}`;
  };
  const html = readFileSync(join(home, 'index.html'), 'utf8').replace(/\{\{(.*?)\}\}/g, (_, source: string) =>
    outputOf(source),
  );
  writeCompressed(join(made, 'index.html'), Buffer.from(html));
  const manifest = `${JSON.stringify({ pages: PAGES, files }, null, 1)}\n`;
  writeFileSync(join(made, 'manifest.json'), manifest);
  // Names have the hash of the content: a gateway that serves the same bundle is not disturbed.
  const former = join(dist, 'manifest.json');
  if (existsSync(former) && readFileSync(former, 'utf8') === manifest) {
    rmSync(made, { recursive: true });
    return;
  }
  rmSync(dist, { recursive: true, force: true });
  renameSync(made, dist);
}

await build();
