import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { embeddingDialectOf } from '../providers/embeddings/dialects.ts';
import type { Provider } from '../providers/provider.ts';
import { providerRow } from '../providers/table.ts';
import { isPriced } from '../schemas/prices.ts';
import { type BundledModel, parseBundledCatalog } from './bundled.ts';
import { withVectorModels } from './vector-models.ts';

const bundled = parseBundledCatalog(readFileSync(new URL('../../catalog/models.json', import.meta.url), 'utf8'));
const whole = withVectorModels(bundled);
const vectors = whole.models.filter(({ output }) => output.includes('embeddings'));

test('models of the facts are unchanged, and missing ones are added', () => {
  const before = new Map(bundled.models.map((model) => [model.id, model]));
  for (const model of whole.models) {
    const known = before.get(model.id);
    if (known)
      expect(model).toEqual({
        ...known,
        endpoints: [...known.endpoints, ...model.endpoints.slice(known.endpoints.length)],
      });
  }
  expect(whole.models.length).toBeGreaterThan(bundled.models.length);
  expect(withVectorModels(whole)).toEqual(whole);
});

test('each is listed once, and once at each provider', () => {
  const ids = whole.models.map(({ id }) => id);
  expect(ids).toEqual([...new Set(ids)]);
  for (const { id, endpoints } of vectors) {
    const providers = endpoints.map(({ provider, variant }) => `${provider}/${variant}`);
    expect(providers, id).toEqual([...new Set(providers)]);
  }
});

test('each has a price, and a provider with an embeddings wire', () => {
  const check = ({ id, endpoints }: BundledModel) => {
    for (const { provider, price } of endpoints) {
      expect(isPriced(price ?? {}), id).toBe(true);
      const row = providerRow.get(provider) as unknown as Provider;
      expect(embeddingDialectOf(row), `${id} at ${provider}`).toBeDefined();
    }
  };
  expect(vectors.length).toBeGreaterThan(15);
  for (const model of vectors) check(model);
});
