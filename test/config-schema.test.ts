import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { ConfigFile } from '../src/config/file-schema.ts';
import { loadConfig } from '../src/config.ts';

const ROOT = join(import.meta.dirname, '..');
const EXAMPLES = join(ROOT, 'examples');
const schema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'gateway.yaml of Model Gateway',
  ...JSON.parse(JSON.stringify(ConfigFile)),
};

test('the committed gateway.schema.json is the schema that files are checked with (npm test -- test/config-schema.test.ts --update=all writes it anew)', async () => {
  await expect(`${JSON.stringify(schema, null, 2)}\n`).toMatchFileSnapshot(join(ROOT, 'gateway.schema.json'));
});

const fits = new Ajv({ allowUnionTypes: true }).compile(schema);

test('an editor accepts by it what the guide shows, and rejects an unknown setting', () => {
  const guide = readFileSync(join(ROOT, 'docs/guides/configuration.md'), 'utf8');
  const [, yaml = ''] = /all its settings\n+```yaml\n([\s\S]*?)```/.exec(guide) ?? [];
  expect([fits(parse(yaml)), fits.errors]).toEqual([true, null]);
  expect(fits({ ...(parse(yaml) as object), colour: 'red' })).toBe(false);
});

test.each(readdirSync(EXAMPLES).filter((name) => name.endsWith('.yaml')))(
  'examples/%s is a valid configuration',
  (name) => {
    const path = join(EXAMPLES, name);
    expect(readFileSync(path, 'utf8')).toMatch(/^# yaml-language-server: \$schema=\.\.\/gateway\.schema\.json\n/);
    expect(fits(parse(readFileSync(path, 'utf8')))).toBe(true);
    expect(
      loadConfig({ ACME_API_KEY: 'k', OPENAI_API_KEY: 'k', ANTHROPIC_API_KEY: 'k' }, { config_file: path }).warnings,
    ).toEqual([]);
  },
);
