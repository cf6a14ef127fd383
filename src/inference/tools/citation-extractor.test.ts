import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ChatChunk, UrlCitation } from '../../schemas/inner.ts';
import { CITATIONS_MAX, createCitationExtractor } from './citation-extractor.ts';
import type { CitedSource } from './server-tools.ts';

const source = (url: string): CitedSource => ({ url, title: `Title of ${url}`, content: `Content of ${url}` });
const ONE = source('https://a.example/one');
const WIKI = source('https://en.wikipedia.org/wiki/A_(b)');
const SOURCES = [ONE, WIKI, source('https://Host.Example/Path/'), source('https://q.example/?a=1&b=2')];

function streamed(texts: readonly string[], size = 5): ChatChunk[] {
  const chunks = texts.flatMap((text, n): ChatChunk[] => {
    const pieces: string[] = [];
    for (let at = 0; at < text.length; at += size) pieces.push(text.slice(at, at + size));
    return [
      { delta: {}, ext: { slot: { n, open: { kind: 'text' } } } },
      ...pieces.map((content): ChatChunk => ({ delta: { content }, ext: { slot: { n } } })),
      { delta: {}, ext: { slot: { n, close: {} } } },
    ];
  });
  return [...chunks, { delta: {}, finish_reason: 'stop' }];
}

function cited(chunks: readonly ChatChunk[], sources: readonly CitedSource[] = SOURCES) {
  const out = createCitationExtractor(sources).add(chunks);
  const text = out.map(({ delta }) => delta.content ?? '').join('');
  const citations = out.flatMap(({ delta }) => (delta.annotations ?? []) as UrlCitation[]);
  return {
    out,
    text,
    citations: citations.map(({ url_citation: one }) => [
      one.url,
      [...text].slice(one.start_index, one.end_index).join(''),
    ]),
  };
}

describe('which parts of a text are citations', () => {
  test.each<[string, (string | undefined)[]]>([
    ['See [it](https://a.example/one).', ['[it](https://a.example/one)']],
    ['See [it [1]](https://a.example/one "A title")!', ['[it [1]](https://a.example/one "A title")']],
    ['See [it](<https://a.example/one>)', ['[it](<https://a.example/one>)']],
    ['Plain https://a.example/one, and more', ['https://a.example/one']],
    ['In brackets (https://a.example/one).', ['https://a.example/one']],
    ['<https://a.example/one>', ['https://a.example/one']],
    ['**https://a.example/one**', ['https://a.example/one']],
    ['[W](https://en.wikipedia.org/wiki/A_(b))', ['[W](https://en.wikipedia.org/wiki/A_(b))']],
    ['https://host.example/Path#part', ['https://host.example/Path#part']],
    ['https://q.example/?a=1&b=2', ['https://q.example/?a=1&b=2']],
    ['https://a.example/one?utm_source=x', ['https://a.example/one?utm_source=x']],
    [
      '😀 [it](https://a.example/one) 😀 https://a.example/one',
      ['[it](https://a.example/one)', 'https://a.example/one'],
    ],
  ])('%s', (text, slices) => {
    expect(cited(streamed([text])).citations.map(([, slice]) => slice)).toEqual(slices);
  });

  test.each(['https://a.example/other', 'https://a.example', 'http://a.example/one', 'a.example/one'])(
    'a text without a citation: %s',
    (text) => {
      const { citations } = cited(streamed([text]), [ONE]);
      expect(citations).toEqual([[ONE.url, '']]);
    },
  );
});

test('offsets count code points over all texts, however they are split', () => {
  const word = fc.constantFrom(
    'word ',
    '😀',
    '\n',
    '[x] ',
    '(',
    '𝒲 ',
    `[a](${ONE.url}) `,
    `${WIKI.url} `,
    ' https://no.example ',
  );
  fc.assert(
    fc.property(
      fc.array(fc.array(word), { minLength: 1, maxLength: 3 }),
      fc.integer({ min: 1, max: 7 }),
      (made, size) => {
        const texts = made.map((words) => words.join(''));
        const { text, citations } = cited(streamed(texts, size));
        expect(text).toBe(texts.join(''));
        const wanted = made.flat().filter((one) => one.includes(ONE.url) || one.includes(WIKI.url));
        if (wanted.length === 0) expect(citations).toHaveLength(SOURCES.length);
        else expect(citations.map(([, slice]) => slice)).toEqual(wanted.map((one) => one.trim()));
      },
    ),
  );
});

test('a citation follows its text, before the block is closed', () => {
  const { out } = cited(streamed([`See ${ONE.url}`, 'More']));
  const at = out.findIndex(({ delta }) => delta.annotations !== undefined);
  expect(out[at]!.ext?.slot?.n).toBe(0);
  expect(out[at + 1]!.ext?.slot?.close).toBeDefined();
});

test('without sources every chunk passes unchanged', () => {
  const chunks = streamed([`See ${ONE.url}`]);
  expect(createCitationExtractor([]).add(chunks)).toEqual(chunks);
});

test('own citations of the provider are used, without a list of the other sources', () => {
  const own: ChatChunk = {
    delta: {
      annotations: [{ type: 'url_citation', url_citation: { url: 'https://p.example', start_index: 0, end_index: 1 } }],
    },
  };
  const chunks = streamed(['Well']);
  expect(cited([own, ...chunks]).citations).toHaveLength(1);
});

test('a text of links alone is searched in linear time, and the number of citations is bounded', () => {
  const { citations } = cited(streamed([`[a](${ONE.url}) `.repeat(5_000), '['.repeat(50_000) + ONE.url], 4096));
  expect(citations).toHaveLength(CITATIONS_MAX);
});
