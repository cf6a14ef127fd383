import { describe, expect, test } from 'vitest';
import { loadConfig } from '../config.ts';
import { buildCatalog, type Catalog, type DeclaredEndpoint, type DeclaredModel } from './catalog.ts';
import { catalogChanges, changeCounts, changeLine } from './changes.ts';

const providers = loadConfig({ OPENAI_API_KEY: 'secret-one', GROQ_API_KEY: 'k' }).providers;

function catalog(models: DeclaredModel[], slugs = ['openai', 'groq'], credential = 'secret-one'): Catalog {
  return buildCatalog({
    bundled: { format: 1, models: [] },
    config: { bundled_catalog: true, models },
    providers: providers
      .filter(({ slug }) => slugs.includes(slug))
      .map((provider) => ({ ...provider, credential: provider.slug === 'openai' ? credential : provider.credential })),
    created_default: 0,
  });
}

const endpoint = (more: Partial<DeclaredEndpoint> = {}): DeclaredEndpoint => ({
  provider: 'openai',
  upstream_model: 'm',
  pricing: { prompt: 250_000, completion: 2_000_000, request: 5_000_000_000 },
  ...more,
});
const plain = catalog([{ id: 'acme/one', endpoints: [endpoint()] }]);
const lines = (after: Catalog, before = plain) => catalogChanges(before, after).map(changeLine);

describe('changes between two catalogs', () => {
  test('are empty for catalogs of the same content', () => {
    expect(lines(catalog([{ id: 'acme/one', endpoints: [endpoint()] }]))).toEqual([]);
  });

  test('list added and removed models and endpoints', () => {
    const after = catalog([
      { id: 'acme/two', endpoints: [endpoint()] },
      { id: 'acme/one', endpoints: [endpoint({ provider: 'groq' })] },
    ]);
    expect(lines(after)).toEqual([
      '+ model acme/two',
      '- endpoint openai|acme/one',
      '+ endpoint groq|acme/one',
      '+ endpoint openai|acme/two',
    ]);
    expect(lines(plain, after)).toContain('- model acme/two');
    expect(changeCounts(catalogChanges(plain, after))).toEqual({
      models_added: 1,
      endpoints_added: 2,
      endpoints_removed: 1,
    });
  });

  test('list changed fields of a model and of an endpoint by name', () => {
    const after = catalog([
      { id: 'acme/one', name: 'One', expiration_date: '2027-01-01', endpoints: [endpoint({ quantization: 'fp8' })] },
    ]);
    const [model, changed, ...others] = lines(after);
    expect(model).toMatch(
      /^~ model acme\/one: name, description, expiration_date$|^~ model acme\/one: name, expiration_date, description$/,
    );
    expect(changed).toBe('~ endpoint openai|acme/one: quantization');
    expect(others).toEqual([]);
  });

  test('list prices in the operator’s units, and whether price changes or tiers differ', () => {
    const pricing = { prompt: 300_000, completion: 2_000_000, request: 1_000_000_000, image: 0, discount: 0.5 };
    const after = catalog([
      { id: 'acme/one', endpoints: [endpoint({ pricing, price_changes: [{ from_ms: 1, pricing }] })] },
    ]);
    expect(lines(after)).toEqual([
      '~ price openai|acme/one: prompt 0.25 -> 0.3' +
        ', request 0.005 -> 0.001, image none -> 0, discount 0 -> 0.5, prices from later days on',
    ]);
  });

  test('list added and removed providers, and changed provider fields without their values', () => {
    const models = [{ id: 'acme/one', endpoints: [endpoint()] }];
    expect(lines(catalog(models, ['openai']))).toEqual(['- provider groq']);
    expect(lines(plain, catalog(models, ['openai']))).toEqual(['+ provider groq']);
    expect(lines(catalog(models, ['openai', 'groq'], 'secret-two'))).toEqual(['~ provider openai: credential']);
  });
});
