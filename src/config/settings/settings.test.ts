import { isDeepStrictEqual } from 'node:util';
import { Check } from 'typebox/value';
import { expect, test } from 'vitest';
import { describeConfig } from '../../cli/described-config.ts';
import { loadConfig } from '../../config.ts';
import { fileFields, fileSettings } from '../file-schema.ts';
import { readConfigFile } from '../read-file.ts';
import { allSettings, type Setting } from './declare.ts';
import { variables } from './variables.ts';

/** Fields of `Config` that do not correspond to one setting. */
const DERIVED = ['loaded_at', 'providers_off', 'providers_own_only', 'proxies', 'settings', 'warnings'];

test('every field of the configuration is declared: in the file, as a variable, or as derived', () => {
  const declared = new Set([
    ...fileFields().map(({ field }) => field),
    ...Object.values(variables).map(({ field }) => field),
    ...DERIVED,
  ]);
  const fields = Object.keys(loadConfig({}, { config_file_content: null }));
  const advice =
    '`Config` has a field for each section. A setting outside of the field of its section names its own (`field` in its declaration). A field that belongs to no setting is in DERIVED.';
  expect([...declared].sort(), advice).toEqual(fields.sort());
});

test('every section declares when a change takes effect', () => {
  const silent = Object.entries(fileSettings).filter(([, declared]) => declared.takesEffect === undefined);
  expect(silent.map(([name]) => name)).toEqual([]);
});

test('every setting has a sentence without a full stop, and a schema with a description', () => {
  const wrong = [...allSettings(fileSettings)].filter(
    ({ declared: { sentence, schema } }) => sentence === '' || sentence.endsWith('.') || !('description' in schema),
  );
  expect(wrong.map(({ path }) => path)).toEqual([]);
});

test('every declared default is a value that the file accepts', () => {
  for (const { path, declared } of allSettings(fileSettings)) {
    if (declared.kind === 'default') expect(Check(declared.schema, declared.default), path).toBe(true);
  }
});

/** A value other than the default, for settings with few choices or a number. */
function otherValue({ schema, default: usual }: Setting): unknown {
  const { enum: choices, type, minimum, maximum } = schema as Record<string, unknown>;
  if (Array.isArray(choices)) return choices.find((choice) => choice !== usual);
  if (type === 'boolean') return !usual;
  if (type === 'integer' || type === 'number') return usual === maximum ? minimum : maximum;
  return undefined;
}

test('doctor shows a change of every setting with a default and few choices or a number', () => {
  const base = { responses: { store: true }, probes: { usd_per_day: 1 }, ledger: { budgets: 'soft' } };
  const shown = (sections: object) => {
    const text = JSON.stringify(sections);
    return describeConfig(loadConfig({}, { config_file_content: { path: 'gateway.yaml', text, value: sections } }));
  };
  const unseen = Object.entries<Setting>(fileSettings).flatMap(([name, { members }]) =>
    Object.entries(members?.step === '' ? members.settings : {}).flatMap(([member, declared]) => {
      const other = declared.kind === 'default' ? otherValue(declared) : undefined;
      if (other === undefined) return [];
      const section = (base as Record<string, object>)[name];
      const withValue = (value: unknown) => shown({ ...base, [name]: { ...section, [member]: value } });
      return isDeepStrictEqual(withValue(other), withValue(declared.default)) ? [`${name}.${member}`] : [];
    }),
  );
  expect(unseen, 'Show these settings in src/cli/described-config.ts.').toEqual([]);
});

test('a wrong value of a secret is not quoted', () => {
  for (const yaml of [
    'metrics: { token: 12345678 }',
    'auth: { oidc: { issuer: i, client_id: c, client_secret: 12345678 } }',
  ])
    expect(() => readConfigFile('gateway.yaml', yaml)).toThrow(/^(?!.*12345678).*must be a secret/);
});
