import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';
import { type RequestReading, readAnswer, readRequest, type VectorReading } from '../readings/embeddings.ts';
import { atLeast, object, recordingsOf } from '../readings/recordings.ts';
import { responseHead, slices, startWireServer, type WireServer } from './wire-server.ts';

const recordings = recordingsOf('embeddings');
const isThere = recordings.length > 0;

/** The provider's next answer, and the size of its parts in bytes. */
let next: { status: number; body: string; bytes: number } | undefined;
let upstream: WireServer;
let gateway: TestGateway;

/** Each recorded provider with its wire; the base URL is the part of the recorded path that is not the wire's. */
const PROVIDERS: Record<string, { wire: string; base: string }> = {
  openai: { wire: 'openai-embeddings', base: '/v1' },
  cohere: { wire: 'cohere-embeddings', base: '/v2' },
  'google-ai-studio': { wire: 'gemini-embeddings', base: '/v1beta' },
  voyage: { wire: 'voyage-embeddings', base: '/v1' },
};

function yamlOf(requests: RequestReading[]): string {
  const providers = Object.entries(PROVIDERS).map(
    ([slug, { wire, base }]) =>
      `  rec-${slug}: { dialect: openai-chat, embeddings_dialect: ${wire}, base_url: '${new URL(base, upstream.url).href}' }\n`,
  );
  const models = [
    ...new Map(requests.map(({ provider, model }) => [`${provider}/${model}`, { provider, model }])).values(),
  ];
  const rows = models.map(
    ({ provider, model }) =>
      `  rec-${provider}/${model}:\n    output_modalities: [embeddings]\n    endpoints: [{ provider: rec-${provider}, upstream_model: '${model}', pricing: { prompt: 0.1 } }]\n`,
  );
  return `bundled_catalog: false\nproviders:\n${providers.join('')}models:\n${rows.join('')}`;
}

beforeAll(async () => {
  if (!isThere) return;
  upstream = await startWireServer(() => {
    const { status, body, bytes } = next!;
    return [responseHead(status, 'application/json'), ...slices(body, bytes), 'END'];
  });
  gateway = await startGateway({ yaml: yamlOf(recordings.map(({ recording }) => readRequest(recording))) });
});
afterAll(async () => {
  await gateway?.stop();
  await upstream?.stop();
});

/** Small answers are cut at every byte, all answers into pieces that divide characters and numbers. */
const PIECES = [1, 7, 1_361, 1_000_000];

describe.runIf(isThere)('recorded embeddings, through a running gateway', () => {
  test('all recordings are there', () => expect(recordings.length).toBeGreaterThanOrEqual(atLeast(17)));

  for (const { name, recording } of recordings) {
    const request = readRequest(recording);
    const model = `rec-${request.provider}/${request.model}`;
    const ask = (encodingFormat: 'float' | 'base64') =>
      gateway.call('POST', '/embeddings', {
        model,
        input: request.texts,
        encoding_format: encodingFormat,
        ...(request.dimensions === undefined ? {} : { dimensions: request.dimensions }),
        ...(request.input_type === undefined ? {} : { input_type: request.input_type }),
        ...(request.options === undefined
          ? {}
          : { provider: { options: { [`rec-${request.provider}`]: request.options } } }),
      });
    const { status, json } = recording.response;

    test(`${name}: sends the recorded request`, async () => {
      next = { status, body: JSON.stringify(json), bytes: 1_000_000 };
      await (await ask(request.encoding_format)).arrayBuffer();
      const sent = upstream.exchanges.at(-1)!;
      expect(sent.path).toBe(recording.request!.path);
      expect(JSON.parse(sent.body)).toEqual(withoutNulls(object(recording.request!.body)));
    });

    if (status !== 200) {
      test(`${name}: is refused`, async () => {
        next = { status, body: JSON.stringify(json), bytes: 5 };
        const answer = await ask('float');
        const { error } = (await answer.json()) as { error: { message: string; metadata: { raw: string } } };
        expect(answer.status).toBe(502);
        expect(error.metadata.raw).toBe(JSON.stringify(json));
      });
      continue;
    }

    const raw = readAnswer(recording);
    const pieces = JSON.stringify(json).length > 10_000 ? PIECES.slice(1) : PIECES;
    test.each(pieces)(
      `${name}: in pieces of %i bytes`,
      async (bytes) => {
        for (const format of ['float', 'base64'] as const) {
          next = { status, body: JSON.stringify(json), bytes };
          const answer = await ask(format);
          const text = await answer.text();
          expect(answer.status, text.slice(0, 300)).toBe(200);
          checkAnswer(JSON.parse(text) as OpenAI.CreateEmbeddingResponse, raw, format);
        }
      },
      60_000,
    );

    test(`${name}: by the OpenAI SDK`, async () => {
      next = { status, body: JSON.stringify(json), bytes: 4_096 };
      const client = new OpenAI({ baseURL: gateway.base_url, apiKey: gateway.key, maxRetries: 0 });
      const answer = await client.embeddings.create({ model, input: request.texts });
      // The SDK requests base64 and decodes it.
      expect(answer.data.map(({ embedding }) => embedding)).toEqual(
        raw.vectors.map((vector) => [...Float32Array.from(vector)]),
      );
    });
  }
});

function withoutNulls(body: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}

function checkAnswer(answer: OpenAI.CreateEmbeddingResponse, raw: VectorReading, format: 'float' | 'base64'): void {
  expect(answer.data.map(({ index, object: kind }) => [index, kind])).toEqual(
    raw.vectors.map((_, index) => [index, 'embedding']),
  );
  const shown = answer.data.map(({ embedding }) => embedding as unknown);
  if (format === 'float') expect(shown).toEqual(raw.vectors);
  else {
    const decoded = shown.map((vector) => {
      const bytes = Buffer.from(vector as string, 'base64');
      return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4));
    });
    expect(decoded).toEqual(raw.vectors.map((vector) => [...Float32Array.from(vector)]));
  }
  const usage = answer.usage as OpenAI.CreateEmbeddingResponse.Usage & { cost: number };
  if (raw.tokens !== undefined) expect(usage.prompt_tokens).toBe(raw.tokens);
  else expect(usage.prompt_tokens).toBeGreaterThan(0);
  expect(usage.total_tokens).toBe(usage.prompt_tokens);
  expect(usage.cost).toBeCloseTo(usage.prompt_tokens * 1e-7, 12);
}
