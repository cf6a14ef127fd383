import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../test/harness.ts';
import { readConfigFile } from '../config/read-file.ts';
import { loadConfig } from '../config.ts';
import { addSandbox, declaredSandbox } from './with-sandbox.ts';

describe('the web search of the sandbox', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.stop());

  async function answerTo(body: object) {
    const messages = [{ role: 'user', content: 'Who discovered Neptune?' }];
    const response = await gateway.call('POST', '/chat/completions', { messages, ...body });
    const answer = (await response.json()) as {
      choices: { message: { content: string; annotations: { url_citation: Citation }[] } }[];
    };
    expect({ status: response.status, answer }).toMatchObject({ status: 200 });
    return answer.choices[0]!.message;
  }

  interface Citation {
    url: string;
    start_index: number;
    end_index: number;
  }

  test('is cited by a model that calls the tool, if the filters of the request allow it', async () => {
    const parameters = {
      max_results: 3,
      allowed_domains: ['neptune.example'],
      excluded_domains: ['old.neptune.example'],
    };
    const { content, annotations } = await answerTo({
      model: 'sandbox/research',
      tools: [{ type: 'gateway:web_search', parameters }],
    });
    expect(annotations).toHaveLength(3);
    for (const { url_citation: cited } of annotations) {
      expect(URL.parse(cited.url)?.host).toBe('neptune.example');
      expect([...content].slice(cited.start_index, cited.end_index).join('')).toContain(cited.url);
    }
  });

  test('runs for the plugin and the suffix as well', async () => {
    const requests = [
      { model: 'sandbox/echo:online' },
      { model: 'sandbox/echo', plugins: [{ id: 'web', max_results: 5 }] },
    ];
    for (const one of requests) {
      const { annotations } = await answerTo(one);
      expect(annotations).toHaveLength(5);
      expect(annotations[0]!.url_citation.url).toMatch(/^https:\/\/sandbox\.example\./);
    }
  });

  test('gives an answer also if a filter changes the addresses of results', async () => {
    const manage = async (path: string, body: object) => {
      const headers = { authorization: `Bearer ${gateway.management_key}` };
      const response = await gateway.call('POST', path, body, headers);
      return ((await response.json()) as { data: { id: string } }).data;
    };
    const pattern = { pattern: 'sandbox\\.example\\.org', action: 'redact', label: 'HOST' };
    const { id } = await manage('/guardrails', { name: 'hosts', content_filters: [pattern] });
    await manage(`/guardrails/${id}/assignments/keys`, { key_hashes: [gateway.key_hash] });
    const { content } = await answerTo({ model: 'sandbox/research', tools: [{ type: 'gateway:web_search' }] });
    expect(content).toContain('(https://sandbox.example.com/');
    expect(content).not.toContain('example.org');
  });
});

describe('a configured gateway has no sandbox search engine', () => {
  const load = (environment: Record<string, string>) =>
    loadConfig({ GATEWAY_DATA_DIR: mkdtempSync(join(tmpdir(), 'gateway-')), GATEWAY_SANDBOX: 'on', ...environment });

  test.each([
    ['OPENAI_API_KEY', 'sk-test'],
    ['SEARXNG_URL', 'http://127.0.0.1:9'],
  ])('if %s is set', (name, value) => {
    const config = load({ [name]: value });
    expect(addSandbox(config, 'http://127.0.0.1:1').plugins).toBe(config.plugins);
  });

  test('while a gateway without configuration has one', () => {
    expect(addSandbox(load({}), 'http://127.0.0.1:1').plugins.web.engine).toBe('searxng');
  });
});

test('the configuration of the sandbox is valid, although no start checks it', () => {
  const declared = declaredSandbox('http://127.0.0.1:1');
  expect(readConfigFile('the sandbox', JSON.stringify(declared)).value).toEqual(declared);
});
