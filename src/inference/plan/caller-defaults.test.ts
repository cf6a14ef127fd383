import { expect, test } from 'vitest';
import type { Principal } from '../../http/principal.ts';
import { type CallerDefaults, defaultModel, defaultSort, type RoutingRules } from './caller-defaults.ts';

const caller = (workspace?: [string | null, string | null], userId: string | null = 'u') =>
  ({
    user_id: userId,
    ...(workspace && { defaults: { default_text_model: workspace[0], default_provider_sort: workspace[1] } }),
  }) as unknown as Principal;
type Users = Pick<RoutingRules, 'users'>;
const rules = (user?: CallerDefaults): Users => ({
  users: new Map(user === undefined ? [] : [['u', user]]),
});
const USER = { default_text_model: 'a/user', default_provider_sort: 'latency' };

test.each<[string, Principal, Users, string | undefined, string | undefined]>([
  ['the user', caller(['a/workspace', 'price']), rules(USER), 'a/user', 'latency'],
  ['the workspace', caller(['a/workspace', 'price']), rules(), 'a/workspace', 'price'],
  ['a user without a workspace', caller(['a/workspace', 'price'], null), rules(USER), 'a/workspace', 'price'],
  [
    'a user with half of the defaults, then the workspace',
    caller(['a/workspace', 'price']),
    rules({ default_text_model: 'a/user' }),
    'a/user',
    'price',
  ],
  ['the configuration', caller(), rules(), 'a/configured', undefined],
  [
    'a workspace with half of the defaults, then the configuration',
    caller([null, 'price']),
    rules(),
    'a/configured',
    'price',
  ],
])('%s sets the defaults of a request', (_title, principal, of, model, sort) => {
  expect(defaultModel(principal, of, 'a/configured', {})).toBe(model);
  expect(defaultSort(principal, of)).toBe(sort);
});

test('a request for images gets the workspace’s image model if it has one', () => {
  const defaults = { default_text_model: 'a/text', default_image_model: 'a/image', default_provider_sort: null };
  const principal = { ...caller(), defaults };
  const model = (modalities: string[] | null, of: Principal = principal) =>
    defaultModel(of, rules(USER), 'a/configured', { modalities } as never);
  expect(model(['image', 'text'])).toBe('a/image');
  expect(model(['text'])).toBe('a/user');
  expect(model(null)).toBe('a/user');
  expect(model(['image'], { ...principal, defaults: { ...defaults, default_image_model: null } })).toBe('a/user');
});

test('a stored sort that is unknown is ignored', () => {
  expect(defaultSort(caller([null, 'beauty']), rules())).toBeUndefined();
});
