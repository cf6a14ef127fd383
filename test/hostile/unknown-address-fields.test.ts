/**
 * Addresses in fields that the gateway does not know, and fields of model servers that name other machines. See
 * docs/threat-model.md, "Addresses in requests".
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { addressSteps, eachAddress } from '../../src/providers/shared/media-addresses.ts';
import { startGateway, type TestGateway } from '../harness.ts';

/** A server of the operator that records its requests, and answers with an error. */
let upstream: Server;
let gateway: TestGateway;
let bodies: string[] = [];

beforeAll(async () => {
  upstream = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (piece: string) => {
      body += piece;
    });
    request.on('end', () => {
      bodies.push(body);
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"seen"}}');
    });
  });
  await new Promise<void>((resolve) => {
    upstream.listen(0, '127.0.0.1', resolve);
  });
  const baseUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
  const model = (provider: string) => ({
    context_length: 1_000_000,
    input_modalities: ['text', 'image', 'file'],
    endpoints: [{ provider, upstream_model: 'm', pricing: { prompt: 1, completion: 1 } }],
  });
  const provider = { dialect: 'openai-chat', base_url: baseUrl };
  gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      providers: {
        'openai-chat': provider,
        open: { ...provider, quirks: { inline_media: false } },
        vllm: { base_url: baseUrl },
      },
      models: { 'test/openai-chat': model('openai-chat'), 'test/openai-chat-open': model('open') },
    }),
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.closeAllConnections();
  await new Promise((resolve) => {
    upstream.close(resolve);
  });
});
beforeEach(() => {
  bodies = [];
});

const user = (...content: object[]) => ({ messages: [{ role: 'user', content }] });

async function ask(path: string, model: string, body: object): Promise<{ status: number; message: string }> {
  const response = await gateway.call('POST', `/${path}`, {
    model,
    ...(path === 'messages' ? { max_tokens: 10 } : {}),
    ...body,
  });
  const { error } = (await response.json()) as { error?: { message?: string } };
  return { status: response.status, message: error?.message ?? '' };
}

describe('fields that are not known for any wire', () => {
  const url = 'http://10.0.0.1/x';
  const text = { messages: [{ role: 'user', content: 'x' }] };
  const cases: [field: string, path: string, body: object][] = [
    ['image', 'chat/completions', { ...text, image: url }],
    ['images[1]', 'chat/completions', { ...text, images: ['x', url] }],
    ['webhook_url', 'chat/completions', { ...text, webhook_url: url }],
    ['documents[0].url', 'chat/completions', { ...text, documents: [{ url }] }],
    ['documents[0]', 'chat/completions', { ...text, documents: [url] }],
    [
      'messages[0].attachments[0].url',
      'chat/completions',
      { messages: [{ role: 'user', content: 'x', attachments: [{ url }] }] },
    ],
    [
      'messages[0].content[0].image_url.fallback_url',
      'chat/completions',
      user({ type: 'image_url', image_url: { url: 'https://example.com/', fallback_url: url } }),
    ],
    [
      'messages[0].content[0].url',
      'chat/completions',
      user({ type: 'image_url', url, image_url: { url: 'data:image/png;base64,AA' } }),
    ],
    ['messages[0].content[0].file.file_id', 'chat/completions', user({ type: 'file', file: { file_id: url } })],
    ['image.id', 'chat/completions', { ...text, image: { id: url } }],
    ['images[1].id', 'chat/completions', { ...text, images: [{ id: 'x' }, { id: url }] }],
    ['container.id', 'responses', { input: 'x', container: { id: url } }],
    [
      'messages[0].content[0].image_url.id',
      'chat/completions',
      user({ type: 'image_url', image_url: { url: 'data:image/png;base64,AA', id: url } }),
    ],
    [
      'messages[0].content[0].id',
      'chat/completions',
      user({ type: 'image_url', id: url, image_url: { url: 'data:image/png;base64,AA' } }),
    ],
    [
      'messages[1].audio.id',
      'chat/completions',
      {
        messages: [
          { role: 'user', content: 'x' },
          { role: 'assistant', content: 'x', audio: { id: url } },
        ],
      },
    ],
    [
      'provider.options.openai-chat.inputFile.id',
      'chat/completions',
      { ...text, provider: { options: { 'openai-chat': { inputFile: { id: 'file:///etc/passwd' } } } } },
    ],
    ['webhook.url', 'responses', { input: 'x', webhook: { url } }],
    [
      'tools[0].tunnel_url',
      'responses',
      { input: 'x', tools: [{ type: 'mcp', server_label: 'm', server_url: 'https://example.com/', tunnel_url: url }] },
    ],
    ['messages[0].content[0].url', 'messages', user({ type: 'document', source: { type: 'text', data: 'x' }, url })],
    [
      'provider.options.openai-chat.image',
      'chat/completions',
      { ...text, provider: { options: { 'openai-chat': { image: url } } } },
    ],
  ];
  test.each(cases)(
    '%s of %s is refused with its name if its value looks like an address inside a network',
    async (field, path, body) => {
      const { status, message } = await ask(path, 'test/openai-chat', body);
      expect({ status, message }).toEqual({ status: 400, message: expect.stringContaining(field) });
      expect(bodies).toEqual([]);
    },
  );

  test.each([
    'http:\\\\10.0.0.1\\x',
    'http:\\10.0.0.1',
    'http:/10.0.0.1/x',
    'HTTP:10.0.0.1',
    'ht\ttp://10.0.0.1/x',
    '\nh\nt\nt\np:\n/\n/10.0.0.1/x',
    '\\\\10.0.0.1\\x',
    'file:/etc/passwd',
  ])('are also refused if %j is written in a rare form that URL parsers accept', async (written) => {
    for (const body of [
      { ...text, fallback_url: written },
      { ...text, images: [written] },
    ]) {
      const { status } = await ask('chat/completions', 'test/openai-chat', body);
      expect(status).toBe(400);
    }
    expect(bodies).toEqual([]);
  });

  test.each([
    ['imageUrl', url],
    ['fileUri', url],
    ['baseURL', url],
    ['src', url],
    ['proxies[0]', [url]],
    ['images[0][0]', [[url]]],
    ['anything', url],
    ['anything.of.it', { of: { it: 'file:///etc/passwd' } }],
    ['anything[1]', ['x', '//10.0.0.1/x']],
    ['anything', ' gopher://10.0.0.1:6379/x'],
    ['anything', 'http:\\\\169.254.169.254\\'],
    ['anything', 'ht\ntp://vault/'],
    ['anything', 'http://[fe80::1%25eth0]/'],
    ['anything', 'file:secrets'],
    ['remote_host', '10.0.0.1'],
    ['hosts[0]', ['[::1]:6379']],
  ])(
    '%s with an address inside a network is refused, at the top and in options of a provider',
    async (field, value) => {
      const name = /^\w+/.exec(field)![0];
      for (const [prefix, body] of [
        ['', { ...text, [name]: value }],
        // A type that a client chooses does not make a body a record of what was read before.
        ['', { ...text, type: 'x_call', [name]: value }],
        ['provider.options.openai-chat.', { ...text, provider: { options: { 'openai-chat': { [name]: value } } } }],
      ] as const) {
        const { status, message } = await ask('chat/completions', 'test/openai-chat', body);
        expect({ status, message }).toEqual({ status: 400, message: expect.stringContaining(prefix + field) });
      }
      expect(bodies).toEqual([]);
    },
  );

  test('a reference of a schema to a document inside a network is refused; one to the public internet is not', async () => {
    const bodyOf = (reference: string) => ({
      ...text,
      tools: [
        {
          type: 'function',
          function: { name: 'f', parameters: { type: 'object', properties: { a: { $ref: reference } } } },
        },
      ],
      response_format: { type: 'json_schema', json_schema: { name: 's', schema: { $ref: reference } } },
    });
    for (const reference of [url, 'file:///etc/passwd']) {
      const { status, message } = await ask('chat/completions', 'test/openai-chat', bodyOf(reference));
      expect({ status, message }).toEqual({ status: 400, message: expect.stringContaining('$ref') });
    }
    expect(bodies).toEqual([]);
    await ask('chat/completions', 'test/openai-chat', bodyOf('https://json-schema.org/draft-07/schema#'));
    expect(bodies).toHaveLength(1);
  });

  test('an address inside a network in a text, in metadata or in what was read before is sent', async () => {
    const accepted = [
      { messages: [{ role: 'user', content: url }] },
      { ...text, user: url, metadata: { image_url: url }, stop: [url], prompt_cache_key: url },
      { ...text, search_results: [{ url }], citations: [url] },
      { ...text, id: url, documents: [{ id: url, text: 'x' }], messages: [{ role: 'user', content: 'x', id: url }] },
      {
        ...text,
        anything: ['https://example.com/', 'hf://datasets/x', '// x', '//uQxAAA/x', 'File: x', 'http: x', 'the host'],
        host: 'a.example.com',
      },
      {
        messages: [
          { role: 'assistant', content: 'x', annotations: [{ type: 'url_citation', url_citation: { url } }] },
          { role: 'user', content: [{ type: 'text', text: url }] },
        ],
      },
      { ...text, tools: [{ type: 'function', function: { name: 'f', description: url, parameters: { $id: url } } }] },
    ];
    for (const body of accepted) await ask('chat/completions', 'test/openai-chat', body);
    expect(bodies).toHaveLength(accepted.length);
  });

  test('are not sent to servers of the operator if their value looks like an address', async () => {
    const { status, message } = await ask('chat/completions', 'test/openai-chat', {
      ...text,
      image: 'https://example.com/a.png',
    });
    expect({ status, message }).toEqual({ status: 400, message: expect.stringContaining('image') });
    expect(bodies).toEqual([]);
    await ask('chat/completions', 'test/openai-chat', {
      ...text,
      image: 'low',
      search_results: [{ url: 'https://example.com/' }],
    });
    expect(bodies).toHaveLength(1);
  });
});

test('fields of certain servers that name other machines, paths or code are refused from clients', async () => {
  const sent = {
    kv_transfer_params: { do_remote_prefill: true, remote_host: '10.0.0.1', remote_port: 5600 },
    bootstrap_host: '10.0.0.1',
    disaggregated_params: { ctx_info_endpoint: '10.0.0.1:80' },
    lora_path: '/srv/adapter',
    custom_logit_processor: '{"callable":"00"}',
  };
  for (const [name, value] of Object.entries(sent)) {
    for (const body of [{ [name]: value }, { provider: { options: { 'openai-chat': { [name]: value } } } }]) {
      const { status, message } = await ask('chat/completions', 'vllm/m', {
        messages: [{ role: 'user', content: 'x' }],
        ...body,
      });
      expect({ name, status, message }).toEqual({ name, status: 400, message: expect.stringContaining(name) });
    }
  }
  expect(bodies).toEqual([]);
});

test('a request may have a bounded number of addresses', async () => {
  const many = Array.from({ length: 10_001 }, (_, at) => ({
    type: 'image_url',
    image_url: { url: `https://a${at}.example/` },
  }));
  const { status, message } = await ask('chat/completions', 'test/openai-chat-open', user(...many));
  expect({ status, message }).toEqual({ status: 400, message: expect.stringContaining('at most 10000') });
  expect(bodies).toEqual([]);
});

test('a long body is searched for addresses in many steps, in the same order and to the same end as in one', () => {
  const keys = (count: number, name: string) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`${name}${at}`, at]));
  const body = {
    first: { image_url: 'https://a.example/1' },
    x: Array.from({ length: 60 }, (_, at) => ({
      ...keys(5_000, `k${at}_`),
      image_url: { url: `https://a.example/x${at}` },
    })),
    nested: {
      ...keys(5_000, 'n'),
      of: { ...keys(5_000, 'm'), webhook: ['https://a.example/2', 1, 'https://a.example/3'] },
    },
    files: Array.from({ length: 3_000 }, (_, at) => `https://a.example/f${at}`),
    last: { file_url: 'https://a.example/4' },
  };
  const at = (addresses: string[]) => (address: string, path: readonly (string | number)[]) =>
    void addresses.push(`${path.join('.')} ${address}`);
  const once: string[] = [];
  eachAddress(body, at(once));
  const inSteps: string[] = [];
  let steps = 0;
  for (const _ of addressSteps(body, at(inSteps))) {
    steps += 1;
  }
  expect(inSteps).toEqual(once);
  expect(once).toHaveLength(1 + 60 + 2 + 3_000 + 1);
  // 16,384 members a step; an address counts as 64 of them.
  expect(steps).toBeGreaterThanOrEqual((60 * 5_000 + once.length * 64) / 16_384 - 1);
});
