import fc from 'fast-check';
import { expect, test } from 'vitest';
import { resolveVariant, type Suffix, variantOf } from './variants.ts';

const catalog = new Map(['a/x', 'a/x:free', 'a/y', 'a/y:thinking', 'a/z:free:extended'].map((id) => [id, id]));
const find = (id: string) => catalog.get(id);

test.each<[string, string | undefined, Suffix[]]>([
  ['a/x', 'a/x', []],
  ['a/x:free', 'a/x:free', []],
  ['a/y:free', 'a/y', ['free']],
  ['a/x:nitro', 'a/x', ['nitro']],
  ['a/x:free:online', 'a/x:free', ['online']],
  ['a/x:online:free', 'a/x:free', ['online']],
  ['a/y:thinking:nitro', 'a/y:thinking', ['nitro']],
  ['a/y:floor:online', 'a/y', ['online', 'floor']],
  ['a/z:free:extended', 'a/z:free:extended', []],
  ['a/x:nitro:nitro', 'a/x', ['nitro']],
  ['a/x:unknown', undefined, []],
  ['a/x:unknown:free', undefined, []],
  ['a/x:', undefined, []],
  [':free', undefined, []],
  ['a/nobody:free', undefined, []],
])('%s is model %s with suffixes %j', (name, model, suffixes) => {
  const resolved = resolveVariant(name, find);
  expect(resolved?.model).toBe(model);
  expect(resolved?.suffixes ?? []).toEqual(suffixes);
});

test('any text is resolved to a catalog model or to none', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(':', 'free', 'online', 'a/x', 'nitro'), { maxLength: 60 }), (pieces) => {
      const resolved = resolveVariant(pieces.join(''), find);
      expect(resolved === undefined || catalog.has(resolved.model)).toBe(true);
    }),
  );
});

test('suffixes become preferences', () => {
  expect(variantOf(['nitro'])).toEqual({ sort: 'throughput', tiers: ['priority', 'fast'] });
  expect(variantOf(['floor'])).toEqual({ sort: 'price', tiers: ['flex'] });
  expect(variantOf(['exacto'])).toEqual({ sort: 'exacto' });
  expect(variantOf(['free', 'extended'])).toEqual({ free: true, extended: true });
  expect(variantOf(['thinking'])).toEqual({ sends: { reasoning: { enabled: true } } });
  expect(variantOf(['online'])).toBeUndefined();
});
