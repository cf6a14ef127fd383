import { expect, test } from 'vitest';
import { DAY_MS } from '../../schemas/budget.ts';
import { MINUTE_MS, type RateAmounts, type RateRules } from '../../schemas/rate-limit.ts';
import { createRateBook } from './rate-book.ts';

const amounts = (requestsPerMinute?: number, tokensPerMinute?: number): RateAmounts => ({
  requests_per_minute: requestsPerMinute,
  tokens_per_minute: tokensPerMinute,
});
const FREE = { requests_per_minute: 20, requests_per_day: 50, requests_per_day_funded: 1_000, funded_usd: 10 };
const book = (rules: Partial<RateRules>) =>
  createRateBook({
    per_key: amounts(),
    per_model: amounts(),
    per_key_and_model: amounts(),
    keys: new Map(),
    models: new Map(),
    free_models: FREE,
    uncounted: 'refuse',
    ...rules,
  });
const caller = { key_hash: 'abc', rate_name: 'batch jobs', organization_id: 'org', granted_nano: undefined };
const shown = (list: readonly { id: string; amount: number }[]) => list.map(({ id, amount }) => [id, amount]);
const model = (id: string) => ({ id, is_free: false });

test('without settings only free models are limited', () => {
  const { ofKey, ofModel } = book({});
  expect(ofKey(caller)).toEqual([]);
  expect(ofModel(caller, model('acme/fast:free'))).toEqual([]);
  expect(ofModel(caller, { id: 'acme/fast:free', is_free: true })).toHaveLength(2);
  expect(book({ free_models: undefined }).ofModel(caller, { id: 'a/b:free', is_free: true })).toEqual([]);
});

test.each([
  [
    'each key has the default',
    caller,
    [
      ['key:abc/requests', 10],
      ['key:abc/tokens', 500],
    ],
    {},
  ],
  [
    'a key has the limits of its name',
    caller,
    [['key:abc/requests', 3]],
    { keys: new Map([['batch jobs', amounts(3)]]) },
  ],
  [
    'a key has the limits of its hash before those of its name',
    caller,
    [['key:abc/tokens', 7]],
    {
      keys: new Map([
        ['batch jobs', amounts(3)],
        ['abc', amounts(undefined, 7)],
      ]),
    },
  ],
  ['a key without limits', caller, [], { keys: new Map([['abc', amounts()]]) }],
  [
    'a management key without a record has the limits of its organization',
    { ...caller, key_hash: null, rate_name: undefined },
    [
      ['organization:org/requests', 10],
      ['organization:org/tokens', 500],
    ],
    {},
  ],
])('%s', (_title, who, expected, rules) => {
  expect(shown(book({ per_key: amounts(10, 500), ...rules }).ofKey(who))).toEqual(expected);
});

test.each([
  ['acme/fast', 1],
  ['acme/fast-mini', 2],
  ['acme/slow', 3],
  ['acme/slow-mini', 3],
  ['other/thing-mini', 4],
  ['other/thing', 5],
  ['acme', 5],
])('%s has the limit of its id, or else of the longest pattern, or else the default', (id, expected) => {
  const models = new Map([
    ['*mini', amounts(4)],
    ['acme/*', amounts(3)],
    ['acme/fast*ini', amounts(2)],
    ['acme/fast', amounts(1)],
  ]);
  const { ofModel } = book({ per_model: amounts(5), models });
  expect(shown(ofModel(caller, model(id)))).toEqual([[`model:${id}/requests`, expected]]);
  expect(ofModel(caller, model(id))[0]?.message).toBe(
    `model-requests-per-min. All requests for ${id} together may use ${expected} requests a minute`,
  );
});

test('a pattern requires each piece in order, without overlap', () => {
  const { ofModel } = book({
    models: new Map([
      ['ab*ba', amounts(1)],
      ['x*y*z', amounts(2)],
    ]),
  });
  const limited = (id: string) => ofModel(caller, model(id)).length === 1;
  expect(['abba', 'ab-ba', 'aba', 'xyz', 'x-y-z', 'xz', 'xzy', 'yxz'].map(limited)).toEqual([
    ...[true, true, false, true, true, false, false, false],
  ]);
});

test('each key has counters of its own for each model', () => {
  const { ofModel } = book({ per_key_and_model: amounts(1, 2), per_model: amounts(9) });
  expect(shown(ofModel(caller, model('a/b')))).toEqual([
    ['key:abc a/b/requests', 1],
    ['key:abc a/b/tokens', 2],
    ['model:a/b/requests', 9],
  ]);
});

test.each([
  [undefined, 50, 'free-models-per-day. Add 10 credits to unlock 1000 free model requests per day'],
  [9_999_999_999, 50, 'free-models-per-day. Add 10 credits to unlock 1000 free model requests per day'],
  [10_000_000_000, 1_000, 'free-models-per-day-high-balance.'],
])('free models: %s granted nano-USD allow %s requests a day', (grantedNano, amount, message) => {
  const list = book({}).ofModel({ ...caller, granted_nano: grantedNano }, { id: 'a/b:free', is_free: true });
  expect(list).toEqual([
    { id: 'free:org/requests', unit: 'requests', span_ms: MINUTE_MS, amount: 20, message: 'free-models-per-min.' },
    { id: 'free:org/requests/day', unit: 'requests', span_ms: DAY_MS, amount, message },
  ]);
});
