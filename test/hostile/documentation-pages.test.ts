/**
 * Many clients without a key that ask for the documentation at the same time, before anybody else did. See docs/threat-model.md,
 * "Connections and slow clients".
 */
import { expect, test } from 'vitest';
import { makeDocumentation } from '../../src/http/documentation.ts';

test.each(['/docs/static/swagger-ui-bundle.js', '/docs/yaml'])(
  'all who ask first for %s share its bytes',
  async (path) => {
    const documentation = await makeDocumentation([]);
    const pages = await Promise.all(Array.from({ length: 50 }, () => documentation.page(path)));
    expect(new Set(pages.map((page) => page?.body)).size).toBe(1);
    expect(pages[0]?.body.length).toBeGreaterThan(0);
    expect(await documentation.page(path)).toBe(pages[0]);
  },
);
