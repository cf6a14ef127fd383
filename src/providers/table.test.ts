import { describe, expect, test } from 'vitest';
import { parameters } from '../schemas/endpoint.ts';
import { dialects } from './dialects.ts';
import { providerRow, providerRows } from './table.ts';

describe('the provider table', () => {
  test('no two rows have the same slug or display name, in any case', () => {
    const names = providerRows.flatMap(({ slug, name }) => [...new Set([slug.toLowerCase(), name.toLowerCase()])]);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });

  test('no two rows have the same source or the same variable', () => {
    const sources = providerRows.flatMap(({ source }) => source ?? []);
    expect(sources.length).toBe(new Set(sources).size);
    const variables = providerRows.flatMap((row) => [...row.credential_variables, row.address_variable ?? []].flat());
    expect(variables.length).toBe(new Set(variables).size);
  });

  test.each(providerRows)('$slug has a valid slug, address and parameter list', (row) => {
    expect(row.slug).toMatch(/^[a-z0-9-]+$/);
    const url = new URL(row.base_url.replace(/\{[A-Z_]+\}/g, 'x'));
    expect(url.protocol).toBe(row.address_variable === undefined ? 'https:' : 'http:');
    expect(row.base_url).not.toMatch(/\/$/);
    expect([...parameters, 'prediction']).toEqual(expect.arrayContaining([...row.parameters]));
    expect(row.parameters.length).toBe(new Set(row.parameters).size);
    expect(row.credential_variables.length > 0 || row.address_variable !== undefined).toBe(true);
  });

  test('refused parameters of a provider are not among its supported ones', () => {
    const both = providerRows.flatMap(({ slug, parameters: taken, quirks }) =>
      (quirks.refused_parameters ?? [])
        .filter((name) => taken.some((other) => other === name))
        .map((name) => [slug, name]),
    );
    expect(both).toEqual([]);
  });

  // https://fireworks.ai/docs/deepseek/general-deepseek: R1's reasoning is in think tags inside the content by default.
  test('think tags are read for hosts of open models and not for model makers', () => {
    const reading = providerRows.filter(({ quirks }) => quirks.think_tags).map(({ slug }) => slug);
    expect(reading).toEqual(expect.arrayContaining(['fireworks', 'huggingface', 'nebius', 'perplexity', 'vllm']));
    for (const slug of ['openai', 'azure', 'xai', 'mistral', 'deepseek']) expect(reading).not.toContain(slug);
  });

  test.each([
    ['Google AI Studio', 'google-ai-studio'],
    ['Google', 'google-vertex'],
    ['Moonshot AI', 'moonshotai'],
    ['Z.AI', 'z-ai'],
    ['xAI', 'xai'],
    ['Amazon Bedrock', 'amazon-bedrock'],
  ])('%s has the public slug %s', (name, slug) => {
    expect(providerRow.get(slug)?.name).toBe(name);
  });

  // As the public service documents it.
  test.each([
    [
      'stops billing',
      true,
      ['openai', 'azure', 'anthropic', 'fireworks', 'novita', 'deepinfra', 'together', 'cohere', 'xai', 'deepseek'],
    ],
    [
      'does not stop billing',
      undefined,
      [
        'amazon-bedrock',
        'groq',
        'google-vertex',
        'google-ai-studio',
        'minimax',
        'huggingface',
        'perplexity',
        'mistral',
        'alibaba',
        'nebius',
      ],
    ],
  ])('a closed connection %s at the listed providers', (_, expected, slugs) => {
    for (const slug of slugs) expect(providerRow.get(slug)?.abort_stops_billing, slug).toBe(expected);
  });

  test('every row has a wire with a dialect', () => {
    expect(providerRows.filter(({ dialect }) => !dialects.has(dialect)).map(({ slug }) => slug)).toEqual([]);
  });
});
