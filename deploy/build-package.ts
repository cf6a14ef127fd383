/**
 * Makes `dist/`, what the package has in place of `src/` and `sandbox/`: Node runs no TypeScript below `node_modules`. npm calls this before it
 * packs (`prepack`).
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(import.meta.dirname, '..');
const dist = join(root, 'dist');

/**
 * Packages of which the gateway uses a small part: that part goes into the package, and they are no dependencies of it. Installed
 * whole they take 30 and 13 MB. The lines load what is used, as the sources named beside them do.
 */
const VENDORED = {
  // src/inference/money/tokenizer-worker.js
  'gpt-tokenizer': `
    await import('gpt-tokenizer/encoding/cl100k_base');
    await import('gpt-tokenizer/encoding/o200k_base');`,
  // src/guardrails/detect/numbering-plans.ts
  'libphonenumber-js': `
    const { createRequire } = await import('node:module');
    const require = createRequire(${JSON.stringify(join(root, 'package.json'))});
    require('libphonenumber-js/core');
    require('libphonenumber-js/metadata.max.json');`,
};

/** What else the sources read beside themselves, and the worker files that are named by address. */
function compile(): void {
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [compiler, '-p', join(root, 'deploy/tsconfig.json')], { stdio: 'inherit' });
  // What is below `src` in the repository is at the top of `dist`, with `dist/sandbox` beside it.
  cpSync(join(dist, 'src'), dist, { recursive: true });
  rmSync(join(dist, 'src'), { recursive: true });
  for (const file of globSync('**/*.sql', { cwd: join(root, 'src') })) {
    mkdirSync(dirname(join(dist, file)), { recursive: true });
    copyFileSync(join(root, 'src', file), join(dist, file));
  }
  for (const file of globSync('**/*.js', { cwd: dist })) {
    const text = readFileSync(join(dist, file), 'utf8');
    // The compiler changes the names of imports, and not those of workers.
    const compiled = text.replace(/(new URL\('\.[^']*)\.ts'/g, "$1.js'");
    const changed = file.startsWith('sandbox/')
      ? compiled.replaceAll("from '../src/", "from '../")
      : compiled.replace(/from '\.\.\/((?:\.\.\/)+sandbox\/)/g, "from '$1");
    const left = /^(?!\s*(?:\/?\*|\/\/)).*['"]\.{1,2}\/[^'"]*\.ts['"].*$/m.exec(changed)?.[0];
    if (left !== undefined) throw new Error(`dist/${file} still names a TypeScript file: ${left.trim()}`);
    if (changed !== text) writeFileSync(join(dist, file), changed);
  }
  // The types of requests and answers are for those who use the API, with what they refer to; the others are nobody's.
  for (const file of globSync('**/*.d.ts', { cwd: dist })) {
    if (!/^(?:schemas\/.*|errors|limits)\.d\.ts$/.test(file)) rmSync(join(dist, file));
  }
}

/** The files of a package that these lines load. */
function loadedFiles(name: string, lines: string): string[] {
  const script = `
    const files = [];
    (await import('node:module')).registerHooks({ load: (url, context, next) => { files.push(url); return next(url, context); } });
    ${lines}
    process.stdout.write(JSON.stringify(files));`;
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', script], { cwd: root });
  const home = join(root, 'node_modules', name);
  const files = (JSON.parse(String(output)) as string[])
    .filter((url) => url.startsWith('file:'))
    .map((url) => relative(home, fileURLToPath(url)));
  const strange = files.find((file) => file.startsWith('..'));
  if (strange !== undefined) throw new Error(`${name} loads ${strange}, which is no file of its own`);
  return files;
}

/** Copies the part of a package that is used, with what says how it is loaded and under which licence. */
function vendor(name: string, lines: string): void {
  const home = join(root, 'node_modules', name);
  const files = new Set([...loadedFiles(name, lines), ...globSync('LICENSE*', { cwd: home })]);
  for (const file of [...files]) {
    for (let folder = dirname(file); ; folder = dirname(folder)) {
      if (globSync(join(folder, 'package.json'), { cwd: home }).length > 0) files.add(join(folder, 'package.json'));
      if (folder === '.') break;
    }
  }
  for (const file of files) cpSync(join(home, file), join(dist, 'node_modules', name, file));
}

rmSync(dist, { recursive: true, force: true });
compile();
// The console: its bundle lies beside its sources, which the package leaves out.
await import('../console/build.ts');
if (!existsSync(join(root, 'console/dist/manifest.json'))) throw new Error('the console is not built');
for (const [name, lines] of Object.entries(VENDORED)) vendor(name, lines);
