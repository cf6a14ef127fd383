import { execFile } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { fileVariable } from '../src/config/secret-files.ts';
import { variables } from '../src/config/settings/variables.ts';
import { loadConfig } from '../src/config.ts';
import { publishedPolicies } from '../src/providers/data-policies.ts';
import { type ProviderRow, providerRows } from '../src/providers/table.ts';
import { allDocuments, blocksOf, root, userDocuments } from './documents.ts';
import { startGateway } from './harness.ts';
import { effectsTable, settingsTables, variablesTable } from './settings-tables.ts';

const documents = userDocuments();
const readme = documents.find(({ file }) => file === 'README.md')?.text ?? '';
const allText = documents.map(({ text }) => text).join('\n');

/** The variables that enable a provider, as the README shows them. */
function variablesOf({ credential_variables, credential_parts, base_url }: ProviderRow): string {
  const code = (name: string) => `\`${name}\``;
  const alternatives = credential_variables.map((variable) => {
    const parts = credential_parts?.[variable];
    if (parts === undefined) return code(variable);
    const names = Object.values(parts.members);
    const required = names.filter((name) => !parts.optional.includes(name));
    const optional = names.filter((name) => parts.optional.includes(name));
    const rest = optional.length === 0 ? '' : ` (and ${optional.map(code).join(', ')}, if the credential has it)`;
    return required.map(code).join(' and ') + rest;
  });
  const places = [...base_url.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => code(name));
  const either = alternatives.some((one) => one.includes(' and ')) ? ', or ' : ' or ';
  return alternatives.join(either) + (places.length === 0 ? '' : `, with ${places.join(' and ')}`);
}

test('the README has the tables of providers and variables that `npm run generate` writes', async () => {
  const hosted = providerRows.filter(({ address_variable }) => address_variable === undefined);
  const rows = hosted.map((row) => `| \`${row.slug}\` | ${variablesOf(row)} |\n`);
  const providers = /^\| provider \| variables \|\n\|---\|---\|\n(?:\|.*\|\n)*/m;
  const settings = /^\| setting \| meaning \| default \|\n\|---\|---\|---\|\n(?:\|.*\|\n)*/m;
  expect(readme).toMatch(providers);
  expect(readme).toMatch(settings);
  const written = readme
    .replace(providers, () => `| provider | variables |\n|---|---|\n${rows.join('')}`)
    .replace(settings, variablesTable);
  await expect(written).toMatchFileSnapshot(join(root, 'README.md'));
});

test('the configuration guide has the tables of settings that `npm run generate` writes', async () => {
  const guide = documents.find(({ file }) => file.endsWith('/configuration.md'))?.text ?? '';
  const part = (name: string) => new RegExp(`(?<=^<!-- generated: ${name} -->\n\n).*?(?=\n<!-- end -->$)`, 'ms');
  expect(guide).toMatch(part('settings'));
  expect(guide).toMatch(part('effects'));
  const written = guide.replace(part('settings'), settingsTables).replace(part('effects'), effectsTable);
  await expect(written).toMatchFileSnapshot(join(root, 'docs/guides/configuration.md'));
});

test('the guide shows what each provider publishes about data, with its sources, and nothing else', () => {
  const guide = documents.find(({ file }) => file.endsWith('providers.md'))?.text ?? '';
  const shown = [
    ...guide.matchAll(/^\| `([a-z-]+)`[^|]* \| (\w+) \| (none|unknown|\d+ days) \| (<https[^|]*) \|$/gm),
  ].map(([, slug, training, retention, sources = '']) => [slug, training, retention, sources.match(/https[^>]+/g)]);
  const words = Object.entries(publishedPolicies).map(([slug, { training, retention_days: days, sources }]) => [
    slug,
    training === 'unknown' ? training : training ? 'yes' : 'no',
    days === 0 ? 'none' : days === 'unknown' ? days : `${days} days`,
    sources,
  ]);
  expect(shown).toEqual(words);
  for (const { checked } of Object.values(publishedPolicies)) expect(guide).toContain(`last read on ${checked}`);
  for (const slug of Object.keys(publishedPolicies)) expect(providerRows.some((row) => row.slug === slug)).toBe(true);
});

test('the context of the image contains every file of the package', () => {
  const rules = readFileSync(join(root, '.dockerignore'), 'utf8').split('\n');
  const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { files: string[] };
  // `dist` is created in the image.
  const missing = files.filter((file) => file !== 'dist' && !rules.includes(`!${file.split('/')[0]}`));
  expect(missing).toEqual([]);
});

test('the README names every setting that the configuration reads, and no document names an unknown setting', () => {
  const all = Object.keys(variables).flatMap((name) => [name, fileVariable(name) ?? name]);
  const read = new Set(all.filter((name) => name.startsWith('GATEWAY_')));
  const named = (text: string) =>
    [...text.matchAll(/\b(GATEWAY_[A-Z_]+)\b/g)].map(([, name = '']) => name).filter((name) => name !== 'GATEWAY_KEY');
  const documented = new Set([...readme.matchAll(/`(GATEWAY_[A-Z_]+)`/g)].map(([, name = '']) => name));
  expect([...documented].sort()).toEqual([...read].sort());
  for (const { file, text } of documents) expect([...read], file).toEqual(expect.arrayContaining(named(text)));
});

const yamls = documents.flatMap(({ file, text }) => blocksOf(text, 'yaml').map((yaml) => ({ file, yaml })));

test('every YAML of the README and the guides is a configuration that loads without a warning', () => {
  expect(yamls.length).toBeGreaterThan(7);
  const folder = mkdtempSync(join(tmpdir(), 'gateway-readme-'));
  try {
    for (const { file, yaml } of yamls) {
      const configFile = join(folder, 'gateway.yaml');
      writeFileSync(configFile, yaml);
      const environment = {
        ACME_API_KEY: 'k',
        AZURE_API_KEY: 'k',
        AZURE_RESOURCE_NAME: 'r',
        ELEVENLABS_API_KEY: 'k',
        OIDC_CLIENT_SECRET: 'k',
        METRICS_TOKEN: 'm'.repeat(32),
        VOYAGE_API_KEY: 'k',
      };
      const config = loadConfig(environment, { config_file: configFile });
      expect(config.warnings, file).toEqual([]);
      expect(config.models.length, file).toBe(/^models:/m.test(yaml) ? 1 : 0);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('YAML in braces behind a # in examples of the guides is valid', () => {
  const examples = yamls.flatMap(({ yaml }) =>
    [...yaml.matchAll(/^ *# ([\w, ]+: \{.*)$/gm)].map(([, text = '']) => text),
  );
  expect(examples.length).toBeGreaterThan(0);
  for (const text of examples) expect(Object.values(parse(text) as object)).toEqual([expect.any(Object)]);
});

test('decision records are numbered without gaps or repetitions', () => {
  const numbers = globSync('docs/decisions/*.md', { cwd: root })
    .map((file) => Number(/(\d{4})-/.exec(file)?.[1]))
    .sort((a, b) => a - b);
  expect(numbers).toEqual(numbers.map((_, index) => index + 1));
});

/** Without code, because an example of a link is not a link. */
const prose = (text: string) => text.replace(/^```.*?^```$/gms, '').replace(/`[^`\n]*`/g, '`code`');

/** The anchors that GitHub gives the headings of a page. */
function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of text.replace(/^```.*?^```$/gms, '').matchAll(/^#{1,6} (.+)$/gm)) {
    const words = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = words.replace(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-');
    let count = 0;
    while (anchors.has(count === 0 ? anchor : `${anchor}-${count}`)) count += 1;
    anchors.add(count === 0 ? anchor : `${anchor}-${count}`);
  }
  return anchors;
}

test('every link of every document leads to a file of the repository, and its anchor to a heading', () => {
  const wrong = allDocuments().flatMap(({ file, text }) =>
    [...prose(text).matchAll(/\[[^\]]*\]\(([^)\s]+)\)/g)].flatMap(([, link = '']) => {
      if (/^https?:/.test(link)) return [];
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? join(root, file) : resolve(root, file, '..', path);
      const isRight =
        target.startsWith(root) &&
        existsSync(target) &&
        (anchor === undefined || anchorsOf(readFileSync(target, 'utf8')).has(anchor));
      return isRight ? [] : [`${file} links ${link}`];
    }),
  );
  expect(wrong).toEqual([]);
});

test('every source file that a document names by its path exists', () => {
  const missing: string[] = [];
  for (const { file, text } of allDocuments()) {
    for (const [, path = ''] of text.matchAll(/`([\w.-]+(?:\/[\w.-]+)+\.[jt]s)`/g)) {
      // Paths are from the root, from `src`, from the folder of the document, or, in the table of packages, from the room of the row.
      if (!['', 'src', dirname(file), 'src/providers'].some((base) => existsSync(join(root, base, path))))
        missing.push(`${file}: ${path}`);
    }
  }
  expect(missing).toEqual([]);
});

test('the README links every guide', () => {
  const linked = new Set([...readme.matchAll(/\]\((docs\/guides\/[^)#]+)/g)].map(([, file]) => file));
  expect([...linked].sort()).toEqual(documents.map(({ file }) => file).filter((file) => file !== 'README.md'));
});

/** The requests that the README and the guides send with curl: every path with its body. */
function requestsOfDocuments(): { path: string; body: string | undefined }[] {
  const blocks = blocksOf(allText, 'sh').map((block) => block.replaceAll('\\\n', ' '));
  const curls = blocks.flatMap((block) =>
    block.split(/^(?=curl |manage )/m).filter((text) => text.startsWith('curl ')),
  );
  return curls.flatMap((text) => {
    const path = /(?:localhost:8080\/api\/v1|127\.0\.0\.1:8080\/api\/v1|\$GATEWAY)(\/[^\s"]+)/.exec(text)?.[1];
    const isPrepared = /MANAGEMENT_KEY|gen-…| -F /.test(text);
    return path === undefined || isPrepared ? [] : [{ path, body: / -d '([\s\S]*?)'/.exec(text)?.[1] }];
  });
}

test('every request of the README and the guides to the sandbox is answered', async () => {
  const gateway = await startGateway();
  try {
    const requests = requestsOfDocuments();
    expect(requests.length).toBeGreaterThan(8);
    for (const { path, body } of requests) {
      const response = await gateway.call(body === undefined ? 'GET' : 'POST', path, body && JSON.parse(body));
      const text = await response.text();
      expect(response.status, `${path}: ${text}`).toBe(200);
      expect(text, path).not.toMatch(/"finish_reason":"error"|"data":\[\]/);
    }
  } finally {
    await gateway.stop();
  }
});

/** The commands of an administrator, in order: calls of the management API, and commands between them. */
function administration(): {
  text: string;
  command: string[];
  path: string;
  method: string;
  body: string | undefined;
}[] {
  const blocks = blocksOf(allText, 'sh').filter((block) => block.includes('manage '));
  return blocks
    .flatMap((block) => block.split(/^(?=manage |node |curl |export |#)/m))
    .filter((text) => /^manage [^(]|^node /.test(text))
    .map((text) => {
      const body = / -d '([\s\S]*?)'/.exec(text)?.[1];
      const [, quoted, plain = ''] = /"\$GATEWAY([^"]*)"|\$GATEWAY(\S*)/.exec(text) ?? [];
      const command = [...text.matchAll(/'([^']*)'|(\S+)/g)].map(([, inner, word = '']) => inner ?? word);
      const method = / -X (\w+)/.exec(text)?.[1] ?? (body === undefined ? 'GET' : 'POST');
      return { text, command, path: quoted ?? plain, method, body };
    });
}

test('the commands for administrators in the README and the guides succeed in their order', async () => {
  const gateway = await startGateway();
  try {
    const ids: Record<string, string> = { '…': '0', '$(date -u +%F)': new Date().toISOString().slice(0, 10) };
    const filled = (text: string) => Object.entries(ids).reduce((rest, [name, id]) => rest.replaceAll(name, id), text);
    const steps = administration();
    expect(steps.length).toBeGreaterThan(20);
    for (const { text, command, path, method, body } of steps) {
      if (command[0] === 'node') {
        const environment = { PATH: process.env['PATH'], GATEWAY_DATA_DIR: gateway.data_dir };
        await promisify(execFile)(process.execPath, command.slice(1), { cwd: root, env: environment });
        continue;
      }
      const headers = { authorization: `Bearer ${gateway.management_key}` };
      const response = await gateway.call(method, filled(path), body && JSON.parse(filled(body)), headers);
      const answer = await response.text();
      expect(response.ok, `${text}: ${answer}`).toBe(true);
      const { data } = JSON.parse(answer);
      if (path === '/organization/members') {
        ids['<id of the member>'] = data.find((one: { email: string | null }) => one.email === 'ada@example.com').id;
      }
      if (path === '/workspaces') ids['<id of the workspace>'] = data.id;
      if (path === '/keys') ids['<hash>'] = data.hash;
      if (path === '/guardrails') ids['<id>'] = data.id;
    }
  } finally {
    await gateway.stop();
  }
});

test('every sandbox model that the guides name exists', async () => {
  const names = [...allText.matchAll(/^\| (`sandbox.*?) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`(?:sandbox\/)?([a-z0-9-]+)`/g)].map(([, name = '']) => name),
  );
  expect(names.length).toBeGreaterThan(20);
  const gateway = await startGateway();
  try {
    const list = (await (await gateway.call('GET', '/models?output_modalities=all')).json()) as {
      data: { id: string }[];
    };
    const ids = new Set(list.data.map(({ id }) => id));
    for (const name of names) expect(ids).toContain(`sandbox/${name}`);
    const story = await gateway.call('POST', '/chat/completions', {
      model: 'sandbox/break-off',
      messages: [{ role: 'user', content: 'Hello' }],
      stream: true,
      provider: { order: ['sandbox'] },
    });
    expect(await story.text()).toContain('"finish_reason":"error"');
  } finally {
    await gateway.stop();
  }
});
