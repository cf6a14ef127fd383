import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { inTier } from '../../test/tier.ts';
import { printBundledCatalog } from './bundled.ts';
import type { Listing, ModelsDev, PublicSlugs } from './listing.ts';
import { bundleCatalog } from './models-dev.ts';

type Facts = Partial<Listing> & { id: string };

/** A models.dev file with these listings by provider. */
function source(providers: Record<string, Facts[]>): ModelsDev {
  return Object.fromEntries(
    Object.entries(providers).map(([id, listings]) => [
      id,
      {
        models: Object.fromEntries(
          listings.map((facts) => [
            facts.id,
            { name: facts.id, release_date: '2025-01-02', cost: { input: 1, output: 2 }, ...facts },
          ]),
        ),
      },
    ]),
  );
}

function bundle(providers: Record<string, Facts[]>, slugs: PublicSlugs = {}) {
  return bundleCatalog(source(providers), slugs);
}

/** `id: tag=upstream, tag=upstream` of each model. */
function shown(providers: Record<string, Facts[]>, slugs: PublicSlugs = {}): string[] {
  return bundle(providers, slugs).catalog.models.map(
    ({ id, endpoints }) =>
      `${id}: ${endpoints.map(({ provider, variant, model }) => `${provider}${variant ? `/${variant}` : ''}=${model}`).join(', ')}`,
  );
}

describe('listings are one model', () => {
  test('for the same name at its maker and at hosts, whatever the spelling', () => {
    expect(
      shown({
        zai: [{ id: 'glm-4.6' }],
        deepinfra: [{ id: 'zai-org/GLM-4.6' }],
        'fireworks-ai': [{ id: 'accounts/fireworks/models/glm-4p6' }],
      }),
    ).toEqual(['z-ai/glm-4.6: z-ai=glm-4.6, fireworks=accounts/fireworks/models/glm-4p6, deepinfra=zai-org/GLM-4.6']);
  });

  test('under the public id if its name or base model matches', () => {
    const slugs = {
      'anthropic/claude-sonnet-4.5': { name: 'Claude Sonnet 4.5', base_model: 'anthropic/claude-sonnet-4-5' },
      'qwen/qwen3-coder': { name: 'Qwen3 Coder 480B A35B' },
    };
    expect(
      shown(
        { anthropic: [{ id: 'claude-sonnet-4-5' }], nebius: [{ id: 'Qwen/Qwen3-Coder-480B-A35B-Instruct' }] },
        slugs,
      ),
    ).toEqual([
      'anthropic/claude-sonnet-4.5: anthropic=claude-sonnet-4-5',
      'qwen/qwen3-coder: nebius=Qwen/Qwen3-Coder-480B-A35B-Instruct',
    ]);
  });

  test('with variants for editions of a host, and separate models for editions of the maker', () => {
    expect(
      shown(
        {
          moonshotai: [{ id: 'kimi-k2' }, { id: 'kimi-k2-turbo', base_model: 'moonshotai/kimi-k2' }],
          deepinfra: [{ id: 'moonshotai/Kimi-K2-fp8' }, { id: 'moonshotai/Kimi-K2' }],
        },
        { 'moonshotai/kimi-k2': { name: 'Kimi K2' } },
      ),
    ).toEqual([
      'moonshotai/kimi-k2: moonshotai=kimi-k2, deepinfra=moonshotai/Kimi-K2, deepinfra/fp8=moonshotai/Kimi-K2-fp8',
      'moonshotai/kimi-k2-turbo: moonshotai=kimi-k2-turbo',
    ]);
  });

  test('unless the name is more specific than a stated base model', () => {
    expect(
      shown(
        {
          novita: [],
          'novita-ai': [{ id: 'deepseek/deepseek-r1-distill-qwen-32b', base_model: 'deepseek/deepseek-r1' }],
        },
        { 'deepseek/deepseek-r1': { name: 'DeepSeek R1', base_model: 'deepseek/deepseek-r1' } },
      ),
    ).toEqual(['deepseek/deepseek-r1-distill-qwen-32b: novita=deepseek/deepseek-r1-distill-qwen-32b']);
  });

  test('if the list of other names connects them', () => {
    expect(
      shown(
        { mistral: [{ id: 'mistral-small-2506' }], scaleway: [{ id: 'mistral-small-3.2-24b-instruct-2506' }] },
        { 'mistralai/mistral-small-3.2-24b-instruct': { name: 'Mistral Small 3.2 24B' } },
      ),
    ).toEqual([
      'mistralai/mistral-small-3.2-24b-instruct: mistral=mistral-small-2506, scaleway=mistral-small-3.2-24b-instruct-2506',
    ]);
  });

  test('but not for an edition of another organization', () => {
    expect(shown({ togetherai: [{ id: 'google/gemma-4-31b-it' }, { id: 'pearl-ai/gemma-4-31b-it' }] })).toEqual([
      'google/gemma-4-31b-it: together=google/gemma-4-31b-it',
      'pearl-ai/gemma-4-31b-it: together=pearl-ai/gemma-4-31b-it',
    ]);
  });

  test('but not for a moving alias and an old model of that name', () => {
    const slugs = { 'mistralai/mistral-large': { name: 'Mistral Large', release_date: '2024-02-26' } };
    const alias = { id: 'mistral-large-latest', name: 'Mistral Large (latest)', release_date: '2025-12-02' };
    expect(shown({ mistral: [alias] }, slugs)).toEqual([
      'mistralai/mistral-large-latest: mistral=mistral-large-latest',
    ]);
  });

  test('and one endpoint for a dated snapshot beside its alias', () => {
    const { catalog, left_out: leftOut } = bundle({
      anthropic: [{ id: 'claude-haiku-4-5-20251001' }, { id: 'claude-haiku-4-5' }],
    });
    expect(catalog.models.flatMap(({ endpoints }) => endpoints.map(({ model }) => model))).toEqual([
      'claude-haiku-4-5',
    ]);
    expect(leftOut).toEqual([
      { provider: 'anthropic', model: 'claude-haiku-4-5-20251001', reason: 'the same endpoint as claude-haiku-4-5' },
    ]);
  });
});

describe('listings are left out', () => {
  test.each([
    ['deprecated', { openai: [{ id: 'gpt-1', status: 'deprecated' }] }, 'deprecated'],
    [
      'speech',
      { openai: [{ id: 'tts-9', modalities: { input: ['text'], output: ['audio'] } }] },
      'not a model of an operation that the gateway has',
    ],
    ['with an unknown maker', { azure: [{ id: 'model-router' }] }, 'its maker is not known'],
    [
      'with a price of zero for an unknown model',
      { nvidia: [{ id: 'nvidia/thing', cost: { input: 0, output: 0 } }] },
      'no price, and no other provider of the model',
    ],
    [
      'with a price of zero at a host that charges',
      { zai: [{ id: 'glm-4.7' }], huggingface: [{ id: 'zai-org/GLM-4.7', cost: { input: 0, output: 0 } }] },
      'a price of zero at a host that charges',
    ],
    [
      'with another address',
      { azure: [{ id: 'claude-x', provider: { npm: '@ai-sdk/anthropic' } }] },
      'another address or wire than its provider',
    ],
  ])('%s', (_, providers, reason) => {
    expect(bundle(providers as Record<string, Facts[]>).left_out).toMatchObject([{ reason }]);
  });
});

describe('facts', () => {
  const one = (facts: Facts, provider = 'openai') => bundle({ [provider]: [facts] }).catalog.models[0];

  test('prices become integer pico-USD per token', () => {
    expect(
      one({
        id: 'gpt-x',
        cost: { input: 0.049999999999999996, output: 10, cache_read: 0.125, input_audio: 32, reasoning: 3 },
      })?.endpoints[0]?.price,
    ).toEqual({
      prompt: 50_000,
      completion: 10_000_000,
      input_cache_read: 125_000,
      audio: 32_000_000,
      internal_reasoning: 3_000_000,
    });
  });

  test('a price of zero beside a real price counts as no price', () => {
    expect(one({ id: 'gpt-x', cost: { input: 1, output: 2, cache_write: 0 } })?.endpoints[0]?.price).toEqual({
      prompt: 1_000_000,
      completion: 2_000_000,
    });
  });

  test("Claude's hour-long cache writes cost twice the input", () => {
    const price = one(
      { id: 'claude-x', cost: { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 } },
      'anthropic',
    )?.endpoints[0]?.price;
    expect(price).toMatchObject({ input_cache_write: 3_750_000, input_cache_write_1h: 6_000_000 });
  });

  test('searches have a price at the maker of Claude, which models.dev lacks', () => {
    const cost = { input: 3, output: 15 };
    expect(one({ id: 'claude-x', cost }, 'anthropic')?.endpoints[0]?.price?.web_search).toBe(10_000_000_000);
    expect(one({ id: 'gpt-x', cost })?.endpoints[0]?.price).not.toHaveProperty('web_search');
  });

  test('models with search have a price for searches, and others have none', () => {
    const priceOf = (id: string, slug?: string) =>
      one({ id, cost: { input: 3, output: 15 } }, slug)?.endpoints[0]?.price?.web_search;
    expect(['gpt-5', 'gpt-5.4-mini', 'gpt-4.1', 'o3'].map((id) => priceOf(id))).toEqual(Array(4).fill(10_000_000_000));
    expect(['gpt-4.1-nano', 'gpt-4', 'o3-mini', 'gpt-5-chat-latest'].map((id) => priceOf(id))).toEqual(
      Array(4).fill(undefined),
    );
    expect(priceOf('grok-4.3', 'xai')).toBe(5_000_000_000);
    expect(priceOf('grok-3', 'xai')).toBeUndefined();
    for (const slug of ['google', 'google-vertex']) {
      expect(priceOf('gemini-2.5-pro', slug)).toBe(35_000_000_000);
      expect(priceOf('gemini-3-flash-preview', slug)).toBe(14_000_000_000);
    }
    expect(priceOf('gemma-4-31b-it', 'google')).toBeUndefined();
  });

  test('searches over the Responses API have a price, in every price list', () => {
    const tiers = [{ tier: { size: 200_000 }, input: 6, output: 30 }];
    const endpoint = one({ id: 'gpt-5-pro', cost: { input: 3, output: 15, tiers } })?.endpoints[0];
    expect(endpoint?.dialect).toBe('openai-responses');
    expect(endpoint?.price?.web_search).toBe(10_000_000_000);
    expect(endpoint?.tiers?.[0]?.price.web_search).toBe(10_000_000_000);
    expect(endpoint?.service_tiers?.['flex']?.pricing.web_search).toBe(10_000_000_000);
    expect(endpoint?.service_tiers?.['flex']?.price_tiers?.[0]?.price.web_search).toBe(10_000_000_000);
  });

  test('long-context prices are kept', () => {
    const tiers = [{ tier: { size: 200_000 }, input: 2.5, output: 15 }];
    expect(one({ id: 'gpt-x', cost: { input: 1.25, output: 10, tiers } })?.endpoints[0]?.tiers).toEqual([
      { prompt_tokens_over: 200_000, price: { prompt: 2_500_000, completion: 15_000_000 } },
    ]);
  });

  test('requests to Sonar have a fee, which models.dev lacks', () => {
    const cost = { input: 1, output: 1 };
    expect(one({ id: 'sonar', cost }, 'perplexity')?.endpoints[0]?.price?.request).toBe(5_000_000_000);
    expect(one({ id: 'sonar-deep-research', cost }, 'perplexity')?.endpoints[0]?.price).not.toHaveProperty('request');
  });

  test("OpenAI's flex tier is half the price of every token, at any length", () => {
    const tiers = [{ tier: { size: 272_000 }, input: 5, output: 22.5, cache_read: 0.5 }];
    const listing = { id: 'gpt-x', cost: { input: 2.5, output: 15, cache_read: 0.25, tiers } };
    expect(one(listing)?.endpoints[0]?.service_tiers).toEqual({
      flex: {
        pricing: { prompt: 1_250_000, completion: 7_500_000, input_cache_read: 125_000 },
        price_tiers: [
          {
            prompt_tokens_over: 272_000,
            price: { prompt: 2_500_000, completion: 11_250_000, input_cache_read: 250_000 },
          },
        ],
      },
    });
    expect(one({ ...listing, id: 'openai/gpt-x' }, 'groq')?.endpoints[0]).not.toHaveProperty('service_tiers');
    expect(one({ ...listing, id: 'claude-x' }, 'anthropic')?.endpoints[0]).not.toHaveProperty('service_tiers');
  });

  test('a serving mode that is a service tier becomes one, and others do not', () => {
    const cost = { input: 5, output: 30, cache_read: 0.5 };
    const modes = {
      fast: { cost, provider: { body: { service_tier: 'priority' } } },
      faster: { cost, provider: { body: { speed: 'fast' } } },
      free: { provider: { body: { service_tier: 'batch' } } },
    };
    const listing = { id: 'gpt-x', cost: { input: 2.5, output: 15 }, experimental: { modes } };
    expect(one(listing)?.endpoints[0]?.service_tiers).toEqual({
      flex: { pricing: { prompt: 1_250_000, completion: 7_500_000 } },
      priority: { pricing: { prompt: 5_000_000, completion: 30_000_000, input_cache_read: 500_000 } },
    });
    expect(Object.keys(one({ ...listing, experimental: {} })?.endpoints[0]?.service_tiers ?? {})).toEqual(['flex']);
  });

  test('dates, limits and modalities are converted to the public form', () => {
    expect(
      one({
        id: 'gpt-x',
        release_date: '2025-04',
        knowledge: '2024-02',
        limit: { context: 128_000, input: 0, output: 4_096 },
        modalities: { input: ['text', 'image', 'pdf'], output: ['text'] },
        weights: [{ label: 'Hugging Face', url: 'https://huggingface.co/openai/gpt-x' }],
      }),
    ).toMatchObject({
      canonical_slug: 'openai/gpt-x-20250401',
      created: Date.UTC(2025, 3, 1) / 1000,
      knowledge_cutoff: '2024-02-29',
      input: ['text', 'image', 'file'],
      tokenizer: 'GPT',
      hub: 'openai/gpt-x',
      endpoints: [{ context: 128_000, completion_max: 4_096 }],
    });
    expect(one({ id: 'gpt-x', limit: { input: 0 } })?.endpoints[0]).not.toHaveProperty('prompt_max');
    // Data of third parties: a value that is not a whole number is ignored.
    const odd = one({ id: 'gpt-x', limit: { context: '128000' as never, output: 0.5 } });
    expect(odd).not.toHaveProperty('context');
    expect(odd?.endpoints[0]).not.toHaveProperty('context');
    expect(odd?.endpoints[0]).not.toHaveProperty('completion_max');
  });

  test('abilities follow the facts, and only known effort levels are kept', () => {
    const facts = { tool_call: true, reasoning: true, temperature: false };
    const efforts = (values: string[]) => ({ reasoning_options: [{ type: 'effort', values }] });
    expect(one({ id: 'gpt-x', ...facts, ...efforts(['none', 'low']) })?.endpoints[0]).toMatchObject({
      can: ['tools', 'structured', 'reasoning', 'effort'],
      quirks: { reasoning_efforts: ['none', 'low'] },
    });
    expect(one({ id: 'gpt-x', ...facts, ...efforts(['none', 'default']) })?.endpoints[0]).toMatchObject({
      can: ['tools', 'structured', 'reasoning'],
    });
  });

  test("a host with fewer modalities than the model's maker has them at its endpoint", () => {
    const sees = { input: ['text', 'image'], output: ['text'] };
    const endpoints = bundle({
      zai: [{ id: 'glm-4.6v', modalities: sees }],
      deepinfra: [{ id: 'zai-org/GLM-4.6V', modalities: sees }],
      siliconflow: [{ id: 'zai-org/GLM-4.6V', modalities: { input: ['text'], output: ['text'] } }],
    }).catalog.models[0]?.endpoints;
    expect(endpoints?.map(({ provider, input }) => [provider, input])).toEqual([
      ['z-ai', undefined],
      ['deepinfra', undefined],
      ['siliconflow', ['text']],
    ]);
  });

  test("Azure gets other makers' models under the older parameter names", () => {
    const quirks = (id: string) => one({ id }, 'azure')?.endpoints[0]?.quirks;
    expect(quirks('gpt-x')).toBeUndefined();
    expect(quirks('mistral-large-2411')).toEqual({ system_role: 'system', output_bound_field: 'max_tokens' });
  });

  test('a number format in a name is kept, also if the display name identified the model', () => {
    const listing = { id: 'zai-org/GLM-5-FP8', name: 'GLM-5' };
    expect(bundle({ wandb: [listing] }, { 'z-ai/glm-5': { name: 'GLM-5' } }).catalog.models[0]).toMatchObject({
      id: 'z-ai/glm-5',
      endpoints: [{ quantization: 'fp8' }],
    });
  });

  test("xAI's multi-agent model is not served by chat completions", () => {
    expect(one({ id: 'grok-9-multi-agent' }, 'xai')?.endpoints[0]?.dialect).toBe('openai-responses');
  });

  test('models that OpenAI serves by its Responses API alone have that wire', () => {
    const { catalog } = bundle({
      openai: [{ id: 'gpt-5.5-pro' }, { id: 'gpt-5.3-codex' }, { id: 'o3-pro' }, { id: 'gpt-5.5' }],
    });
    expect(catalog.models.map(({ id, endpoints }) => [id, endpoints[0]?.dialect])).toEqual([
      ['openai/gpt-5.3-codex', 'openai-responses'],
      ['openai/gpt-5.5', undefined],
      ['openai/gpt-5.5-pro', 'openai-responses'],
      ['openai/o3-pro', 'openai-responses'],
    ]);
  });
});

test('a known model keeps its id, canonical slug and date', () => {
  const first = bundleCatalog(source({ openai: [{ id: 'gpt-x' }] }), { 'openai/gpt-ex': { name: 'gpt-x' } }).catalog;
  expect(first.models[0]?.id).toBe('openai/gpt-ex');
  const again = bundleCatalog(source({ openai: [{ id: 'gpt-x', release_date: '2026-06-01' }] }), {}, first).catalog;
  expect(again).toEqual(first);
});

const shared = new URL('../../../shared/catalog/', import.meta.url);
const present = inTier(false, existsSync(shared));

describe('the facts of July 2026', () => {
  test.runIf(present)('produce the bundled catalog, byte for byte', () => {
    const read = (name: string) => JSON.parse(readFileSync(new URL(name, shared), 'utf8'));
    const { catalog } = bundleCatalog(read('models-dev-api.json'), read('public-slugs.json'));
    const bundled = readFileSync(new URL('../../catalog/models.json', import.meta.url), 'utf8');
    expect(printBundledCatalog(catalog) === bundled).toBe(true);
  });
});
