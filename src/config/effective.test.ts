import { expect, test } from 'vitest';
import { takeOver } from '../cli/reload.ts';
import { loadConfig } from '../config.ts';
import type { EffectiveSetting } from '../schemas/system.ts';
import { effectiveSettings } from './effective.ts';
import { type ConfigFile, fileSettings } from './file-schema.ts';
import type { Setting, Settings } from './settings/declare.ts';
import { variables } from './settings/variables.ts';

const SECRET = 'planted-secret-0123456789abcdef0123456789';

/** Every setting with the secret as its value, also as a name that the operator chooses and in lists. */
function planted(settings: Settings): Record<string, unknown> {
  const plantedValue = ({ members, schema }: Setting): unknown => {
    const { type } = schema as { type?: string };
    if (members === undefined)
      return type === 'array' ? [SECRET] : type === 'object' ? { [SECRET]: SECRET, a: { b: SECRET } } : SECRET;
    const inner = planted(members.settings);
    return members.step === '' ? inner : members.step === '[]' ? [inner] : { [SECRET]: inner };
  };
  return Object.fromEntries(Object.entries(settings).map(([name, declared]) => [name, plantedValue(declared)]));
}

test('a secret in every setting and variable does not occur in the shown settings', () => {
  const environment = Object.fromEntries(Object.keys(variables).map((name) => [name, SECRET]));
  const shown = effectiveSettings(environment, planted(fileSettings) as ConfigFile);
  expect(JSON.stringify(shown)).not.toContain(SECRET);
  expect(shown.filter(({ source }) => source === 'default')).toEqual([]);
  expect(shown.length).toBeGreaterThan(80);
});

const configOf = (environment: Record<string, string>, file: object) =>
  loadConfig(environment, { config_file_content: { path: 'gateway.yaml', text: JSON.stringify(file), value: file } });
const settingOf = (settings: readonly EffectiveSetting[], name: string) => {
  const { value, source } = settings.find((setting) => setting.name === name) ?? {};
  return [value, source];
};

test('each setting has its value and its source', () => {
  const { settings } = configOf(
    { GATEWAY_PORT: '9000', GATEWAY_SECRET: 'x'.repeat(40) },
    { ledger: { budgets: 'soft' }, logging: { level: 'warn' }, media: { ports: [80, 8443] } },
  );
  expect(settingOf(settings, 'GATEWAY_PORT')).toEqual(['9000', 'environment']);
  expect(settingOf(settings, 'GATEWAY_SECRET')).toEqual(['set', 'environment']);
  expect(settingOf(settings, 'GATEWAY_HOST')).toEqual(['127.0.0.1', 'default']);
  expect(settingOf(settings, 'ledger.budgets')).toEqual(['soft', 'file']);
  expect(settingOf(settings, 'ledger.hold')).toEqual(['full', 'default']);
  expect(settingOf(settings, 'media.ports')).toEqual(['2 entries', 'file']);
});

test('after a reload, settings that require a restart are shown with their value in use', () => {
  const running = configOf({}, { ledger: { budgets: 'soft' }, routing: { hedge: false } });
  const { config } = takeOver(running, configOf({}, { ledger: { budgets: 'strict' }, routing: { hedge: true } }));
  expect(settingOf(config.settings, 'ledger.budgets')).toEqual(['soft', 'file']);
  expect(settingOf(config.settings, 'routing.hedge')).toEqual(['true', 'file']);
});
