import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KNOWN_SECRET, startCatalogServer } from '../../../test/http/catalog-server.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Server } from '../../http/server.ts';
import { listEmbeddingModels } from '../embeddings/list-embedding-models.ts';
import { countModels } from './count-models.ts';
import { listModels } from './list-models.ts';
import type { ModelList } from './model-list.ts';

let server: Server;
let catalog: Catalog;

beforeAll(async () => {
  ({ server, catalog } = await startCatalogServer((scope, options) => {
    listModels(scope, options);
    countModels(scope, options);
    listEmbeddingModels(scope, options);
  }));
});
afterAll(() => server.close());

async function get(url: string, headers: Record<string, string> = {}) {
  const answer = await server.inject({ method: 'GET', url, headers });
  return { status: answer.statusCode, headers: answer.headers, text: answer.body, body: answer.json() };
}

async function list(query = '', path = '/models'): Promise<ModelList> {
  const { status, text, body } = await get(`${path}${query}`);
  expect(status, text.slice(0, 300)).toBe(200);
  return body as ModelList;
}
const ids = ({ data }: ModelList) => data.map(({ id }) => id);

describe('pages of GET /models', () => {
  test('limit and offset cut the list, and links.next leads through all pages', async () => {
    const whole = await list();
    const seen: string[] = [];
    let next: string | null = '/api/v1/models?limit=40';
    let pages = 0;
    while (next !== null) {
      const page: ModelList = await list(next.slice('/api/v1/models'.length));
      expect(page.total_count).toBe(whole.total_count);
      expect(page.data.length).toBeLessThanOrEqual(40);
      expect([page.first_id, page.last_id]).toEqual([page.data[0]?.id, page.data.at(-1)?.id]);
      expect(page.has_more).toBe(page.links.next !== null);
      seen.push(...ids(page));
      next = page.links.next;
      pages += 1;
    }
    expect(seen).toEqual(ids(whole));
    expect(pages).toBe(Math.ceil(whole.data.length / 40));
    expect(await list(`?offset=${whole.data.length}`)).toMatchObject({ data: [], links: { next: null } });
    expect(ids(await list('?offset=3&limit=2'))).toEqual(ids(whole).slice(3, 5));
  });

  test('after_id and before_id are the page parameters of the Anthropic SDK', async () => {
    const all = ids(await list());
    const after = await list(`?limit=2&after_id=${encodeURIComponent(all[4]!)}`);
    expect([ids(after), after.has_more]).toEqual([all.slice(5, 7), true]);
    const before = await list(`?limit=2&before_id=${encodeURIComponent(all[4]!)}`);
    expect([ids(before), before.has_more]).toEqual([all.slice(2, 4), true]);
    expect((await list(`?limit=9&before_id=${encodeURIComponent(all[4]!)}`)).has_more).toBe(false);
    expect(await list(`?after_id=${encodeURIComponent(all.at(-1)!)}`)).toMatchObject({ data: [], has_more: false });
  });

  test('an order by price or context puts known values first', async () => {
    const figures = async (sort: string, of: (model: ModelList['data'][number]) => number | null) =>
      (await list(`?sort=${sort}`)).data.map(of);
    const price = ({ pricing }: ModelList['data'][number]) =>
      pricing.prompt === '-1' ? null : Number(pricing.prompt) + Number(pricing.completion);
    const known = (list: (number | null)[]) => {
      const cut = list.indexOf(null);
      const numbers = cut === -1 ? list : list.slice(0, cut);
      expect(list.slice(numbers.length).every((one) => one === null)).toBe(true);
      return numbers.map((one) => Math.round((one ?? 0) * 1e12));
    };
    const cheap = known(await figures('pricing-low-to-high', price));
    expect(cheap).toEqual(cheap.toSorted((a, b) => a - b));
    const dear = known(await figures('pricing-high-to-low', price));
    expect(dear).toEqual(dear.toSorted((a, b) => b - a));
    const long = known(await figures('context-high-to-low', ({ context_length }) => context_length));
    expect(long).toEqual(long.toSorted((a, b) => b - a));
    expect(ids(await list('?sort=newest'))).toEqual(ids(await list()));
  });

  test('an order by performance requires an API key and is not stored by shared caches', async () => {
    const url = '/models?sort=latency-low-to-high&limit=3';
    expect((await get(url)).body.error.message).toContain('sort latency-low-to-high needs an API key');
    const answer = await get(url, { authorization: `Bearer ${KNOWN_SECRET}` });
    expect([answer.status, answer.body.data.length]).toEqual([200, 3]);
    expect(answer.headers['cache-control']).toBe('private, no-cache');
    expect((await get('/models?sort=throughput-high-to-low&use_rss=true')).status).toBe(400);
  });

  test.each([
    ['q=claude%20opus', (id: string) => /claude.*opus/.test(id)],
    ['model_authors=OpenAI', (id: string) => /^~?openai\//.test(id)],
    ['model_authors=openai,anthropic', (id: string) => /^~?(openai|anthropic)\//.test(id)],
    ['arch=Claude', (id: string) => /claude/.test(id)],
    ['providers=Anthropic', (id: string) => /claude/.test(id)],
  ])('the filter %s selects matching models alone', async (query, matchesQuery) => {
    const listed = ids(await list(`?${query}`));
    expect(listed.length).toBeGreaterThan(2);
    expect(listed.filter((id) => !matchesQuery(id))).toEqual([]);
    expect((await get(`/models/count?${query}`)).body.data.count).toBe(listed.length);
  });

  test('filters of numbers and of parameters exclude models with unknown values', async () => {
    const now = Date.now() / 1000;
    const all = (await list()).data;
    const holds = async (query: string, rule: (model: ModelList['data'][number]) => boolean) => {
      const listed = await list(`?${query}`);
      expect(ids(listed), query).toEqual(all.filter(rule).map(({ id }) => id));
      expect(listed.data.length, query).toBeGreaterThan(0);
      expect(listed.data.length, query).toBeLessThan(all.length);
    };
    const usd = (text: string) => (text === '-1' ? Number.NaN : Math.round(Number(text) * 1e12) / 1e6);
    await holds('context=500000', ({ context_length }) => (context_length ?? 0) >= 500_000);
    await holds('min_price=1&max_price=3', ({ pricing }) => usd(pricing.prompt) >= 1 && usd(pricing.prompt) <= 3);
    await holds('min_output_price=10', ({ pricing }) => usd(pricing.completion) >= 10);
    await holds('max_output_price=0.5', ({ pricing }) => usd(pricing.completion) <= 0.5);
    await holds('input_modalities=image,file', ({ architecture: { input_modalities } }) =>
      ['image', 'file'].every((one) => (input_modalities as string[]).includes(one)),
    );
    await holds('min_age_days=600', ({ created }) => now - created > 600 * 86_400);
    const distillable = ids(await list('?distillable=true'));
    expect(distillable.length).toBeGreaterThan(0);
    expect(distillable.every((id) => catalog.find(id)?.is_distillable !== false)).toBe(true);
    expect(distillable.length + (await list('?distillable=false')).data.length).toBe(all.length);
    const keepingNothing = ids(await list('?zdr=true'));
    const policies = (id: string) =>
      catalog.find(id)?.endpoints.map(({ provider }) => catalog.provider(provider)?.data_policy.retention_days);
    expect(keepingNothing.length).toBeGreaterThan(0);
    expect(keepingNothing.filter((id) => policies(id)?.includes(0) === false)).toEqual([]);
    expect(keepingNothing.length).toBeLessThan(all.length);
  });

  test('equivalent queries share one answer', async () => {
    const one = await get('/models?providers=groq,%20OpenAI&q=GPT%20oss');
    const other = await get('/models?q=gpt%20%20oss&providers=openai,groq');
    expect(one.headers['etag']).toBe(other.headers['etag']);
    expect(one.text).toBe(other.text);
  });

  test.each([
    ['limit=0', 'limit must be at least 1'],
    ['limit=1001', 'limit must be at most 1000'],
    ['offset=-1', 'offset must be at least 0'],
    ['sort=most-popular', 'sort must be one of "newest"'],
    ['min_price=cheap', 'min_price must be a number'],
    ['zdr=false', 'zdr must be'],
    ['input_modalities=smell', 'input_modalities must be a list of text'],
    ['after_id=acme%2Fnone', 'after_id must be the id of a model of this list'],
    ['after_id=a&offset=2', 'cannot be combined with'],
    ['region=eu', 'region cannot be used as a filter: this gateway does not know in which region'],
    ['min_coding_index=3', 'min_coding_index cannot be used as a filter: this gateway has no benchmark results'],
    ['max_tool_success_rate=0.9', 'max_tool_success_rate cannot be used as a filter'],
  ])('400: %s', async (query, message) => {
    const { status, body } = await get(`/models?${query}`);
    expect(status).toBe(400);
    expect(body.error.message).toContain(message);
  });
});

describe('pages of GET /embeddings/models', () => {
  test('limit, offset, sort and filters work as for all models', async () => {
    const path = '/embeddings/models';
    const all = await list('', path);
    expect(all.data.length).toBe(4);
    const second = await list('?limit=2&offset=1', path);
    expect(ids(second)).toEqual(ids(all).slice(1, 3));
    expect(second.links.next).toMatch(/^\/api\/v1\/embeddings\/models\?.*offset=3&limit=2$/);
    expect(ids(await list('?q=openai', path)).every((id) => id.startsWith('openai/'))).toBe(true);
    expect(ids(await list('?sort=pricing-low-to-high', path)).toSorted()).toEqual(ids(all).toSorted());
  });
});
