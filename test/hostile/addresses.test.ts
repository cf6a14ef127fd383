/** Addresses in requests never lead the gateway or an upstream into a network, whichever field contains them. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';
import { inTier } from '../tier.ts';

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/** Servers of the operator, one for each dialect. Each records its requests, and answers with an error. */
let upstream: Server;
let files: Server;
let gateway: TestGateway;
let bodies: string[] = [];
let visited: string[] = [];
let listed = '';

const DIALECTS = ['openai-chat', 'openai-responses', 'anthropic-messages', 'cohere-chat'] as const;

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return (server.address() as AddressInfo).port;
}

beforeAll(async () => {
  upstream = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (piece: string) => {
      body += piece;
    });
    request.on('end', () => {
      // The lists of local servers' models are read in the background.
      if (request.method === 'POST') bodies.push(body);
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"seen"}}');
    });
  });
  files = createServer((request, response) => {
    visited.push(request.url ?? '');
    if (request.url === '/hop') response.writeHead(302, { location: 'http://169.254.169.254/latest' }).end();
    else response.end(PNG);
  });
  const baseUrl = `http://127.0.0.1:${await listen(upstream)}/v1`;
  const port = await listen(files);
  listed = `http://localhost:${port}`;
  const model = (provider: string) => ({
    context_length: 100_000,
    input_modalities: ['text', 'image', 'file', 'audio', 'video'],
    endpoints: [{ provider, upstream_model: 'm', pricing: { prompt: 1, completion: 1 } }],
  });
  const declared = Object.fromEntries(
    DIALECTS.flatMap((dialect) => [
      [dialect, { name: dialect, dialect, base_url: baseUrl, embeddings_dialect: 'openai-embeddings' }],
      [`${dialect}-open`, { name: `${dialect} open`, dialect, base_url: baseUrl, quirks: { inline_media: false } }],
    ]),
  );
  const local = Object.fromEntries(
    ['vllm', 'sglang', 'llamacpp', 'lmstudio', 'ollama'].map((slug) => [slug, { base_url: baseUrl }]),
  );
  gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      providers: { ...declared, ...local, openai: { base_url: baseUrl, api_key: 'k' } },
      models: Object.fromEntries([...Object.keys(declared), 'openai'].map((slug) => [`test/${slug}`, model(slug)])),
      media: { private_hosts: [`localhost:${port}`], buckets: ['s3://shared'] },
    }),
  });
});
afterAll(async () => {
  await gateway.stop();
  for (const server of [upstream, files]) {
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
  }
});
beforeEach(() => {
  bodies = [];
  visited = [];
});

const FORBIDDEN = [
  'http://169.254.169.254/latest/meta-data/',
  'http://10.0.0.1/x.png',
  'https://192.168.1.1/',
  'http://127.0.0.1:8080/',
  'http://2130706433/',
  'http://0x7f.1/',
  'http://127.1/',
  'http://[::1]/',
  'http://[::ffff:169.254.169.254]/',
  'http://[64:ff9b::a00:1]/',
  'http://[fd00:ec2::254]/',
  'http://localhost/',
  'http://localhost./',
  'http://x.localdomain/',
  'http://router.lan/',
  'http://wiki.corp/',
  'http://wiki.intranet/',
  'http://kubernetes.default.svc/',
  `https://example.com/${'x'.repeat(70_000)}`,
  'http://metadata.google.internal/',
  'http://printer.local/',
  'http://vault/',
  'http://user:pw@example.com/x.png',
  'http://example.com\\@169.254.169.254/',
  'http://169.254.169.254\\.example.com/',
  'http:///169.254.169.254/',
  'http:\\\\169.254.169.254\\',
  ' http://169.254.169.254/',
  'ht\ntp://169.254.169.254/',
  'http://exa\tmple.com/',
  'file:///etc/passwd',
  'FILE:///etc/passwd',
  '\tfile:///etc/passwd',
  '//169.254.169.254/x',
  '/etc/passwd.png',
  '../secret.png',
  'gopher://10.0.0.1:6379/_INFO',
  'ftp://10.0.0.1/',
  'dict://10.0.0.1/',
  'jar:http://10.0.0.1!/',
  'blob:http://10.0.0.1/',
  'javascript:alert(1)',
  's3://secrets/key',
  's3://shared-not/key',
  'gs://secrets/key',
];

const user = (...content: object[]) => ({ messages: [{ role: 'user', content }] });
const input = (...items: object[]) => ({ input: items });
const userMessage = (...content: object[]) => input({ role: 'user', content });
const result = (content: object) =>
  user({ type: 'text', text: 'so' }).messages.concat([
    { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [content] }] },
  ]);
const called = { role: 'assistant', tool_calls: [{ id: 'c1', function: { name: 'f', arguments: '{}' } }] };
const source = (url: string) => ({ type: 'url', url });

/** Every field of every client API that contains an address, with its form and its name. */
const FIELDS: [path: string, field: string, body: (url: string) => object][] = [
  [
    'chat/completions',
    'messages[0].content[0].image_url.url',
    (url) => user({ type: 'image_url', image_url: { url } }),
  ],
  ['chat/completions', 'messages[0].content[0].image_url', (url) => user({ type: 'image_url', image_url: url })],
  [
    'chat/completions',
    'messages[0].content[0].file.file_data',
    (url) => user({ type: 'file', file: { file_data: url } }),
  ],
  [
    'chat/completions',
    'messages[0].content[0].video_url.url',
    (url) => user({ type: 'video_url', video_url: { url } }),
  ],
  [
    'chat/completions',
    'messages[0].content[0].video_url.url',
    (url) => user({ type: 'input_video', video_url: { url } }),
  ],
  [
    'chat/completions',
    'messages[0].content[0].document_url',
    (url) => user({ type: 'document_url', document_url: url }),
  ],
  [
    'chat/completions',
    'messages[0].content[0].input_audio.data',
    (url) => user({ type: 'input_audio', input_audio: { data: url, format: 'wav' } }),
  ],
  [
    'chat/completions',
    'messages[1].content[0].image_url.url',
    (url) => ({
      messages: [called, { role: 'tool', tool_call_id: 'c1', content: [{ type: 'image_url', image_url: { url } }] }],
    }),
  ],
  [
    'chat/completions',
    'messages[0].images[0].image_url.url',
    (url) => ({ messages: [{ role: 'assistant', content: 'x', images: [{ image_url: { url } }] }] }),
  ],
  [
    'chat/completions',
    'provider.options.openai-chat.audio_url',
    (url) => ({ ...user({ type: 'text', text: 'x' }), provider: { options: { 'openai-chat': { audio_url: url } } } }),
  ],
  ['messages', 'messages[0].content[0].source.url', (url) => user({ type: 'image', source: source(url) })],
  ['messages', 'messages[0].content[0].source.url', (url) => user({ type: 'document', source: source(url) })],
  [
    'messages',
    'messages[0].content[0].source.content[0].source.url',
    (url) => user({ type: 'document', source: { type: 'content', content: [{ type: 'image', source: source(url) }] } }),
  ],
  [
    'messages',
    'messages[2].content[0].content[0].source.url',
    (url) => ({ messages: result({ type: 'image', source: source(url) }) }),
  ],
  [
    'messages',
    'messages[2].content[0].content[0].source.url',
    (url) => ({ messages: result({ type: 'document', source: source(url) }) }),
  ],
  [
    'messages',
    'mcp_servers[0].url',
    (url) => ({ ...user({ type: 'text', text: 'x' }), mcp_servers: [{ type: 'url', url, name: 'm' }] }),
  ],
  ['messages/count_tokens', 'messages[0].content[0].source.url', (url) => user({ type: 'image', source: source(url) })],
  ['responses', 'input[0].content[0].image_url', (url) => userMessage({ type: 'input_image', image_url: url })],
  ['responses', 'input[0].content[0].file_url', (url) => userMessage({ type: 'input_file', file_url: url })],
  ['responses', 'input[0].content[0].file_data', (url) => userMessage({ type: 'input_file', file_data: url })],
  ['responses', 'input[0].content[0].video_url', (url) => userMessage({ type: 'input_video', video_url: url })],
  [
    'responses',
    'input[0].content[0].input_audio.data',
    (url) => userMessage({ type: 'input_audio', input_audio: { data: url, format: 'wav' } }),
  ],
  [
    'responses',
    'input[0].output[0].image_url',
    (url) => input({ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_image', image_url: url }] }),
  ],
  [
    'responses',
    'input[0].output.image_url',
    (url) =>
      input({ type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot', image_url: url } }),
  ],
  [
    'responses',
    'tools[0].server_url',
    (url) => ({ input: 'x', tools: [{ type: 'mcp', server_label: 'm', server_url: url }] }),
  ],
  [
    'responses',
    'tools[0].input_image_mask.image_url',
    (url) => ({ input: 'x', tools: [{ type: 'image_generation', input_image_mask: { image_url: url } }] }),
  ],
  [
    'embeddings',
    'input[0].content[0].image_url.url',
    (url) => ({ input: [{ content: [{ type: 'image_url', image_url: { url } }] }] }),
  ],
  ['audio/transcriptions', 'input_audio.data', (url) => ({ input_audio: { data: url, format: 'wav' } })],
];

/** One address inside a network, one invalid address, one of another scheme. */
const FEW = ['http://169.254.169.254/latest/meta-data/', '/etc/passwd.png', 'gs://secrets/key'];
/** Each address in one field of each operation, and in all fields for data; in the second tier in every field. */
function forbiddenIn(path: string, field: string): string[] {
  const isFirst = FIELDS.find(([one]) => one === path)?.[1] === field;
  return inTier(isFirst || field.endsWith('data'), true) ? FORBIDDEN : FEW;
}

const limit = (path: string) => (path.startsWith('messages') ? { max_tokens: 10 } : {});

async function ask(path: string, model: string, body: object): Promise<{ status: number; message: string }> {
  const response = await gateway.call('POST', `/${path}`, { model, ...limit(path), ...body });
  const { error } = (await response.json()) as { error?: { message?: string } };
  return { status: response.status, message: error?.message ?? '' };
}

describe.each(FIELDS)('%s: %s', (path, field, body) => {
  test('is refused with its field name if it points into the private network or has another scheme', async () => {
    for (const url of forbiddenIn(path, field)) {
      const { status, message } = await ask(path, 'test/openai-chat', body(url));
      expect({ url, status, message }).toEqual({ url, status: 400, message: expect.stringContaining(field) });
    }
    expect(bodies).toEqual([]);
    expect(visited).toEqual([]);
  });
});

describe.each([...DIALECTS.map((dialect) => `test/${dialect}`), 'test/openai', 'vllm/m', 'sglang/m', 'llamacpp/m'])(
  'a server of the operator (%s)',
  (model) => {
    const content = [
      { type: 'text', text: 'see' },
      { type: 'image_url', image_url: { url: '' } },
    ];
    const asking = (url: string) => ({
      messages: [{ role: 'user', content: content.with(1, { type: 'image_url', image_url: { url } }) }],
    });

    test('gets the content of an address on a listed host instead of the address', async () => {
      await ask('chat/completions', model, asking(`${listed}/a.png`));
      expect(visited).toEqual(['/a.png']);
      expect(bodies).toHaveLength(1);
      expect(bodies[0]).toContain(PNG.toString('base64'));
      expect(bodies[0]).not.toContain('localhost');
    });

    test('gets nothing if the address leads, or redirects, into the network', async () => {
      for (const url of [`${listed}/hop`, 'http://nowhere.invalid/x.png']) {
        const { status, message } = await ask('chat/completions', model, asking(url));
        expect({ url, status }).toEqual({ url, status: 400 });
        expect(message).toMatch(/^messages\[0\]\.content\[1\]\.image_url\.url cannot be fetched/);
      }
      expect(bodies).toEqual([]);
    });
  },
);

test('gets public and listed addresses unchanged if it is declared to fetch them itself', async () => {
  for (const dialect of DIALECTS) {
    for (const url of ['https://example.com/a.png', `${listed}/a.png`]) {
      bodies = [];
      await ask('chat/completions', `test/${dialect}-open`, user({ type: 'image_url', image_url: { url } }));
      expect(bodies.join()).toContain(url);
    }
  }
  expect(visited).toEqual([]);
});

test('content that cannot replace its address is refused, and not sent to a server of the operator', async () => {
  const url = 'https://example.com/a.png';
  const cases = [
    [
      'messages',
      'test/anthropic-messages',
      user({ type: 'document', source: { type: 'content', content: [{ type: 'image', source: source(url) }] } }),
    ],
    ['messages', 'test/anthropic-messages', { ...user({ type: 'text', text: 'x' }), mcp_servers: [source(url)] }],
    [
      'responses',
      'test/openai-responses',
      input({ type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot', image_url: url } }),
    ],
    [
      'responses',
      'test/openai-responses',
      { input: 'x', tools: [{ type: 'mcp', server_label: 'm', server_url: url }] },
    ],
  ] as const;
  for (const [path, model, body] of cases) {
    const { status, message } = await ask(path, model, body);
    expect({ path, status, message }).toEqual({
      path,
      status: 400,
      message: expect.stringContaining('must be sent as data'),
    });
  }
  expect(bodies).toEqual([]);
});

test('addresses that are not fetched pass: arguments, schemas, cited sources, notes', async () => {
  const url = 'http://10.0.0.1/';
  await ask('chat/completions', 'test/openai-chat', {
    messages: [
      { role: 'user', content: `Read ${url}` },
      { ...called, tool_calls: [{ id: 'c1', function: { name: 'f', arguments: JSON.stringify({ image_url: url }) } }] },
      { role: 'tool', tool_call_id: 'c1', content: JSON.stringify({ image_url: url }) },
    ],
    tools: [{ type: 'function', function: { name: 'f', parameters: { properties: { image_url: { default: url } } } } }],
    metadata: { image_url: url },
  });
  expect(bodies).toHaveLength(1);
  await ask('messages', 'test/anthropic-messages', {
    messages: [
      {
        role: 'user',
        content: [{ type: 'search_result', source: url, title: 't', content: [{ type: 'text', text: 'x' }] }],
      },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'f', input: { type: 'url', url } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: url }] },
    ],
  });
  expect(bodies).toHaveLength(2);
});
