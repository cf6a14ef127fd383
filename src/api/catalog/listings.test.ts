import { expect, test } from 'vitest';
import { buildCatalog } from '../../catalog/catalog.ts';
import { loadConfig } from '../../config.ts';
import { CATALOG_ANSWERS_BYTES_MAX, CATALOG_ANSWERS_MAX, createListings, modelListJson } from './listings.ts';
import { modelQuery } from './model-query.ts';
import { paged } from './model-selection.ts';

const routers = { auto_models: undefined, free_models: undefined };
const noon = Date.parse('2027-01-31T12:00:00Z');

const catalog = buildCatalog({
  bundled: { format: 1, models: [] },
  config: {
    bundled_catalog: false,
    models: [
      {
        id: 'acme/one',
        endpoints: [
          {
            provider: 'openai',
            upstream_model: 'm',
            pricing: { prompt: 1_000_000, completion: 2_000_000 },
            price_changes: [{ from_ms: noon, pricing: { prompt: 3_000_000, completion: 2_000_000 } }],
          },
        ],
      },
    ],
  },
  providers: loadConfig({ OPENAI_API_KEY: 'k' }).providers,
  created_default: 0,
});

/** The list as it is sent at this time. */
function listAt(nowMs: number, listingsFor = createListings()) {
  const listings = listingsFor(catalog.at(nowMs), routers);
  const query = modelQuery({});
  const page = paged(listings.models(query), query.page, ({ model }) => model.id);
  return listings.answer('all', () => ({ text: modelListJson(page, '/models', query), content_type: 'json' }));
}

test('an answer is made once, and again with another tag when a price changes', () => {
  const listingsFor = createListings();
  const before = listAt(noon - 2, listingsFor);
  expect(listAt(noon - 1, listingsFor)).toBe(before);
  const after = listAt(noon, listingsFor);
  expect(after.etag).not.toBe(before.etag);
  expect(JSON.parse(after.body.toString()).data[0].pricing.prompt).toBe('0.000003');
  expect(listAt(noon + 86_400_000, listingsFor)).toBe(after);
});

test('the tag of the same answer is the same in another process', () => {
  expect(listAt(noon).etag).toBe(listAt(noon).etag);
});

test('answers are bounded in number and in bytes, and the least recently used one is removed first', () => {
  const listings = createListings()(catalog, routers);
  let made = 0;
  const answer = (key: string, text: string = key) =>
    listings.answer(key, () => {
      made += 1;
      return { text, content_type: 'text' };
    });
  for (let at = 0; at < CATALOG_ANSWERS_MAX; at += 1) answer(`${at}`);
  answer('0');
  expect(made).toBe(CATALOG_ANSWERS_MAX);
  answer('one more');
  answer('0');
  expect(made).toBe(CATALOG_ANSWERS_MAX + 1);
  answer('1');
  expect(made).toBe(CATALOG_ANSWERS_MAX + 2);
  made = 0;
  answer('large', 'x'.repeat(CATALOG_ANSWERS_BYTES_MAX + 1));
  answer('0');
  expect(made).toBe(2);
});
