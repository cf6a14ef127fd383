import { expect, test } from 'vitest';
import { loadConfig } from '../config.ts';

const load = (yaml: string, environment: Record<string, string> = {}) =>
  loadConfig(
    { GATEWAY_SECRET: 'x'.repeat(32), ...environment },
    { config_file_content: { path: 'gateway.yaml', text: yaml } },
  ).guardrails;

test('without a section, failing filters refuse, and the gateway detects names and addresses itself', () => {
  expect(load('{}')).toEqual({
    on_failure: 'block',
    timeout_ms: 2_000,
    phone_regions: ['US'],
    analyzer: undefined,
  });
});

test('telephone numbers are those of the listed countries, and other values are refused', () => {
  expect(load('guardrails: { phone_regions: [DE, FR] }').phone_regions).toEqual(['DE', 'FR']);
  for (const wrong of ['[]', '[de]', '[XQ]', '[DE, DE]', 'DE']) {
    expect(() => load(`guardrails: { phone_regions: ${wrong} }`)).toThrow(/phone_regions/);
  }
});

test('an analyzer is read with its defaults, and its address may include the operation', () => {
  const analyzer = { base_url: 'http://presidio:5002', api_key: undefined, language: 'en', score_min: 0.5 };
  expect(load('guardrails: { analyzer: { url: "http://presidio:5002" } }').analyzer).toEqual(analyzer);
  expect(load('guardrails: { analyzer: { url: "http://presidio:5002/analyze/" } }').analyzer).toEqual(analyzer);
  const more =
    'guardrails: { analyzer: { url: "$' + '{URL}/x", api_key: "$' + '{KEY}", language: de, score_min: 0.3 } }';
  expect(load(more, { URL: 'https://p.example', KEY: 'secret' }).analyzer).toEqual({
    base_url: 'https://p.example/x',
    api_key: 'secret',
    language: 'de',
    score_min: 0.3,
  });
});

test.each([
  ['guardrails: { analyzer: { language: en } }', /url/],
  ['guardrails: { analyzer: { url: "ftp://x" } }', /guardrails\.analyzer\.url/],
  ['guardrails: { analyzer: { url: "http://user:pass@x" } }', /guardrails\.analyzer\.url/],
  [`guardrails: { analyzer: { url: "http://x", api_key: "$\{NONE}" } }`, /NONE, which is not set/],
  ['guardrails: { analyzer: { url: "http://x", api_key: "two words" } }', /without white space/],
  ['guardrails: { analyzer: { url: "http://x", score_min: 2 } }', /score_min/],
])('%s is refused, since a missing analyzer would weaken the filters', (yaml, reason) => {
  expect(() => load(yaml)).toThrow(reason);
});
