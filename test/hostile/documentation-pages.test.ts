/**
 * Many clients without a key request the documentation at the same time, before any other client. See
 * docs/threat-model.md, "Connections and slow clients".
 */
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { makeDocumentation } from '../../src/http/documentation.ts';

test.each(['/docs/static/swagger-ui-bundle.js', '/docs/yaml'])(
  'concurrent first requests for %s share its bytes',
  async (path) => {
    const documentation = await makeDocumentation([]);
    const pages = await Promise.all(Array.from({ length: 50 }, () => documentation.page(path)));
    expect(new Set(pages.map((page) => page?.body)).size).toBe(1);
    expect(pages[0]?.body.length).toBeGreaterThan(0);
    expect(await documentation.page(path)).toBe(pages[0]);
  },
);

test('every path below the documentation is a page or a 404, never a fault', async () => {
  const documentation = await makeDocumentation([]);
  const files = readdirSync(
    join(dirname(createRequire(import.meta.url).resolve('@fastify/swagger-ui/package.json')), 'static'),
  );
  expect(files).toContain('index.html');
  for (const file of [...files, 'nothing.css']) await documentation.page(`/docs/static/${file}`);
  expect(await documentation.page('/docs/static/index.html')).toBeUndefined();
});
