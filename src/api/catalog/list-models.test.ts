import { Errors } from 'typebox/value';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCatalogServer } from '../../../test/http/catalog-server.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Server } from '../../http/server.ts';
import { PublicModel } from '../../schemas/model.ts';
import { listModels } from './list-models.ts';

let server: Server;
let catalog: Catalog;

beforeAll(async () => {
  ({ server, catalog } = await startCatalogServer(listModels));
});
afterAll(() => server.close());

async function get(url: string, headers: Record<string, string> = {}) {
  const answer = await server.inject({ method: 'GET', url, headers });
  return { status: answer.statusCode, headers: answer.headers, body: answer.json() };
}

/** A model that is neither an alias nor a router. */
const isOfCatalog = (id: string) => catalog.find(id) !== undefined;

describe('GET /models', () => {
  test('200: every record has every field of the specification, newest first', async () => {
    const { status, headers, body } = await get('/models');
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(headers['cache-control']).toMatch(/^public, max-age=120/);
    expect(body.data.length).toBeGreaterThan(80);
    expect(body).toEqual({
      data: body.data,
      total_count: body.data.length,
      links: { next: null },
      object: 'list',
      has_more: false,
      first_id: body.data[0]?.id,
      last_id: body.data.at(-1)?.id,
    });
    for (const model of body.data) {
      expect(Errors(PublicModel, model), model.id).toEqual([]);
      expect(Object.keys(model)).toEqual(expect.arrayContaining(PublicModel.required));
    }
    const created = body.data.map((model: PublicModel) => model.created);
    expect(created).toEqual(created.toSorted((a: number, b: number) => b - a));
  });

  test('200: a record shows prices per unit, abilities and the path of its endpoints', async () => {
    const { body } = await get('/models');
    expect(body.data.find(({ id }: PublicModel) => id === 'openai/gpt-4o')).toMatchObject({
      canonical_slug: 'openai/gpt-4o-20240513',
      name: 'GPT-4o',
      created: 1715558400,
      context_length: 128000,
      knowledge_cutoff: '2023-09-30',
      architecture: {
        input_modalities: ['text', 'image', 'file'],
        modality: 'text+image+file->text',
        tokenizer: 'GPT',
      },
      pricing: { prompt: '0.0000025', completion: '0.00001', input_cache_read: '0.00000125' },
      top_provider: { context_length: 128000, max_completion_tokens: 16384 },
      links: { details: '/api/v1/models/openai/gpt-4o-20240513/endpoints' },
    });
  });

  test('200: a wrong credential is ignored', async () => {
    expect((await get('/models', { authorization: 'Bearer wrong' })).status).toBe(200);
  });

  test.each([
    ['', (output: string[]) => output.includes('text')],
    ['?output_modalities=text', (output: string[]) => output.includes('text')],
    ['?output_modalities=embeddings', (output: string[]) => output.includes('embeddings')],
    [
      '?output_modalities=image,embeddings',
      (output: string[]) => output.includes('image') || output.includes('embeddings'),
    ],
    ['?output_modalities=all', () => true],
  ])('200: %s lists exactly the models with one of these outputs', async (query, fits) => {
    const { body } = await get(`/models${query}`);
    const listed = body.data.map(({ id }: PublicModel) => id).filter(isOfCatalog);
    expect(listed).toEqual(
      catalog
        .models()
        .filter(({ output_modalities }) => fits([...output_modalities]))
        .map(({ id }) => id),
    );
    expect(listed.length).toBeGreaterThan(0);
  });

  test('200: an alias is listed if a family has several models, with the record of the newest', async () => {
    const { body } = await get('/models');
    const alias = body.data.find(({ id }: PublicModel) => id === '~anthropic/claude-opus-latest');
    const target = body.data.find(({ id }: PublicModel) => id === 'anthropic/claude-opus-4.8');
    expect(alias).toMatchObject({ pricing: target.pricing, created: target.created, canonical_slug: alias.id });
    expect(alias.description).toContain('at present anthropic/claude-opus-4.8');
    expect(body.data.map(({ id }: PublicModel) => id)).not.toContain('~anthropic/claude-haiku-latest');
  });

  test('200: a configured router model is listed with the combined capabilities of its models, and no fixed price', async () => {
    const { body } = await get('/models');
    const router = body.data.find(({ id }: PublicModel) => id === 'gateway/auto');
    expect(Errors(PublicModel, router)).toEqual([]);
    expect(router).toMatchObject({
      pricing: { prompt: '-1', completion: '-1' },
      context_length: 400000,
      architecture: { tokenizer: 'Router', input_modalities: ['text', 'image', 'file'] },
    });
    expect(router.supported_parameters).toEqual(expect.arrayContaining(['temperature', 'reasoning']));
    expect(body.data.map(({ id }: PublicModel) => id)).not.toContain('gateway/free');
  });

  test('200: supported_parameters lists exactly the models that support each of them', async () => {
    const all: PublicModel[] = (await get('/models')).body.data;
    const supports = (name: 'tools' | 'seed') => (model: PublicModel) => model.supported_parameters.includes(name);
    const expected = all.filter(supports('tools')).filter(supports('seed'));
    const { body } = await get('/models?supported_parameters=seed,%20tools,tools');
    expect(body.data.map(({ id }: PublicModel) => id)).toEqual(expected.map(({ id }) => id));
    expect(expected.length).toBeGreaterThan(0);
    expect(expected.length).toBeLessThan(all.filter(supports('tools')).length);
  });

  test('200: category lists the models that suit it', async () => {
    const ids = async (category: string) =>
      (await get(`/models?category=${category}`)).body.data.map(({ id }: PublicModel) => id);
    expect(await ids('programming')).toContain('openai/gpt-5-codex');
    expect(await ids('programming')).not.toContain('openai/gpt-4o');
    expect(await ids('marketing/seo')).toEqual([]);
  });

  test('304: an unchanged answer to the same query is not sent again', async () => {
    const first = await get('/models');
    const { etag } = first.headers;
    expect(etag).toMatch(/^"[\w-]{22}"$/);
    const again = (url: string, tag: string) =>
      server.inject({ method: 'GET', url, headers: { 'if-none-match': tag } });
    for (const tag of [`${etag}`, `W/${etag}`, `"other", ${etag}`, '*']) {
      const known = await again('/models', tag);
      expect([known.statusCode, known.body, known.headers.etag]).toEqual([304, '', etag]);
      expect(known.headers['cache-control']).toBe(first.headers['cache-control']);
    }
    expect((await again('/models', '"other"')).statusCode).toBe(200);
    expect((await again('/models?output_modalities=all', `${etag}`)).statusCode).toBe(200);
  });

  test('HEAD: the headers of the answer without its body', async () => {
    const whole = await server.inject({ method: 'GET', url: '/models' });
    const head = await server.inject({ method: 'HEAD', url: '/models' });
    expect([head.statusCode, head.body]).toEqual([200, '']);
    for (const name of ['content-length', 'content-type', 'etag', 'cache-control']) {
      expect(head.headers[name], name).toBe(whole.headers[name]);
    }
  });

  test.each([
    ['use_rss=true', 'application/rss+xml; charset=utf-8'],
    ['use_rss=1', 'application/rss+xml; charset=utf-8'],
    ['use_rss=false', 'application/json; charset=utf-8'],
    ['use_rss=', 'application/json; charset=utf-8'],
    ['use_rss_chat_links=true', 'application/json; charset=utf-8'],
  ])('200: %s answers with %s', async (query, contentType) => {
    const answer = await server.inject({ method: 'GET', url: `/models?${query}` });
    expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, contentType]);
  });

  test.each([
    ['an unknown modality', 'output_modalities=smell', 'output_modalities must be all, or a list of text'],
    ['an empty modality', 'output_modalities=', 'output_modalities must be all'],
    ['all beside others', 'output_modalities=all,text', 'output_modalities must be all'],
    ['an unknown parameter', 'supported_parameters=tools,smell', 'supported_parameters must be a list of temperature'],
    ['an empty parameter', 'supported_parameters=', 'supported_parameters must be a list of temperature'],
    ['an invalid flag', 'use_rss=maybe', 'use_rss must be true or false'],
    ['an unknown category', 'category=cooking', 'category must be one of'],
  ])('400: %s', async (_, query, message) => {
    const { status, body } = await get(`/models?${query}`);
    expect(status).toBe(400);
    expect(body.error.message).toContain(message);
  });
});
