import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../config.ts';
import { anthropicModelQuirks } from '../providers/anthropic-messages/model-quirks.ts';
import { catalogOf } from './start-gateway.ts';

test('models of the Anthropic wire bring the quirks that their names tell', () => {
  const config = loadConfig({
    ANTHROPIC_API_KEY: 'sk-ant-test',
    GATEWAY_DATA_DIR: mkdtempSync(join(tmpdir(), 'gateway-')),
  });
  const endpoints = catalogOf(config)
    .endpoints()
    .filter(({ provider }) => provider === 'anthropic');
  expect(endpoints.length).toBeGreaterThan(3);
  for (const endpoint of endpoints) {
    expect(endpoint.quirks).toMatchObject(anthropicModelQuirks(endpoint.upstream_model));
  }
  expect(endpoints.some(({ quirks }) => quirks.thinking === 'adaptive')).toBe(true);
});
