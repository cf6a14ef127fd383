import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { ConfigFile, fileSettings } from '../src/config/file-schema.ts';
import type { Setting, Settings } from '../src/config/settings/declare.ts';
import { loadConfig } from '../src/config.ts';

const ROOT = join(import.meta.dirname, '..');
const EXAMPLES = join(ROOT, 'examples');

/** Adds to the schema of each setting its sentence and its default, which editors show. */
function withSentences(schema: JsonSchema, settings: Settings): JsonSchema {
  const properties = Object.entries(schema.properties ?? {}).map(([name, one]) => {
    const declared = settings[name];
    if (declared === undefined) return [name, one];
    const { sentence, kind, default: value, members } = declared;
    const description = `${sentence.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')} (${one.description})`;
    const described = { ...one, description, ...(kind === 'default' ? { default: value } : {}) };
    return [name, members === undefined ? described : withMembers(described, members)];
  });
  return { ...schema, properties: Object.fromEntries(properties) };
}

function withMembers(schema: JsonSchema, { step, settings }: NonNullable<Setting['members']>): JsonSchema {
  if (step === '') return withSentences(schema, settings);
  if (step === '[]') return { ...schema, items: withSentences(schema.items!, settings) };
  const [[pattern, one] = ['', {}]] = Object.entries(schema.patternProperties ?? {});
  return { ...schema, patternProperties: { [pattern]: withSentences(one, settings) } };
}

interface JsonSchema {
  description?: string;
  properties?: Record<string, JsonSchema>;
  patternProperties?: Record<string, JsonSchema>;
  items?: JsonSchema;
}

const schema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'gateway.yaml of Model Gateway',
  ...withSentences(JSON.parse(JSON.stringify(ConfigFile)), fileSettings),
};

test('the committed gateway.schema.json is the schema that checks configuration files (`npm run generate` writes it)', async () => {
  await expect(`${JSON.stringify(schema, null, 2)}\n`).toMatchFileSnapshot(join(ROOT, 'gateway.schema.json'));
});

const fits = new Ajv({ allowUnionTypes: true }).compile(schema);

test('it accepts the example of the guide, and rejects an unknown setting', () => {
  const guide = readFileSync(join(ROOT, 'docs/guides/configuration.md'), 'utf8');
  const [, yaml = ''] = /## An example\n.*?```yaml\n([\s\S]*?)```/s.exec(guide) ?? [];
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
