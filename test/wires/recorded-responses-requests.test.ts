/**
 * Every recorded request of the Responses API through the gateway's own: it reaches an upstream of the same wire as it
 * was sent, except for the listed differences.
 */
import { Compile } from 'typebox/compile';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { responsesRequest } from '../../src/api/responses/parse-request.ts';
import { GatewayError } from '../../src/errors.ts';
import { explain } from '../../src/http/validation.ts';
import { createEnvelopes } from '../../src/inference/reasoning/envelope.ts';
import type { DialectEndpoint, Report } from '../../src/providers/dialect.ts';
import { openaiResponses } from '../../src/providers/openai-responses/index.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { ResponsesBody } from '../../src/schemas/responses.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import {
  array,
  atLeast,
  isComplete,
  type NamedRecording,
  object,
  recordingsOf,
  whySkipped,
} from '../readings/recordings.ts';
import { responseHead, startWireServer, type WireServer } from './wire-server.ts';

const recordings = [...recordingsOf('openai-responses'), ...recordingsOf('reference-gateway')].filter(
  ({ recording: { request } }) => request?.body?.['input'] !== undefined,
);
const isThere = recordings.length > 0;
const why = whySkipped(recordings, 'openai-responses');
const check = Compile(ResponsesBody);

/** The requests that the parser refuses, with the messages. */
const REFUSED: Readonly<Record<string, RegExp>> = {
  background: /^background must be false/,
  conversation: /^conversation must be null/,
};

/** Requests that the provider refused as well. */
const WRONG: Readonly<Record<string, string>> = {
  temperature: 'must be at least 0',
};

/**
 * Differences in the upstream's request. In all requests `store` is false, encrypted reasoning is requested, fields for
 * the gateway are removed, and `normal` gives the normal forms.
 */
const OTHERWISE: readonly (readonly [when: (body: JsonObject) => boolean, otherwise: JsonObject])[] = [
  // Money is held for this number of searches.
  [(body) => array(body['tools']).some((tool) => object(tool)['type'] === 'web_search'), { max_tool_calls: 10 }],
];

const endpoint: DialectEndpoint = {
  model: 'recorded/model',
  provider: 'recorded',
  upstream_model: 'upstream',
  max_completion_tokens: undefined,
  context_length: undefined,
  input_modalities: ['text', 'image', 'file'],
  quirks: { unpriced_tools: true, plain_reasoning_items: true },
};

function send(body: JsonObject): { sent: JsonObject; report: Report[] } {
  const request = responsesRequest(body as never, { envelope: createEnvelopes('secret')('organization') });
  const { body: sent, report } = openaiResponses.encodeRequest(request, endpoint, {
    media: new Map(),
    strip_state: false,
  });
  return { sent, report };
}

function refusalOf({ recording }: NamedRecording): RegExp | undefined {
  const field = Object.keys(REFUSED).find((name) => (recording.request!.body![name] ?? false) !== false);
  return field === undefined ? undefined : REFUSED[field];
}

const isWrong = ({ recording }: NamedRecording) => Number(recording.request!.body!['temperature'] ?? 0) < 0;
const refused = recordings.filter((one) => refusalOf(one) !== undefined);
const taken = recordings.filter((one) => refusalOf(one) === undefined && !isWrong(one));

test.runIf(isThere)(`all recorded requests are there${why}`, () => {
  expect(taken.length).toBeGreaterThanOrEqual(atLeast(50));
  expect(refused.length).toBeGreaterThanOrEqual(atLeast(5, 0));
});

describe.runIf(isThere)('through parser and encoder', () => {
  test.each(recordings)('$name matches the schema', ({ name, recording }) => {
    const body = recording.request!.body!;
    const wrong = isWrong({ name, recording }) ? Object.entries(WRONG).map(([path, rule]) => ({ path, rule })) : [];
    expect(explain(ResponsesBody as never, body, '')).toEqual(wrong);
    expect(check.Check(body)).toBe(wrong.length === 0);
    if (wrong.length > 0) expect(recording.response.status).toBe(400);
  });

  test.each(refused)('$name is refused with the reason', (one) => {
    expect(() => send(one.recording.request!.body!)).toThrow(GatewayError);
    expect(() => send(one.recording.request!.body!)).toThrow(refusalOf(one));
  });

  test.each(taken)('$name is unchanged', ({ recording }) => {
    const body = recording.request!.body!;
    const { sent, report } = send(body);
    expect(report).toEqual([]);
    expect(normal(sent)).toEqual(normal(expected(body)));
  });

  test.runIf(isComplete)('a request of each kind of difference was recorded', () => {
    for (const [when] of OTHERWISE) expect(taken.some(({ recording }) => when(recording.request!.body!))).toBe(true);
    expect(recordings.some(isWrong)).toBe(true);
  });
});

describe.runIf(isThere)('through a running gateway', () => {
  let upstream: WireServer;
  let gateway: TestGateway;

  beforeAll(async () => {
    upstream = await startWireServer(({ body }) => {
      const answer = JSON.stringify(ANSWER);
      if ((JSON.parse(body) as JsonObject)['stream'] !== true)
        return [responseHead(200, 'application/json'), answer, 'END'];
      const event = `data: {"type":"response.completed","response":${answer}}\n\n`;
      return [responseHead(200, 'text/event-stream'), event, 'END'];
    });
    const { quirks } = endpoint;
    const provider = {
      name: 'Recorded',
      dialect: 'openai-responses',
      base_url: upstream.url,
      api_key: 'secret',
      // Like a hosted provider that fetches by itself.
      quirks: { ...quirks, inline_media: false },
    };
    const pricing = { prompt: 1, completion: 2 };
    const models = {
      'recorded/model': {
        input_modalities: ['text', 'image', 'file'],
        endpoints: [{ provider: 'recorded', upstream_model: 'upstream', pricing }],
      },
    };
    const file = { bundled_catalog: false, providers: { recorded: provider }, models, ledger: { journal_sync: 'os' } };
    gateway = await startGateway({ yaml: JSON.stringify(file) });
  });
  afterAll(async () => {
    await gateway.stop();
    await upstream.stop();
  });

  test.each(taken)('$name reaches an upstream of this wire unchanged', async ({ recording }) => {
    const body = recording.request!.body!;
    const nth = upstream.exchanges.length;
    const response = await gateway.call('POST', '/responses', {
      ...body,
      model: 'recorded/model',
      provider: undefined,
    });
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('Answered.')]);
    expect(upstream.exchanges.length).toBe(nth + 1);
    const { path, body: sent } = upstream.exchanges[nth]!;
    expect(path).toBe('/v1/responses');
    expect(normal(JSON.parse(sent) as JsonObject)).toEqual(normal(expected(body)));
  });
});

const ANSWER = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'upstream',
  output: [
    {
      type: 'message',
      id: 'msg_1',
      status: 'completed',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'Answered.', annotations: [] }],
    },
  ],
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
};

/** The expected request at an upstream of the same wire for a recorded body. */
function expected(body: JsonObject): JsonObject {
  const { provider: _, ...rest } = body;
  const include = new Set([...array(body['include']), 'reasoning.encrypted_content']);
  const otherwise = OTHERWISE.filter(([when]) => when(body)).map(([, fields]) => fields);
  return Object.assign({ ...rest, model: 'upstream', store: false, include: [...include] }, ...otherwise);
}

/**
 * The allowed differences of translation: null, empty or false members may be omitted, and messages name their type.
 */
function normal(body: JsonObject): JsonValue {
  const { input } = body;
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : array(input).map(object);
  const named = items.map((item) =>
    item['role'] !== undefined && item['type'] === undefined ? { ...item, type: 'message' } : item,
  );
  return JSON.parse(
    JSON.stringify({ ...body, input: named.filter(({ content }) => content !== '') }, (_key, value) => {
      if (value === null || (Array.isArray(value) && value.length === 0)) return undefined;
      return object(value)['type'] === 'input_image' ? { detail: 'auto', ...value } : value;
    }),
  );
}
