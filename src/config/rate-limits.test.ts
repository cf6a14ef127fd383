import { expect, test } from 'vitest';
import { rateWarnings, readRateRules } from './rate-limits.ts';
import { readConfigFile } from './read-file.ts';

const read = (yaml: string) => readRateRules(readConfigFile('gateway.yaml', yaml));
const FREE = { requests_per_minute: 20, requests_per_day: 50, requests_per_day_funded: 1_000, funded_usd: 10 };
const UNBOUNDED = { requests_per_minute: undefined, tokens_per_minute: undefined };

test('without a section only free models are limited, and a call that cannot be counted is refused', () => {
  for (const rules of [readRateRules(undefined), read('{}'), read('rate_limits: {}')]) {
    expect(rules).toEqual({
      ...{ per_key: UNBOUNDED, per_model: UNBOUNDED, per_key_and_model: UNBOUNDED },
      ...{ keys: new Map(), models: new Map(), free_models: FREE, uncounted: 'refuse' },
    });
  }
});

test('an override without a member has the default for it, and a limit can be removed', () => {
  const rules = read(`
rate_limits:
  per_key: { requests_per_minute: 600, tokens_per_minute: 200000 }
  keys:
    nightly: { requests_per_minute: 60 }
    trusted: { requests_per_minute: unlimited, tokens_per_minute: unlimited }
  models: { "acme/*": { tokens_per_minute: 5 } }
  free_models: { requests_per_day: 70 }
  uncounted: allow
`);
  expect(rules.keys.get('nightly')).toEqual({ requests_per_minute: 60, tokens_per_minute: 200_000 });
  expect(rules.keys.get('trusted')).toEqual(UNBOUNDED);
  expect(rules.models.get('acme/*')).toEqual({ requests_per_minute: undefined, tokens_per_minute: 5 });
  expect(rules).toMatchObject({ free_models: { ...FREE, requests_per_day: 70 }, uncounted: 'allow' });
  expect(read('rate_limits: { free_models: off }').free_models).toBeUndefined();
});

test.each([
  ['per_key: { requests_per_minute: 0 }', /per_key.requests_per_minute must be a whole number of 1 or more/],
  ['per_key: { requests_per_minute: many }', /must be a whole number of 1 or more, or unlimited/],
  ['per_keys: {}', /per_keys is not a known setting; did you mean "per_key"/],
  ['free_models: on', /free_models must be off, or an object with/],
  ['uncounted: maybe', /uncounted must be one of refuse, allow/],
])('%s is refused with a message', (text, message) => {
  expect(() => read(`rate_limits: { ${text} }`)).toThrow(message);
});

test('keys above the bound are refused', () => {
  const keys = Array.from({ length: 1_001 }, (_, index) => `    k${index}: {}`).join('\n');
  expect(() => read(`rate_limits:\n  keys:\n${keys}`)).toThrow('rate_limits.keys must have at most 1000 entries');
});

test('a limit of an unknown model is a warning', () => {
  const rules = read(
    'rate_limits: { models: { acme/fast: {}, "acme/f*t": {}, acme/fats: {}, "acm/*": {}, sandbox/echo: {} } }',
  );
  expect(rateWarnings(rules, new Set(['acme/fast', 'acme/slow']))).toEqual([
    'rate_limits.models names acme/fats, which is not a model of the catalog; did you mean "acme/fast"?',
    expect.stringContaining('rate_limits.models names acm/*, which is not a model of the catalog'),
  ]);
});
