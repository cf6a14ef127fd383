/** Texts that a person copies or reads: requests as code, and JSON with the place of an error. */
import { expect, test } from 'vitest';
import { readJson } from '../../console/json-text.ts';
import { requests, settings } from '../../console/snippets.ts';

const IMAGE = 'data:image/png;base64,iVBORw0KGgo=';
const body = {
  model: 'a/b',
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: `it's "true", false or null` },
        { type: 'image_url', image_url: { url: IMAGE } },
      ],
    },
  ],
  stream: true,
  tools: [
    { type: 'function', function: { name: 'f', strict: true, parameters: { default: null, deprecated: false } } },
  ],
};

test('values of a request are literals of the language, also next to texts that look like literals', () => {
  const [curl, python, script] = requests('http://127.0.0.1/', body).map(({ text }) => text);
  expect(python).toContain('"strict": True,\n');
  expect(python).toContain('"parameters": {"default": None, "deprecated": False},');
  expect(python).toContain(String.raw`"it's \"true\", false or null"`);
  expect(script).toContain('"parameters": {"default": null, "deprecated": false},');
  expect(curl).toContain(String.raw`"it'\''s \"true\", false or null"`);
  expect(curl).toContain('"stream": true');
});

test('code names files in place of images, and the variable in place of the key', () => {
  for (const { text } of requests('http://127.0.0.1/', body)) {
    expect(text).toContain('image-1.png');
    expect(text).not.toContain('iVBORw0KGgo');
    expect(text).toContain('GATEWAY_KEY');
  }
});

test.each([
  ['', 'line 1, column 1: the text ends where a value is expected'],
  ['{a}', 'line 1, column 2: "a}" stands where a name in double quotes, or } is expected'],
  ['[1,\n 2,]', 'line 2, column 4: "]" stands where a value is expected'],
  ['[1 2]', 'line 1, column 4: "2" stands where a comma or ] is expected'],
  ['{"a" 1}', 'line 1, column 6: "1" stands where a colon is expected'],
  ['{"a": tru}', 'line 1, column 7: "tru}" stands where a value is expected'],
  ['[1]]', 'line 1, column 4: "]" stands where nothing more is expected'],
  ['"a\nb"', String.raw`line 1, column 1: "\"a\nb\"" stands where a value is expected`],
  ['['.repeat(5_000_000), 'longer than 1000000 characters, not checked'],
  ['['.repeat(500_000), 'line 1, column 101: nested more than 100 levels deep'],
])('a text that is not JSON gives the place of the error: %.20j', (text, fault) => {
  expect(readJson(text)).toEqual({ pretty: '', fault });
});

test('JSON is formatted without a change of its tokens: long numbers, escapes and repeated names stay', () => {
  const text = '{"n":12345678901234567890.10,"a":[],"o":{},"n":["\\u0041",{"x":null}]}';
  expect(readJson(text).pretty).toBe(
    '{\n  "n": 12345678901234567890.10,\n  "a": [],\n  "o": {},\n  "n": [\n    "\\u0041",\n    {\n      "x": null\n    }\n  ]\n}',
  );
});

test('a text that would exceed the bounds when formatted stays as it is', () => {
  const text = `${'['.repeat(99)}${'1,'.repeat(100_000)}1${']'.repeat(99)}`;
  expect(readJson(text)).toEqual({ pretty: text });
});

test('ready settings have the address of the gateway, and the secret or the variable that holds it', () => {
  const address = 'https://tools.example/ai/';
  for (const { title, text } of [...settings(address, undefined), ...settings(address, 'sk-secret')]) {
    expect([title, text]).toEqual([title, expect.stringMatching(/https:\/\/tools\.example\/ai\/api(\/v1)?(?!\/)/)]);
    expect([title, text]).toEqual([title, expect.stringMatching(/GATEWAY_KEY|sk-secret/)]);
  }
  const opencode = settings(address, undefined).find(({ title }) => title === 'OpenCode')?.text ?? '';
  expect(JSON.parse(opencode.slice(opencode.indexOf('\n')))).toMatchObject({
    provider: { gateway: { options: { apiKey: '{env:GATEWAY_KEY}', baseURL: `${address}api/v1` } } },
  });
});
