import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { AnalyzerFailed } from '../../guardrails/entities/analyzer.ts';
import { createServices } from '../../providers/transport/services.ts';
import { createAnalyzer } from './analyzer-in-use.ts';
import { ANALYZER_ANSWER_BYTES_MAX, ANALYZER_REQUESTS_AT_ONCE, createPresidioAnalyzer } from './presidio-analyzer.ts';

interface ReceivedRequest {
  url: string | undefined;
  authorization: string | undefined;
  body: { text: string; language: string; entities: string[]; score_threshold: number };
}

let answer: (request: ReceivedRequest, response: ServerResponse) => void;
const requests: ReceivedRequest[] = [];
const services = createServices();
const server = createServer((request: IncomingMessage, response: ServerResponse) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    const { url, headers } = request;
    const one = { url, authorization: headers.authorization, body: JSON.parse(Buffer.concat(parts).toString()) };
    requests.push(one);
    answer(one, response);
  });
});
let baseUrl: string;

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await services.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});
beforeEach(() => {
  requests.length = 0;
});

const analyzer = (more: { score_min?: number; api_key?: string } = {}) =>
  createPresidioAnalyzer(services, { base_url: baseUrl, api_key: undefined, language: 'en', score_min: 0.5, ...more });

/** An entity in the form of Presidio, with offsets in characters. */
const presidioEntity = (text: string, part: string, entityType: string, score = 0.85) => {
  const start = [...text.slice(0, text.indexOf(part))].length;
  return { start, end: start + [...part].length, score, entity_type: entityType, analysis_explanation: null };
};
const json = (value: unknown) => (_: ReceivedRequest, response: ServerResponse) => {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
};

test('requests contain the entity types, the language, the score and the key', async () => {
  const text = 'Ann Lee works at 5 Elm Street in Leeds.';
  answer = json([presidioEntity(text, 'Ann Lee', 'PERSON')]);
  const [entities] = await analyzer({ api_key: 'key-1' }).analyze([text]);
  expect(entities).toEqual([
    { start: 0, end: 7, slug: 'person-name' },
    { start: 17, end: 29, slug: 'address' },
  ]);
  expect(requests).toEqual([
    {
      url: '/analyze',
      authorization: 'Bearer key-1',
      body: { text, language: 'en', entities: ['PERSON', 'LOCATION'], score_threshold: 0.5 },
    },
  ]);
});

test('character offsets after characters beyond the BMP are converted to offsets of the string', async () => {
  const text = '😀😀 Ann 𝐋ee lives in Rome 😀';
  answer = json([presidioEntity(text, 'Ann 𝐋ee', 'PERSON'), presidioEntity(text, 'Rome', 'LOCATION')]);
  const [entities = []] = await analyzer().analyze([text]);
  expect(entities.map(({ start, end }) => text.slice(start, end))).toEqual(['Ann 𝐋ee', 'Rome']);
});

test('a place and the street beside it are one address', async () => {
  const text = 'Ship to 12 Baker Street, oldtown please.';
  answer = json([presidioEntity(text, 'oldtown', 'LOCATION')]);
  const [entities = []] = await analyzer().analyze([text]);
  expect(entities.map(({ start, end }) => text.slice(start, end))).toEqual(['12 Baker Street, oldtown']);
});

test('entities with a low score or of other kinds are left out', async () => {
  const text = 'Ann met Bob on Monday';
  answer = json([
    presidioEntity(text, 'Ann', 'PERSON', 0.4),
    presidioEntity(text, 'Bob', 'PERSON', 0.6),
    presidioEntity(text, 'Monday', 'DATE_TIME'),
  ]);
  const [entities] = await analyzer().analyze([text]);
  expect(entities).toEqual([{ start: 8, end: 11, slug: 'person-name' }]);
});

test('each text is one request, some run in parallel, results stay in order, texts without candidates are not sent', async () => {
  let open = 0;
  let most = 0;
  answer = ({ body: { text } }, response) => {
    open += 1;
    most = Math.max(most, open);
    setTimeout(() => {
      open -= 1;
      response.end(JSON.stringify([presidioEntity(text, 'Ann', 'PERSON')]));
    }, text.length % 7);
  };
  const texts = Array.from({ length: 20 }, (_, at) => (at % 5 === 0 ? 'nothing here' : `${'x'.repeat(at)} Ann`));
  const entities = await analyzer().analyze(texts);
  expect(requests).toHaveLength(16);
  expect(most).toBeLessThanOrEqual(ANALYZER_REQUESTS_AT_ONCE);
  expect(entities.map(([one]) => one?.start)).toEqual(texts.map((_, at) => (at % 5 === 0 ? undefined : at + 1)));
});

const failures: [string, (request: ReceivedRequest, response: ServerResponse) => void][] = [
  ['a status of 500', (_, response) => response.writeHead(500).end('{"error":"no recognizer"}')],
  ['a redirect', (_, response) => response.writeHead(302, { location: '/elsewhere' }).end()],
  ['a body that is not JSON', (_, response) => response.end('<html>')],
  ['a body that is not a list', json({ entities: [] })],
  ['entities without offsets', json([{ entity_type: 'PERSON', score: 1 }])],
  ['offsets that are not whole numbers', json([{ start: 0.5, end: 3, score: 1, entity_type: 'PERSON' }])],
  ['offsets beyond the text', json([{ start: 0, end: 999, score: 1, entity_type: 'PERSON' }])],
  ['an end before the start', json([{ start: 3, end: 1, score: 1, entity_type: 'PERSON' }])],
  ['a negative offset', json([{ start: -1, end: 1, score: 1, entity_type: 'PERSON' }])],
  ['a connection that breaks', (_, response) => response.destroy()],
  ['a body above the bound', (_, response) => response.end(`[${' '.repeat(ANALYZER_ANSWER_BYTES_MAX)}]`)],
];

test.each(failures)('%s is a failure whose message contains no text of the request', async (_, misbehave) => {
  answer = misbehave;
  const failure = await analyzer()
    .analyze(['Ann Lee'])
    .catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(AnalyzerFailed);
  expect(String(failure)).not.toContain('Ann');
});

test('all requests are cancelled when the caller’s signal aborts', async () => {
  answer = () => {};
  const leaving = new AbortController();
  const pending = analyzer().analyze(
    Array.from({ length: 9 }, (_, at) => `Ann ${at}`),
    leaving.signal,
  );
  setTimeout(() => leaving.abort(new Error('too late')), 30);
  await expect(pending).rejects.toThrow('too late');
  expect(requests.length).toBeLessThanOrEqual(ANALYZER_REQUESTS_AT_ONCE);
});

test('no request is sent after a failure', async () => {
  const held: ServerResponse[] = [];
  let failing: ServerResponse | undefined;
  answer = ({ body: { text } }, response) => {
    if (text === 'Ann 0') failing = response;
    else held.push(response);
    if (held.length === ANALYZER_REQUESTS_AT_ONCE - 1) failing?.writeHead(500).end();
  };
  await expect(analyzer().analyze(Array.from({ length: 12 }, (_, at) => `Ann ${at}`))).rejects.toThrow('status 500');
  for (const response of held) response.end('[]');
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(requests.length).toBeLessThanOrEqual(ANALYZER_REQUESTS_AT_ONCE);
});

test('each analysis uses the current settings', async () => {
  let settings: Parameters<typeof createPresidioAnalyzer>[1] | undefined;
  const inUse = createAnalyzer(services, () => settings);
  answer = json([{ start: 0, end: 3, score: 1, entity_type: 'PERSON' }]);
  expect(await inUse.analyze(['Xyz Abc'])).toEqual([[]]);
  settings = { base_url: baseUrl, api_key: undefined, language: 'de', score_min: 0 };
  expect(await inUse.analyze(['Xyz Abc'])).toEqual([[{ start: 0, end: 3, slug: 'person-name' }]]);
  expect(requests.filter(({ body }) => body.text === 'Xyz Abc').map(({ body }) => body.language)).toEqual(['de']);
  await inUse.stop();
});
