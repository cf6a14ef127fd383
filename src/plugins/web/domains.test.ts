import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type DomainRule, domainRule, isAllowed } from './domains.ts';

const rule = (text: string): DomainRule => {
  const parsed = domainRule(text);
  if (parsed === undefined) throw new Error(`${text} is no domain`);
  return parsed;
};
const allows = (url: string, allowed: string[], excluded: string[] = []) =>
  isAllowed({ allowed: allowed.map(rule), excluded: excluded.map(rule) }, new URL(url));

describe('a domain rule', () => {
  test.each([
    ['example.com', 'https://example.com/', true],
    ['example.com', 'https://docs.example.com/x', true],
    ['example.com', 'https://notexample.com/', false],
    ['example.com', 'https://example.com.evil.test/', false],
    ['example.com', 'https://evil.test/example.com', false],
    ['example.com', 'https://EXAMPLE.com./x', true],
    ['*.example.com', 'https://a.example.com/', true],
    ['*.example.com', 'https://a.b.example.com/', true],
    ['*.example.com', 'https://example.com/', false],
    ['example.com/blog', 'https://example.com/blog', true],
    ['example.com/blog', 'https://example.com/blog/', true],
    ['example.com/blog', 'https://example.com/blog/one?x=1', true],
    ['example.com/blog', 'https://example.com/blogger', false],
    ['example.com/blog', 'https://example.com/', false],
    ['example.com/blog', 'https://example.com/x/../blog/one', true],
    ['example.com/blog', 'https://example.com/blog/../shop', false],
    ['example.com/blog', 'https://example.com/%62log/one', true],
    ['https://Example.com:443/blog/', 'http://example.com/blog/one', true],
    ['münchen.example', 'https://xn--mnchen-3ya.example/', true],
    ['localhost', 'http://localhost/', true],
  ])('%s applied to %s matches: %s', (text, url, fits) => {
    expect(allows(url, [text])).toBe(fits);
    expect(allows(url, [], [text])).toBe(!fits);
  });

  test.each([
    '',
    ' ',
    '*',
    '*.',
    '.com',
    'exa mple.com',
    'example..com',
    '-a.com',
    'a*.com',
    'http://',
    '/blog',
    'a_b!.com',
    'x'.repeat(300),
  ])('%j is invalid', (text) => expect(domainRule(text)).toBeUndefined());
});

const label = fc.stringMatching(/^[a-z][a-z0-9]{0,5}$/);
const host = fc.array(label, { minLength: 2, maxLength: 4 }).map((labels) => labels.join('.'));
const path = fc.array(label, { maxLength: 3 }).map((steps) => steps.map((step) => `/${step}`).join(''));

test('an excluded page is never allowed', () => {
  fc.assert(
    fc.property(host, path, fc.array(host, { maxLength: 3 }), (name, at, others) => {
      const url = `https://sub.${name}${at}/page`;
      expect(allows(url, [name, `*.${name}`, ...others], [name, ...others])).toBe(false);
      expect(allows(url, [], [`*.${name}`])).toBe(false);
      expect(allows(url, [], [`sub.${name}${at}`])).toBe(false);
    }),
  );
});

test('a host matches a rule only at a dot', () => {
  fc.assert(
    fc.property(host, host, (name, other) => {
      const expected = other === name || other.endsWith(`.${name}`);
      expect(allows(`https://${other}/`, [name])).toBe(expected);
      expect(allows(`https://${other}/`, [`*.${name}`])).toBe(expected && other !== name);
    }),
  );
});

test('a rule in its shortest form matches the same', () => {
  fc.assert(
    fc.property(host, path, fc.boolean(), host, path, (name, at, isWild, other, page) => {
      const original = rule(`https://${isWild ? '*.' : ''}${name.toUpperCase()}${at}/`);
      const again = rule(original.text);
      expect(again).toEqual(original);
      for (const one of [name, `a.${name}`, other]) {
        const url = new URL(`https://${one}${page}`);
        expect(isAllowed({ allowed: [again], excluded: [] }, url)).toBe(
          isAllowed({ allowed: [original], excluded: [] }, url),
        );
      }
    }),
  );
});
