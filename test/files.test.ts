/** Files through the whole gateway, to models that accept files and to models that read only text. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bedrockModelPrefix } from '../sandbox/bedrock-converse.ts';
import { sandboxProviders } from '../sandbox/catalog.ts';
import { geminiModelPrefix } from '../sandbox/gemini-generate-content.ts';
import { type Sandbox, startSandbox } from '../sandbox/server.ts';
import { startGateway, type TestGateway } from './harness.ts';
import { hostile, plainPdf } from './pdf/hostile.ts';

const pdf = (name: string) => readFileSync(new URL(`./pdf/fixtures/${name}`, import.meta.url));
const dataUrl = (bytes: Buffer, type = 'application/pdf') => `data:${type};base64,${bytes.toString('base64')}`;
const REPORT = dataUrl(pdf('report-chromium.pdf'));
/** The members of answers and errors that the tests read. */
interface Answer {
  choices: {
    message: { content: string; annotations?: { file: { content: { text: string }[] } }[] };
    delta?: { annotations?: object[] };
    finish_reason: string | null;
  }[];
  id: string;
  usage: { prompt_tokens: number; completion_tokens: number; cost: number };
  gateway_metadata: { pipeline?: { name: string; data: object }[]; attempts: object[] };
  error: { message: string; metadata: { file_annotations: { file: { content: { text: string }[] } }[] } };
}
const METADATA = { 'x-gateway-experimental-metadata': 'enabled' };

let sandbox: Sandbox;
/** A stand-in for Mistral's OCR API that returns the same text for every page. */
const ocr: { calls: { authorization: string | undefined; body: Record<string, unknown> }[]; status: number } = {
  calls: [],
  status: 200,
};
let gateway: TestGateway;
let openai: OpenAI;
const site = createServer(async (request, response) => {
  if (request.url === '/v1/ocr') {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown>;
    ocr.calls.push({ authorization: request.headers.authorization, body });
    const pages = [{ index: 0, markdown: '# A blue box\n', images: [], dimensions: null }];
    const usageInfo = { pages_processed: 1, doc_size_bytes: 1_178 };
    response.writeHead(ocr.status, { 'content-type': 'application/json' });
    response.end(ocr.status === 200 ? JSON.stringify({ pages, model: body['model'], usage_info: usageInfo }) : '{}');
    return;
  }
  const [type, body] = request.url!.startsWith('/report')
    ? ['application/pdf', pdf('report-pdfkit.pdf')]
    : ['text/plain', request.url!.startsWith('/mail') ? 'Write to ann@mail.example today' : 'no'];
  response.writeHead(200, { 'content-type': type }).end(body);
});
let siteUrl: string;

beforeAll(async () => {
  sandbox = await startSandbox();
  await new Promise<void>((resolve) => void site.listen(0, '127.0.0.1', resolve));
  const { port } = site.address() as AddressInfo;
  siteUrl = `http://127.0.0.1:${port}`;
  const pricing = { prompt: 1, completion: 1 };
  const row = (provider: string, upstreamModel: string, inputModalities: string[]) => ({
    context_length: 200_000,
    input_modalities: inputModalities,
    endpoints: [{ provider, upstream_model: upstreamModel, pricing }],
  });
  const text = ['text'];
  const file = {
    bundled_catalog: false,
    providers: sandboxProviders(sandbox.url),
    media: { private_hosts: [`127.0.0.1:${port}`], ports: [port] },
    ledger: { journal_sync: 'os' },
    plugins: {
      file_parser: {
        ocr: { engine: 'mistral-ocr', api_key: 'ocr-secret', base_url: `${siteUrl}/v1/`, price_per_page_usd: 0.003 },
      },
    },
    models: {
      'test/text': row('sandbox', 'echo', text),
      'test/claude': row('sandbox-anthropic', 'echo', text),
      'test/gemini': row('sandbox-gemini', `${geminiModelPrefix}echo`, text),
      'test/responses': row('sandbox-responses', 'echo', text),
      'test/bedrock': row('sandbox-bedrock', `${bedrockModelPrefix}echo`, text),
      'test/cohere': row('sandbox-cohere', 'echo', text),
      'test/files': row('sandbox', 'echo', ['text', 'file']),
      'test/failing': row('sandbox', 'fail-503', text),
      'test/failing-files': row('sandbox', 'fail-503', ['text', 'file']),
    },
  };
  gateway = await startGateway({ yaml: JSON.stringify(file) });
  openai = new OpenAI({ baseURL: gateway.base_url, apiKey: gateway.key, maxRetries: 0 });
});
afterAll(async () => {
  await gateway.stop();
  await sandbox.stop();
  site.close();
});

type Part = { type: string; [field: string]: unknown };
const filePart = (fileData: string, filename?: string): Part => ({
  type: 'file',
  file: { file_data: fileData, filename },
});
const questionOn = (model: string, parts: Part[], more: object = {}) => ({
  model,
  messages: [{ role: 'user', content: [{ type: 'text', text: 'What does it say?' }, ...parts] }],
  ...more,
});
const chat = async (body: object) => {
  const response = await gateway.call('POST', '/chat/completions', body, METADATA);
  return { status: response.status, body: (await response.json()) as Answer };
};
const textOf = ({ body }: Awaited<ReturnType<typeof chat>>): string => body.choices[0]!.message.content;
const stageOf = ({ body }: Awaited<ReturnType<typeof chat>>) =>
  body.gateway_metadata?.pipeline?.find(({ name }) => name === 'file-parser');

describe.each(['text', 'claude', 'gemini', 'responses', 'bedrock', 'cohere'])(
  'a model that reads only text, over %s',
  (wire) => {
    test('reads a PDF as text, with its name', async () => {
      const answer = await chat(questionOn(`test/${wire}`, [filePart(REPORT, 'report.pdf')]));
      expect(answer.status).toBe(200);
      expect(textOf(answer)).toContain('<file name="report.pdf">\nQuarterly report');
      expect(textOf(answer)).toContain('Zürich 980.00');
      expect(stageOf(answer)).toMatchObject({
        type: 'plugin',
        data: { engine: 'pdf-text', pdfs: 1, pages: 2, reused: 0 },
      });
    });
  },
);

test('a model that accepts files gets the file, and an engine of the gateway converts it to text if requested', async () => {
  expect(textOf(await chat(questionOn('test/files', [filePart(REPORT, 'r.pdf')])))).toBe('[1 file] What does it say?');
  for (const engine of ['pdf-text', 'cloudflare-ai']) {
    const plugins = [{ id: 'file-parser', pdf: { engine } }];
    expect(textOf(await chat(questionOn('test/files', [filePart(REPORT, 'r.pdf')], { plugins })))).toContain(
      'Oslo 1,204.50',
    );
  }
});

test('a file is read for the second endpoint if the first accepts files and the second does not', async () => {
  const answer = await chat(questionOn('test/failing-files', [filePart(REPORT, 'r.pdf')], { models: ['test/claude'] }));
  expect(textOf(answer)).toContain('Oslo 1,204.50');
  expect(answer.body.gateway_metadata.attempts).toHaveLength(2);
});

test('a file with an address is fetched and named after it', async () => {
  const answer = await chat(questionOn('test/text', [filePart(`${siteUrl}/report%20one.pdf?x=1`)]));
  expect(textOf(answer)).toContain('<file name="report one.pdf">\nQuarterly report');
});

test.each([
  ['text/plain', 'a,b\n1,2', 'notes.txt'],
  ['text/csv', 'a,b\n1,2', 'table.csv'],
  ['application/json', '{"a": 1}', 'data.json'],
  ['text/markdown', '# Ünïcode', 'read.md'],
])('a file of %s is text', async (type, content, filename) => {
  const answer = await chat(questionOn('test/text', [filePart(dataUrl(Buffer.from(content), type), filename)]));
  expect(textOf(answer)).toContain(`<file name="${filename}">\n${content}\n</file>`);
});

test.each([
  ['UTF-16 with its byte order mark', Buffer.from('\ufeffa;b\r\nZürich;5 €', 'utf16le')],
  ['UTF-16 in the other byte order', Buffer.from('\ufeffa;b\r\nZürich;5 €', 'utf16le').swap16()],
  ['the Windows code page', Buffer.from('a;b\r\nZ\xfcrich;5 \x80', 'latin1')],
])('a table in %s keeps its characters', async (_, bytes) => {
  const answer = await chat(questionOn('test/text', [filePart(dataUrl(bytes, 'text/csv'), 'table.csv')]));
  expect(textOf(answer)).toContain('<file name="table.csv">\na;b\r\nZürich;5 €\n</file>');
});

describe('a second turn', () => {
  test('uses the text of the file in the last answer and reads nothing again', async () => {
    const first = await chat(questionOn('test/text', [filePart(REPORT, 'report.pdf')]));
    const { message } = first.body.choices[0]!;
    expect(message.annotations).toEqual([
      {
        type: 'file',
        file: {
          hash: expect.stringMatching(/^[0-9a-f]{64}$/),
          name: 'report.pdf',
          content: [{ type: 'text', text: expect.stringContaining('Quarterly report') }],
        },
      },
    ]);
    const { file } = message.annotations![0]!;
    const annotation = { type: 'file', file: { ...file, content: [{ type: 'text', text: 'told by the client' }] } };
    const messages = [
      ...questionOn('', [filePart(REPORT, 'report.pdf')]).messages,
      { ...message, content: 'It tells of sales.', annotations: [annotation] },
      { role: 'user', content: 'And what else?' },
    ];
    // Only the last user text is echoed: earlier content shows in the cost and in the stage.
    const second = await chat({ model: 'test/text', messages });
    expect(stageOf(second)).toMatchObject({ data: { pdfs: 1, pages: 0, reused: 1, characters: 18 } });
    expect(second.body.choices[0]!.message.annotations).toBeUndefined();
    expect(second.body.usage.prompt_tokens).toBeLessThan(first.body.usage.prompt_tokens);
  });

  test('reads a file other than the one of the annotation', async () => {
    const hash = 'a'.repeat(64);
    const annotations = [{ type: 'file', file: { hash, name: 'x', content: [{ type: 'text', text: 'forged' }] } }];
    const messages = [
      { role: 'assistant', content: 'Hello', annotations },
      ...questionOn('', [filePart(REPORT, 'report.pdf')]).messages,
    ];
    expect(textOf(await chat({ model: 'test/text', messages }))).toContain('Quarterly report');
  });

  test.each([
    [{ type: 'file' }],
    [{ type: 'file', file: { hash: 1 } }],
    [{ type: 'file', file: { hash: 'a', content: 'x' } }],
    [null],
    ['file'],
  ])('ignores an annotation of another form: %j', async (annotation) => {
    const messages = [
      { role: 'assistant', content: 'Hello', annotations: [annotation] },
      ...questionOn('', [filePart(REPORT, 'report.pdf')]).messages,
    ];
    expect(textOf(await chat({ model: 'test/text', messages }))).toContain('Quarterly report');
  });
});

test('a stream contains the text of the file before its end, like the whole answer', async () => {
  const body = questionOn('test/text', [filePart(REPORT, 'report.pdf')]);
  const whole = await chat(body);
  const response = await gateway.call('POST', '/chat/completions', { ...body, stream: true });
  const events = (await response.text())
    .split('\n\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)) as Answer);
  const annotated = events.findIndex((event) => event.choices[0]?.delta?.annotations !== undefined);
  const finished = events.findIndex((event) => event.choices[0]?.finish_reason != null);
  expect(annotated).toBeGreaterThan(0);
  expect(annotated).toBeLessThan(finished);
  expect(events[annotated]!.choices[0]!.delta!.annotations).toEqual(whole.body.choices[0]!.message.annotations);
  expect(events.filter((event) => event.choices[0]?.delta?.annotations)).toHaveLength(1);
});

test('an error after the reading contains the text of the file', async () => {
  const { status, body } = await chat(questionOn('test/failing', [filePart(REPORT, 'report.pdf')]));
  expect(status).toBe(503);
  expect(body.error.metadata.file_annotations[0]!.file.content[0]!.text).toContain('Quarterly report');
});

describe('is refused with the name of its field', () => {
  const place = /^messages\[0\]\.content\[1\]: /;
  test.each<[string, Part, RegExp]>([
    [
      'a broken PDF',
      filePart(dataUrl(Buffer.from('%PDF-1.7\nnothing')), 'x.pdf'),
      /cannot be read here: it is not a whole PDF/,
    ],
    ['a locked PDF', filePart(dataUrl(pdf('encrypted-pdfkit.pdf'))), /it is encrypted/],
    ['a PDF of images', filePart(dataUrl(pdf('picture-pdfkit.pdf'))), /images but no text/],
    ['a file that is not a PDF', filePart(dataUrl(Buffer.from('Hello'))), /is not a PDF, although/],
    [
      'a file with a PDF name and other content',
      filePart(dataUrl(Buffer.from('Hello'), 'text/plain'), 'x.pdf'),
      /is not a PDF, although/,
    ],
  ])('%s', async (_title, part, reason) => {
    const { status, body } = await chat(questionOn('test/text', [part]));
    expect(status).toBe(400);
    expect(body.error.message).toMatch(place);
    expect(body.error.message).toMatch(reason);
  });

  test('an address without a server', async () => {
    const { status, body } = await chat(questionOn('test/text', [filePart('http://nowhere.invalid/x.pdf')]));
    expect(status).toBe(400);
    expect(body.error.message).toMatch(/^messages\[0\]\.content\[1\]\.file\.file_data cannot be fetched: /);
  });

  test.each<[object, RegExp]>([
    [
      { pdf: { engine: 'none' } },
      /^plugins\[0\]\.pdf\.engine must be one of native, pdf-text, cloudflare-ai, mistral-ocr$/,
    ],
    [{ pdf: { pages: 1 } }, /^plugins\[0\]\.pdf\.pages is not an option/],
    [{ max_pages: 1 }, /^plugins\[0\]\.max_pages is not an option/],
  ])('an unknown option: %j', async (options, message) => {
    const body = questionOn('test/text', [filePart(REPORT)], { plugins: [{ id: 'file-parser', ...options }] });
    for (const stream of [false, true]) {
      const { status, body: answer } = await chat({ ...body, stream });
      expect(status).toBe(400);
      expect(answer.error.message).toMatch(message);
    }
  });
});

test('engine native uses only models that accept files', async () => {
  const plugins = [{ id: 'file-parser', pdf: { engine: 'native' } }];
  expect((await chat(questionOn('test/files', [filePart(REPORT)], { plugins }))).status).toBe(200);
  const { status, body } = await chat(questionOn('test/text', [filePart(REPORT)], { plugins }));
  expect(status).toBe(404);
  expect(body.error.message).toContain('does not accept file input');
});

test('if disabled, nothing is read', async () => {
  const plugins = [{ id: 'file-parser', enabled: false }];
  expect(textOf(await chat(questionOn('test/text', [filePart(REPORT, 'x.pdf')], { plugins })))).toBe(
    '[1 file] What does it say?',
  );
});

describe('in other APIs', () => {
  test('an input_file of the Responses API is read', async () => {
    const answer = await openai.responses.create({
      model: 'test/claude',
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'What does it say?' },
            { type: 'input_file', filename: 'report.pdf', file_data: REPORT },
          ],
        },
      ],
    });
    expect(answer.output_text).toContain('<file name="report.pdf">\nQuarterly report');
  });

  test('a document of the Messages API is read, whole and streamed', async () => {
    const anthropic = new Anthropic({ baseURL: `${gateway.url}/api`, apiKey: gateway.key, maxRetries: 0 });
    const body = {
      model: 'test/text',
      max_tokens: 4_000,
      messages: [
        {
          role: 'user' as const,
          content: [
            {
              type: 'document' as const,
              title: 'report.pdf',
              source: {
                type: 'base64' as const,
                media_type: 'application/pdf' as const,
                data: pdf('report-pdfkit.pdf').toString('base64'),
              },
            },
          ],
        },
      ],
    };
    const whole = await anthropic.messages.create(body);
    expect(whole.content[0]).toMatchObject({ type: 'text', text: expect.stringContaining('Zürich 980.00') });
    const streamed = await anthropic.messages.stream(body).finalMessage();
    expect(streamed.content).toEqual(whole.content);
    const counted = await anthropic.messages.countTokens({ model: body.model, messages: body.messages });
    expect(counted.input_tokens).toBeGreaterThan(100);
  });

  test('a refusal uses the field name of the client’s API', async () => {
    const bad = { type: 'input_file', filename: 'x.pdf', file_data: dataUrl(Buffer.from('%PDF-1.7')) };
    const response = await gateway.call('POST', '/responses', {
      model: 'test/text',
      input: [{ role: 'user', content: [bad] }],
    });
    expect(response.status).toBe(400);
    expect(((await response.json()) as Answer).error.message).toMatch(
      /^input\[0\]\.content\[0\]: the PDF cannot be read/,
    );
  });
});

test('the hold covers the text of the file: a key that cannot pay for it is refused', async () => {
  const response = await fetch(`${gateway.base_url}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.management_key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'poor', limit: 0.0004 }),
  });
  const { key } = (await response.json()) as { key: string };
  const ask = (parts: Part[]) =>
    gateway.call('POST', '/chat/completions', questionOn('test/text', parts, { max_tokens: 16 }), {
      authorization: `Bearer ${key}`,
    });
  expect((await ask([])).status).toBe(200);
  expect((await ask([filePart(dataUrl(plainPdf('word '.repeat(2_000))))])).status).toBe(402);
});

/** A key with a guardrail of these filters. */
async function keyWith(filters: object[]): Promise<string> {
  const manage = async (path: string, body: object) => {
    const response = await fetch(`${gateway.base_url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.management_key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return (await response.json()) as { key: string; data: { hash: string; id: string } };
  };
  const { key, data } = await manage('/keys', { name: 'filtered' });
  const guardrail = await manage('/guardrails', { name: 'filters', content_filter_builtins: filters });
  await manage(`/guardrails/${guardrail.data.id}/assignments/keys`, { key_hashes: [data.hash] });
  return key;
}

describe('guardrails of the caller apply to the content of a file', () => {
  const body = questionOn('test/text', [filePart(dataUrl(plainPdf('Write to ann@mail.example today')), 'x.pdf')]);

  test('the model and the annotation have the redacted text', async () => {
    const authorization = `Bearer ${await keyWith([{ slug: 'email', action: 'redact' }])}`;
    const response = await gateway.call('POST', '/chat/completions', body, { authorization });
    const text = await response.text();
    expect(response.status).toBe(200);
    expect(text).not.toContain('ann@mail.example');
    expect((JSON.parse(text) as Answer).choices[0]!.message.annotations).toHaveLength(1);
  });

  test('nothing is sent if it is blocked', async () => {
    const authorization = `Bearer ${await keyWith([{ slug: 'email', action: 'block' }])}`;
    const response = await gateway.call('POST', '/chat/completions', body, { authorization });
    expect(response.status).toBe(403);
  });

  test.each(['test/text', 'test/files'])('a text that is fetched for %s is filtered as well', async (model) => {
    const fetched = questionOn(model, [filePart(`${siteUrl}/mail.txt`)], { debug: { echo_upstream_body: true } });
    const ask = async (action: string) => {
      const authorization = `Bearer ${await keyWith([{ slug: 'email', action }])}`;
      return gateway.call('POST', '/chat/completions', { ...fetched, stream: true }, { authorization });
    };
    const redacted = await ask('redact');
    expect(redacted.status).toBe(200);
    const text = await redacted.text();
    expect(text).toContain('Write to [EMAIL] today');
    expect(text).not.toContain('ann@mail.example');
    expect((await ask('block')).status).toBe(403);
  });
});

describe('the engine that reads images', () => {
  const plugins = [{ id: 'file-parser', pdf: { engine: 'mistral-ocr' } }];
  const picture = questionOn('test/text', [filePart(dataUrl(pdf('picture-pdfkit.pdf')), 'box.pdf')], { plugins });

  test('reads files without text, and is charged by the page', async () => {
    ocr.calls.length = 0;
    const answer = await chat(picture);
    expect(answer.status).toBe(200);
    expect(textOf(answer)).toContain('<file name="box.pdf">\n# A blue box\n</file>');
    expect(ocr.calls).toHaveLength(1);
    expect(ocr.calls[0]).toMatchObject({
      authorization: 'Bearer ocr-secret',
      body: {
        model: 'mistral-ocr-latest',
        document: { type: 'document_url' },
        pages: [0],
        include_image_base64: false,
      },
    });
    const { prompt_tokens, completion_tokens, cost } = answer.body.usage;
    expect(cost).toBeCloseTo((prompt_tokens + completion_tokens) * 1e-6 + 0.003, 9);
    expect(stageOf(answer)).toMatchObject({ data: { engine: 'mistral-ocr', pages: 1 } });
    const record = await gateway.call('GET', `/generation?id=${answer.body.id}`);
    expect(((await record.json()) as { data: { total_cost: number } }).data.total_cost).toBe(cost);
    const { message } = answer.body.choices[0]!;
    const again = { ...picture, messages: [...picture.messages, message, { role: 'user', content: 'Sure?' }] };
    const second = await chat(again);
    expect(ocr.calls).toHaveLength(1);
    expect(second.body.usage.cost).toBeLessThan(0.001);
  });

  test('is not called for a key that cannot pay for it', async () => {
    ocr.calls.length = 0;
    const response = await fetch(`${gateway.base_url}/keys`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.management_key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'poor', limit: 0.0029 }),
    });
    const { key } = (await response.json()) as { key: string };
    const refused = await gateway.call('POST', '/chat/completions', picture, { authorization: `Bearer ${key}` });
    expect(refused.status).toBe(402);
    expect(ocr.calls).toHaveLength(0);
  });

  test('ends the call without cost if it fails', async () => {
    ocr.status = 500;
    const { status, body } = await chat(picture);
    ocr.status = 200;
    expect(status).toBe(502);
    expect(body.error.message).toBe('The OCR engine failed: it answered with status 500');
  });
});

test('a client that disconnects ends the reading of its file', async () => {
  const slow = dataUrl(hostile['forms that draw the next one twice']!());
  const leaving = new AbortController();
  const left = fetch(`${gateway.base_url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(questionOn('test/text', [filePart(slow)])),
    signal: leaving.signal,
  });
  setTimeout(() => leaving.abort(), 300);
  await expect(left).rejects.toThrow();
  // A key has one reader, and this call waits for it.
  expect((await chat(questionOn('test/text', [filePart(dataUrl(plainPdf('next')))]))).status).toBe(200);
});

test('an explanation of a route reads data URLs and fetches nothing', async () => {
  const body = questionOn('test/text', [filePart(REPORT), filePart(`${siteUrl}/report.pdf`)]);
  const response = await gateway.call('POST', '/route/explain', body);
  expect(response.status).toBe(200);
});
