import { expect, test } from 'vitest';
import { buildCatalog } from '../catalog/catalog.ts';
import { loadConfig, readBundledCatalog } from '../config.ts';
import { cheapModel, exampleModel } from './example-model.ts';
import { addSandbox } from './with-sandbox.ts';

function started(environment: Record<string, string>) {
  const config = loadConfig(environment, { config_file_content: null });
  const whole = config.sandbox ? addSandbox(config, 'http://127.0.0.1:29') : config;
  const { providers } = whole;
  return {
    config,
    catalog: buildCatalog({ bundled: readBundledCatalog(), config: whole, providers, created_default: 0 }),
  };
}

const exampleOf = (environment: Record<string, string>) => {
  const { config, catalog } = started(environment);
  return exampleModel(config, catalog);
};

test('the first request names an available model: of the sandbox, the default, or a cheap one', () => {
  expect(exampleOf({})).toBe('sandbox/story');
  expect(exampleOf({ OPENAI_API_KEY: 'k' })).toMatch(/^openai\//);
  expect(exampleOf({ OPENAI_API_KEY: 'k', GATEWAY_DEFAULT_MODEL: 'openai/gpt-5' })).toBe('openai/gpt-5');
  expect(exampleOf({ GATEWAY_SANDBOX: 'off' })).toBeUndefined();
});

test('a cheap model belongs to the provider, returns only text, has a price, and is not expensive', () => {
  const { catalog } = started({ OPENAI_API_KEY: 'k', ANTHROPIC_API_KEY: 'k', VOYAGE_API_KEY: 'k' });
  for (const provider of ['openai', 'anthropic']) {
    const model = cheapModel(catalog, 'text', provider);
    expect(model?.output_modalities).toEqual(['text']);
    const { pricing } = model?.endpoints.find((endpoint) => endpoint.provider === provider) ?? {};
    // In pico-USD for a token: at most ten dollars for a million.
    expect(pricing?.completion).toBeLessThanOrEqual(10_000_000);
  }
  expect(cheapModel(catalog, 'text', 'voyageai')).toBeUndefined();
  expect(cheapModel(catalog, 'embeddings', 'voyageai')).toBeDefined();
});
