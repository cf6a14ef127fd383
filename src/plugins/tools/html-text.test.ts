import { expect, test } from 'vitest';
import { limits } from '../../limits.ts';
import { htmlText } from './html-text.ts';
import { decodedText } from './page-text.ts';

const read = (html: string, charsMax = 10_000) =>
  htmlText(html, { base: 'https://example.com/dir/page', chars_max: charsMax });

test('a page is its title and its text, with headings, lists and links', async () => {
  const { title, text } = await read(`<!doctype html><html><head><title> A &amp;
    page </title><style>p { color: red }</style></head><body><nav><a href="/">Home</a></nav>
    <h1>Top</h1><p>One   two<br>three &eacute;&#x1F30D;</p><ul><li>first</li><li>see <a href="../x?y=1#z">there</a></li></ul>
    <pre>a
  b</pre><table><tr><td>1</td><td>2</td></tr></table><script>alert("no")</script></body></html>`);
  expect(title).toBe('A & page');
  expect(text).toBe(
    '# Top\n\nOne two\nthree é🌍\n\n- first\n\n- see [there](https://example.com/x?y=1#z)\n\na\n  b\n\n| 1 | 2',
  );
});

test.each([
  '<p hidden>x</p>',
  '<div style="display: none">x<div>x</div>x</div>',
  '<span aria-hidden="true">x</span>',
  '<p style="font-size:0px">x</p>',
  '<template>x</template>',
  '<noscript>x</noscript>',
  '<svg><text>x</text></svg>',
  '<!-- x -->',
  '<iframe>x</iframe>',
  '<textarea hidden>x</textarea>',
])('invisible content is not read: %s', async (html) => {
  expect((await read(`<body>a ${html} b</body>`)).text.replace(/\s+/g, ' ')).toBe('a b');
});

test.each([
  ['<p>a<p>b', 'a\n\nb'],
  ['<a href="javascript:alert(1)">a</a> <a href="#x">b</a>', 'a b'],
  ['</div></p>a<b>b', 'ab'],
  ['<scr<script>ipt>a</script>b', 'ipt>ab'],
  ['<img src=x alt="never" hidden>a', 'a'],
  ['a <script>b', 'a'],
  ['&lt;script&gt;', '<script>'],
])('odd markup: %s', async (html, shown) => {
  expect((await read(html)).text).toBe(shown);
});

test('a deep or endless page is read up to its bound', async () => {
  expect((await read(`${'<div>'.repeat(900)}a`)).text).toBe('a');
  expect((await read(`b${'<div>'.repeat(1_600_000)}a`)).text).toBe('b');
  expect((await read('<b>word</b> '.repeat(500_000), 1_000)).text.length).toBeGreaterThan(990);
  expect((await read(`<a href="${'x'.repeat(100_000)}">a</a>`)).text).toBe('a');
  expect((await read('<'.repeat(300_000))).text.length).toBeLessThanOrEqual(10_000);
});

test.each([
  [Buffer.from([0xe9]), 'text/plain; charset=iso-8859-1', 'é'],
  [Buffer.from([0x83, 0x8b]), 'text/plain; charset="Shift_JIS"', 'ル'],
  [Buffer.from('<meta charset="windows-1252">\x80', 'latin1'), 'text/html', '<meta charset="windows-1252">€'],
  [
    Buffer.from('<?xml version="1.0" encoding="iso-8859-2"?>\xb1', 'latin1'),
    'application/xml',
    '<?xml version="1.0" encoding="iso-8859-2"?>ą',
  ],
  [Buffer.from('\ufeffé', 'utf16le'), 'text/html; charset=utf-8', 'é'],
  [Buffer.from('é'), undefined, 'é'],
  [Buffer.from('é'), 'text/html; charset=no-such-thing', 'é'],
  [Buffer.from([0x61, 0xff]), 'text/plain', 'a\ufffd'],
])('%j of %s is %s', async (bytes, type, text) => {
  expect(await decodedText(bytes, type)).toBe(text);
});

test('a long page is decoded in pieces without cutting a character, and other work runs between them', async () => {
  let turns = 0;
  const count = () => {
    turns += 1;
    other = setImmediate(count);
  };
  let other = setImmediate(count);
  const text = `a${'語'.repeat(400_000)}`;
  const decoded = await decodedText(Buffer.from(text), 'text/plain');
  clearImmediate(other);
  expect(decoded === text).toBe(true);
  expect(turns).toBeGreaterThan(10);
});

test('a title without an end is cut at the length bound of titles', async () => {
  const { title } = await htmlText(`<title>${'x '.repeat(100_000)}`, { base: 'http://a.example/', chars_max: 100 });
  expect(title).toHaveLength(limits.web_title_chars_max);
});
