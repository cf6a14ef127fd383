import { XmlDocument } from 'libxml2-wasm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startCatalogServer } from '../../../test/http/catalog-server.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Model } from '../../catalog/model.ts';
import type { Server } from '../../http/server.ts';
import { listModels } from './list-models.ts';
import { modelFeed } from './model-feed.ts';

let server: Server;
let catalog: Catalog;

beforeAll(async () => {
  ({ server, catalog } = await startCatalogServer(listModels));
});
afterAll(() => server.close());

/** Parses XML strictly, and returns the texts at a path. */
function texts(xml: string, path: string): string[] {
  using document = XmlDocument.fromString(xml);
  return document.find(path).map((node) => node.content);
}

const place = { origin: 'https://models.example', path: '/api/v1/models?use_rss=true', chat_links: false };

const model: Model = {
  id: 'acme/fast',
  canonical_slug: 'acme/fast-20260101',
  name: 'Acme Fast',
  description: 'Quick.',
  created: 1_767_225_600,
  context_length: 1000,
  input_modalities: ['text'],
  output_modalities: ['text'],
  tokenizer: 'Other',
  instruct_type: null,
  knowledge_cutoff: null,
  expiration_date: null,
  model_hub_id: null,
  endpoints: [],
};

describe('the feed of models', () => {
  test('is RSS 2.0 with the required elements of a channel and its items', () => {
    const xml = modelFeed([model], place);
    expect(texts(xml, '/rss[@version="2.0"]/channel[title and link and description]')).toHaveLength(1);
    expect(texts(xml, '/rss/channel/link')).toEqual(['https://models.example/']);
    expect(texts(xml, '/rss/channel/*[local-name()="link" and @rel="self"]/@href')).toEqual([
      'https://models.example/api/v1/models?use_rss=true',
    ]);
    const item = (name: string) => texts(xml, `/rss/channel/item/${name}`);
    expect(item('title')).toEqual(['Acme Fast (acme/fast)']);
    expect(item('link')).toEqual(['https://models.example/api/v1/models/acme/fast-20260101/endpoints']);
    expect(item('guid')).toEqual(['acme/fast-20260101']);
    expect(item('guid/@isPermaLink')).toEqual(['false']);
    expect(item('description')).toEqual(['<p>Quick.</p>']);
    expect(item('pubDate')).toEqual(['Thu, 01 Jan 2026 00:00:00 GMT']);
  });

  test('links to a conversation if requested', () => {
    const xml = modelFeed([model], { ...place, chat_links: true });
    expect(texts(xml, '/rss/channel/item/link')).toEqual(['https://models.example/?model=acme%2Ffast']);
  });

  test.each([
    ['markup', '</title><script>alert(1)</script>'],
    ['the end of a CDATA section', 'a]]>b]]>'],
    ['entities', '&amp; & &nope; &#0;'],
    ['a doctype', '<!DOCTYPE x [<!ENTITY e "e">]>&e;'],
    ['other scripts', '模型 ☃ 𝔐 🚀'],
  ])('shows a name with %s unchanged', (_, name) => {
    const xml = modelFeed([{ ...model, name, canonical_slug: `acme/${name}` }], place);
    expect(texts(xml, '/rss/channel/item/title')).toEqual([`${name} (acme/fast)`]);
    expect(texts(xml, '/rss/channel/item/guid')).toEqual([`acme/${name}`]);
    expect(texts(xml, '//script')).toEqual([]);
  });

  test('replaces characters that XML does not allow', () => {
    const name = 'a\u0000b\u001fc\ufffed\ud800e';
    const xml = modelFeed([{ ...model, name }], place);
    expect(texts(xml, '/rss/channel/item/title')).toEqual(['a\ufffdb\ufffdc\ufffdd\ufffde (acme/fast)']);
  });

  test('shows a description as text in paragraphs, and a long one truncated', () => {
    const description = `<b>Bold</b> & more\n\n${'🚀'.repeat(300)}`;
    const [html = ''] = texts(modelFeed([{ ...model, description }], place), '/rss/channel/item/description');
    expect(html).toMatch(/^<p>&lt;b&gt;Bold&lt;\/b&gt; &amp; more<\/p><p>(?:🚀){100,200}\.\.\.<\/p>$/u);
  });

  test('of a server lists every model, newest first, with the address of the request', async () => {
    const answer = await server.inject({ method: 'GET', url: '/models?use_rss=true', headers: { host: 'gw.example' } });
    const slugs = texts(answer.body, '/rss/channel/item/guid');
    const listed = catalog.models().filter(({ output_modalities }) => output_modalities.includes('text'));
    const isOfCatalog = (slug: string) => catalog.find(slug) !== undefined;
    expect(slugs.filter(isOfCatalog)).toEqual(listed.map(({ canonical_slug }) => canonical_slug));
    expect(new Set(slugs).size).toBe(slugs.length);
    const [link = ''] = texts(answer.body, '/rss/channel/item/link');
    expect(link).toMatch(/^http:\/\/gw\.example\/api\/v1\/models\//);
    const dates = texts(answer.body, '/rss/channel/item/pubDate').map((date) => Date.parse(date));
    expect(dates).toEqual(dates.toSorted((a, b) => b - a));
    const known = await server.inject({
      method: 'GET',
      url: '/models?use_rss=1',
      headers: { host: 'gw.example', 'if-none-match': `${answer.headers.etag}` },
    });
    expect(known.statusCode).toBe(304);
  });

  test('of a server applies filters, and escapes a hostile address', async () => {
    const answer = await server.inject({
      method: 'GET',
      url: '/models?use_rss=true&output_modalities=embeddings&use_rss_chat_links=true',
      headers: { host: "a&lt;x&gt;'.example" },
    });
    expect(answer.statusCode).toBe(200);
    expect(texts(answer.body, '//x')).toEqual([]);
    expect(texts(answer.body, '/rss/channel/item/guid').every((slug) => /embed|bge/.test(slug))).toBe(true);
    expect(texts(answer.body, '/rss/channel/item/link')[0]).toContain("http://a&lt;x&gt;'.example/?model=");
  });
});
