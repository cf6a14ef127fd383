import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { loadConfig } from '../config.ts';

const folder = mkdtempSync(join(tmpdir(), 'gateway-ocr-'));
afterAll(() => rmSync(folder, { recursive: true }));

function loaded(ocr: object | undefined, environment: Record<string, string> = {}) {
  const configFile = join(folder, 'gateway.yaml');
  writeFileSync(configFile, JSON.stringify(ocr === undefined ? {} : { plugins: { file_parser: { ocr } } }));
  const { plugins, warnings } = loadConfig(environment, { config_file: configFile });
  return { ocr: plugins.file_parser.ocr, warnings };
}
const engine = 'mistral-ocr';
const key = { MISTRAL_API_KEY: 'variable' };

test('the OCR engine is disabled without a setting in the file, even with keys', () => {
  expect(loaded(undefined, key).ocr).toBeUndefined();
});

test("the OCR engine is Mistral's API at its list price, with the key of the environment or of the file", () => {
  const usual = { base_url: 'https://api.mistral.ai/v1', model: 'mistral-ocr-latest', page_nano: 2_000_000 };
  expect(loaded({ engine }, key).ocr).toEqual({ ...usual, api_key: 'variable' });
  expect(loaded({ engine, api_key: 'own' }, key).ocr).toEqual({ ...usual, api_key: 'own' });
});

test("another OCR service does not get Mistral's key", () => {
  const baseUrl = 'http://ocr.internal:8000/v1/';
  expect(loaded({ engine, base_url: baseUrl, price_per_page_usd: 0 }, key).ocr).toEqual({
    base_url: 'http://ocr.internal:8000/v1',
    api_key: undefined,
    model: 'mistral-ocr-latest',
    page_nano: 0,
  });
});

test('the OCR engine is disabled with a warning if its key is missing', () => {
  const reference = ['$', 'MISTRAL_API_KEY}'].join('{');
  for (const settings of [{ engine }, { engine, api_key: reference }]) {
    const { ocr, warnings } = loaded(settings);
    expect(ocr).toBeUndefined();
    expect(warnings).toContain('The engine mistral-ocr is off: MISTRAL_API_KEY is not set');
  }
});

test.each([
  [{}, /plugins\.file_parser\.ocr must have engine/],
  [{ engine: 'other' }, /plugins\.file_parser\.ocr\.engine/],
  [{ engine, base_url: 'ftp://a' }, /plugins\.file_parser\.ocr\.base_url must be a URL that starts with http/],
  [{ engine, api_key: 'two words' }, /plugins\.file_parser\.ocr\.api_key must be plain ASCII without white space/],
  [{ engine, price_per_page_usd: -1 }, /plugins\.file_parser\.ocr\.price_per_page_usd/],
])('a wrong OCR setting is named: %j', (settings, message) => {
  expect(() => loaded(settings, key)).toThrow(message);
});
