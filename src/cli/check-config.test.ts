import { expect, test } from 'vitest';
import { readConfigFile } from '../config/read-file.ts';
import { type ConfigText, loadConfig } from '../config.ts';
import { CONFIG_INLINE_CHARS_MAX, checkedFile } from './check-config.ts';

const MODELS = 290;

const large = (provider = 'acme'): ConfigText => ({
  path: 'gateway.yaml',
  text: [
    'providers:',
    '  acme: { dialect: openai-chat, base_url: "http://127.0.0.1:9/v1" }',
    'models:',
    ...Array.from({ length: MODELS }, (_, index) => {
      const endpoint = `{ provider: ${index === 0 ? provider : 'acme'}, upstream_model: m, pricing: { prompt: 1, completion: 2 } }`;
      return `  acme/m-${index}: { name: Model ${index}, endpoints: [${endpoint}] }`;
    }),
  ].join('\n'),
});

test('a large file is read while other work runs, with the same result as otherwise', async () => {
  const file = large();
  expect(file.text.length).toBeGreaterThan(CONFIG_INLINE_CHARS_MAX);
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
  }, 1);
  const checked = await checkedFile({}, file);
  clearInterval(timer);
  expect(turns).toBeGreaterThan(10);
  expect(checked.value).toEqual(readConfigFile(file.path, file.text).value);
  expect(loadConfig({}, { config_file_content: checked }).models).toEqual(
    loadConfig({}, { config_file_content: file }).models,
  );
});

test('any error in a large file names its line', async () => {
  const wrong = (file: ConfigText) => expect(checkedFile({}, file)).rejects;
  await wrong({ ...large(), text: `${large().text}\n: [` }).toThrow(/line \d+: this is not valid YAML/);
  await wrong({ ...large(), text: `${large().text}\nmodel: {}` }).toThrow(/line \d+: model is not a known setting/);
  await wrong(large('akme')).toThrow(
    'gateway.yaml, line 4: models.acme/m-0.endpoints[0].provider must be the slug of a provider, not "akme"',
  );
});

test('a file that was checked in another thread still names the line of an error', async () => {
  const file = { ...large(), text: large().text.replace('"http://127.0.0.1:9/v1"', `"\${ADDRESS}"`) };
  const checked = await checkedFile({ ADDRESS: 'http://127.0.0.1:9' }, file);
  expect(() => loadConfig({}, { config_file_content: checked })).toThrow(
    /line 2: providers\.acme\.base_url refers to ADDRESS/,
  );
});
