import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { providerRows } from '../providers/table.ts';
import { quantizations } from '../schemas/endpoint.ts';
import { inputModalities, outputModalities, tokenizers } from '../schemas/model.ts';
import { parseBundledCatalog, printBundledCatalog } from './bundled.ts';

const text = readFileSync(new URL('../../catalog/models.json', import.meta.url), 'utf8');
const { models } = parseBundledCatalog(text);
const endpoints = models.flatMap((model) => model.endpoints.map((endpoint) => ({ id: model.id, endpoint })));

/** `tag=upstream model` of every endpoint of a model. */
function endpointsOf(id: string): string[] {
  const model = models.find((candidate) => candidate.id === id);
  return (model?.endpoints ?? []).map(
    ({ provider, variant, model: upstream }) => `${provider}${variant === undefined ? '' : `/${variant}`}=${upstream}`,
  );
}

describe('the bundled catalog', () => {
  test('is written with one model a line and can be read back', () => {
    expect(text.split('\n').length).toBe(models.length + 3);
    expect(printBundledCatalog(parseBundledCatalog(text))).toBe(text);
    expect(() => parseBundledCatalog('{"format":2,"models":[]}')).toThrow('Not a catalog of this version');
  });

  test.each([
    'openai',
    'anthropic',
    'google-ai-studio',
    'mistral',
    'groq',
    'deepseek',
    'xai',
    'together',
    'fireworks',
    'deepinfra',
    'cerebras',
    'cohere',
    'moonshotai',
    'z-ai',
    'alibaba',
    'nebius',
    'novita',
    'perplexity',
    'nvidia',
    'huggingface',
    'azure',
    'amazon-bedrock',
    'google-vertex',
    'ollama-cloud',
  ])('has endpoints of %s', (slug) => {
    expect(endpoints.some(({ endpoint }) => endpoint.provider === slug)).toBe(true);
  });

  test('every provider with a source has endpoints, and every endpoint has a known provider', () => {
    const used = new Set(endpoints.map(({ endpoint }) => endpoint.provider));
    expect(providerRows.filter(({ slug, source }) => source !== undefined && !used.has(slug))).toEqual([]);
    const known = new Set(providerRows.map(({ slug }) => slug));
    expect([...used].filter((slug) => !known.has(slug))).toEqual([]);
  });

  test('no two models share an id or a canonical slug, and no two endpoints share a tag', () => {
    const names = models.flatMap(({ id, canonical_slug: canonicalSlug }) =>
      id === canonicalSlug ? [id] : [id, canonicalSlug],
    );
    expect(names.length).toBe(new Set(names).size);
    const tags = endpoints.map(({ id, endpoint }) => `${endpoint.provider}/${endpoint.variant ?? ''}|${id}`);
    expect(tags.length).toBe(new Set(tags).size);
  });

  test('no upstream model belongs to two models', () => {
    const upstream = endpoints.map(({ endpoint }) => `${endpoint.provider} ${endpoint.model}`);
    expect(upstream.filter((name, index) => upstream.indexOf(name) !== index)).toEqual([]);
  });

  test('every id is author/slug in lower case, and every price is an integer in pico-USD', () => {
    expect(models.filter(({ id }) => !/^[a-z0-9-]+\/[a-z0-9._-]+$/.test(id)).map(({ id }) => id)).toEqual([]);
    const prices = endpoints.flatMap(({ endpoint }) =>
      [
        endpoint.price,
        ...(endpoint.tiers ?? []).map(({ price }) => price),
        ...Object.values(endpoint.service_tiers ?? {}).map(({ pricing }) => pricing),
      ].flatMap((price) => Object.values(price ?? {})),
    );
    expect(prices.length).toBeGreaterThan(2_000);
    expect(prices.filter((price) => !Number.isSafeInteger(price) || price < 0)).toEqual([]);
  });

  test('a price of zero is accepted only from the maker or for a trial', () => {
    const gratis = endpoints.filter(({ endpoint }) => endpoint.price?.prompt === 0);
    expect(new Set(gratis.map(({ endpoint }) => endpoint.provider))).toEqual(new Set(['nvidia', 'z-ai']));
  });

  test('every enumerated fact has a value of the public schema', () => {
    for (const { id, created, input, output, tokenizer, endpoints: own } of models) {
      expect(created, id).toBeGreaterThan(Date.UTC(2020, 0) / 1000);
      expect(inputModalities, id).toEqual(expect.arrayContaining(input));
      expect(outputModalities, id).toEqual(expect.arrayContaining(output));
      expect(tokenizers, id).toContain(tokenizer);
      for (const { quantization = 'unknown' } of own) expect(quantizations, id).toContain(quantization);
    }
  });

  test.each([
    ['openai/gpt-4o', ['openai=gpt-4o', 'azure=gpt-4o']],
    ['openai/gpt-4o-2024-05-13', ['openai=gpt-4o-2024-05-13']],
    ['anthropic/claude-sonnet-4', ['anthropic=claude-sonnet-4-0']],
    [
      'qwen/qwen-2.5-coder-32b-instruct',
      ['cloudflare=@cf/qwen/qwen2.5-coder-32b-instruct', 'nvidia=qwen/qwen2.5-coder-32b-instruct'],
    ],
    [
      'moonshotai/kimi-k2',
      [
        'moonshotai=kimi-k2-0711-preview',
        'novita=moonshotai/kimi-k2-instruct',
        'huggingface=moonshotai/Kimi-K2-Instruct',
      ],
    ],
    ['mistralai/mistral-large-latest', ['mistral=mistral-large-latest']],
  ])('%s is served by %j', (id, expected) => {
    expect(endpointsOf(id)).toEqual(expected);
  });

  test.each([
    [
      'anthropic/claude-sonnet-4.5',
      ['anthropic=claude-sonnet-4-5', 'amazon-bedrock/eu=eu.anthropic.claude-sonnet-4-5-20250929-v1:0'],
    ],
    [
      'meta-llama/llama-3.3-70b-instruct',
      [
        'groq=llama-3.3-70b-versatile',
        'deepinfra/turbo=meta-llama/Llama-3.3-70B-Instruct-Turbo',
        'azure=llama-3.3-70b-instruct',
      ],
    ],
    [
      'deepseek/deepseek-v3.2',
      ['azure=deepseek-v3.2', 'deepinfra=deepseek-ai/DeepSeek-V3.2', 'amazon-bedrock=deepseek.v3.2'],
    ],
    [
      'openai/gpt-oss-120b',
      ['groq=openai/gpt-oss-120b', 'cerebras=gpt-oss-120b', 'fireworks=accounts/fireworks/models/gpt-oss-120b'],
    ],
    ['z-ai/glm-4.7', ['z-ai=glm-4.7', 'cerebras=zai-glm-4.7']],
  ])('%s is also served by %j', (id, expected) => {
    expect(endpointsOf(id)).toEqual(expect.arrayContaining(expected));
  });
});
