import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startGateway } from '../../test/harness.ts';
import { loadConfig } from '../config.ts';
import { anthropicModelQuirks } from '../providers/anthropic-messages/model-quirks.ts';
import { catalogOf } from './start-gateway.ts';

test('models of the Anthropic wire have the quirks of their names', () => {
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

test('a default model that no provider serves is a warning at the start', async () => {
  for (const [model, warned] of [
    ['acme/gpt-5', ['GATEWAY_DEFAULT_MODEL names acme/gpt-5, which no active provider serves']],
    ['sandbox/echo', []],
  ] as const) {
    const { gateway, stop } = await startGateway({ environment: { GATEWAY_DEFAULT_MODEL: model } });
    expect(gateway.warnings).toEqual(warned.map((sentence) => expect.stringContaining(sentence)));
    await stop();
  }
});
