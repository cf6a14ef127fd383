import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../src/config.ts';
import { providerRows } from '../src/providers/table.ts';
import { startGateway } from './harness.ts';

const root = resolve(import.meta.dirname, '..');
const readme = readFileSync(join(root, 'README.md'), 'utf8');

test('the README names every provider with exactly the variables that turn it on', () => {
  const documented = [...readme.matchAll(/^\| `([a-z0-9-]+)` \| (`[A-Z][^|]*) \|$/gm)].map(
    ([, slug = '', list = '']) => [slug, [...list.matchAll(/`(\w+)`/g)].map(([, name]) => name)],
  );
  const hosted = providerRows.filter(({ address_variable }) => address_variable === undefined);
  expect(documented).toEqual(
    hosted.map(({ slug, credential_variables, credential_parts, base_url }) => [
      slug,
      [
        ...credential_variables.flatMap((name) => Object.values(credential_parts?.[name]?.members ?? { name })),
        ...[...base_url.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
      ],
    ]),
  );
});

test('the README names every setting that the configuration reads, and no other', () => {
  const config = readFileSync(join(root, 'src/config.ts'), 'utf8');
  const read = new Set([...config.matchAll(/'(GATEWAY_[A-Z_]+)'/g)].map(([, name = '']) => name));
  const documented = new Set([...readme.matchAll(/`(GATEWAY_[A-Z_]+)`/g)].map(([, name = '']) => name));
  // The examples' own: no setting.
  documented.delete('GATEWAY_KEY');
  read.delete('GATEWAY_KEY');
  expect([...documented].sort()).toEqual([...read].sort());
});

test('every YAML of the README is a configuration that loads without a warning', () => {
  const files = [...readme.matchAll(/```yaml\n(.*?)```/gs)].map(([, yaml = '']) => yaml);
  expect(files.length).toBe(7);
  const folder = mkdtempSync(join(tmpdir(), 'gateway-readme-'));
  try {
    for (const yaml of files) {
      const config_file = join(folder, 'gateway.yaml');
      writeFileSync(config_file, yaml);
      const environment = {
        ACME_API_KEY: 'k',
        AZURE_API_KEY: 'k',
        AZURE_RESOURCE_NAME: 'r',
        ELEVENLABS_API_KEY: 'k',
        OIDC_CLIENT_SECRET: 'k',
        VOYAGE_API_KEY: 'k',
      };
      const config = loadConfig(environment, { config_file });
      expect(config.warnings).toEqual([]);
      expect(config.models.length).toBe(/^models:/m.test(yaml) ? 1 : 0);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('what stands in braces behind a # in a YAML of the README is YAML too', () => {
  const files = [...readme.matchAll(/```yaml\n(.*?)```/gs)].map(([, yaml = '']) => yaml);
  const examples = files.flatMap((yaml) => [...yaml.matchAll(/^ *# ([\w, ]+: \{.*)$/gm)].map(([, text = '']) => text));
  expect(examples.length).toBeGreaterThan(0);
  for (const text of examples) expect(Object.values(parse(text) as object)).toEqual([expect.any(Object)]);
});

test('decision records are numbered without gaps and listed nowhere twice', () => {
  const numbers = globSync('docs/decisions/*.md', { cwd: root })
    .map((file) => Number(/(\d{4})-/.exec(file)?.[1]))
    .sort((a, b) => a - b);
  expect(numbers).toEqual(numbers.map((_, index) => index + 1));
});

test('links between the documents lead to files', () => {
  for (const document of ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'bench/README.md']) {
    const text = readFileSync(join(root, document), 'utf8');
    for (const [, link = ''] of text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)) {
      const target = resolve(root, document, '..', link);
      expect(globSync(target).length, `${document} links ${link}`).toBe(1);
    }
  }
});

/** What the README sends with curl: every path with its body. */
function requestsOfReadme(): { path: string; body: string | undefined }[] {
  const blocks = [...readme.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = '']) => block.replaceAll('\\\n', ' '));
  const curls = blocks.flatMap((block) =>
    block.split(/^(?=curl |manage )/m).filter((text) => text.startsWith('curl ')),
  );
  return curls.flatMap((text) => {
    const path = /(?:localhost:8080\/api\/v1|127\.0\.0\.1:8080\/api\/v1|\$GATEWAY)(\/[^\s"]+)/.exec(text)?.[1];
    const is_prepared = /MANAGEMENT_KEY|gen-…| -F /.test(text);
    return path === undefined || is_prepared ? [] : [{ path, body: / -d '([\s\S]*?)'/.exec(text)?.[1] }];
  });
}

test('every request of the README to the sandbox is answered', async () => {
  const gateway = await startGateway();
  try {
    const requests = requestsOfReadme();
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

test('every sandbox model that the README names is there', async () => {
  const table = /### The sandbox\n[\s\S]*?\n## /.exec(readme)?.[0] ?? '';
  const names = [...table.matchAll(/^\| (`sandbox.*?) \|/gm)].flatMap(([, cell = '']) =>
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
