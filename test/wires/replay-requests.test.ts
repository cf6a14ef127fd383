/**
 * Recorded requests of the chat wire, sent through a running gateway to a plain upstream of the same wire: they are
 * unchanged, except for a closed list of changes.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';
import { type Allowed, CHANGED_BY_DIALECT, differences, reasonFor } from '../readings/differences.ts';
import { isComplete, object, recordingsOf, whySkipped } from '../readings/recordings.ts';
import { responseHead, startWireServer, type WireServer } from './wire-server.ts';

const requests = recordingsOf('openai-chat').filter(({ recording }) => recording.request?.body);
const why = whySkipped(requests, 'openai-chat');

/** Changes that the gateway makes before the dialect does. */
const ALLOWED: readonly Allowed[] = [
  {
    place: /^\.model changed$/,
    reason: 'the endpoint names its model itself',
    holds: (_, after) => after === 'plain-1',
  },
  {
    place: /^\.n removed$/,
    reason: 'the endpoint returns one answer per request, so n is 1',
    holds: (before) => before === 1,
  },
  {
    place: /^\.(?:tools\[\d+\]|tool_choice)\.type added$/,
    reason: 'functions get their type',
    holds: (_, after) => after === 'function',
  },
  {
    place: /^\.tool_choice changed$/,
    reason: '"any" has the meaning of "required"',
    holds: (before, after) => before === 'any' && after === 'required',
  },
  ...CHANGED_BY_DIALECT,
];

/** The changes, and how often each occurred. */
const seen = new Map<string, number>();

const MODALITIES = ['text', 'image', 'file', 'audio', 'video'];
const answer = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'plain',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
};
const chunk = { ...answer, choices: [{ index: 0, delta: { content: 'Yes.' }, finish_reason: 'stop' }] };

let upstream: WireServer;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startWireServer(({ body }) =>
    object(JSON.parse(body))['stream'] === true
      ? [responseHead(200, 'text/event-stream'), `data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`, 'END']
      : [responseHead(200, 'application/json'), JSON.stringify(answer), 'END'],
  );
  const endpoint = { provider: 'plain', upstream_model: 'plain-1', pricing: { prompt: 1, completion: 1 } };
  const file = {
    bundled_catalog: false,
    // Nothing is fetched: the request at a server of the operator is compared with the client's.
    providers: { plain: { dialect: 'openai-chat', base_url: upstream.url, quirks: { inline_media: false } } },
    models: { 'plain/model': { input_modalities: MODALITIES, endpoints: [endpoint] } },
    ledger: { journal_sync: 'os' },
  };
  gateway = await startGateway({ yaml: JSON.stringify(file) });
});

afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});

describe.skipIf(requests.length === 0)(`recorded requests arrive unchanged${why}`, () => {
  test.each(requests)('$name', async ({ recording }) => {
    const body = recording.request!.body!;
    const response = await gateway.call('POST', '/chat/completions', { ...body, model: 'plain/model' });
    const answerText = await response.text();
    expect(response.status, answerText).toBe(200);
    const sent = object(JSON.parse(upstream.exchanges.at(-1)!.body));
    expect(sent['model']).toBe('plain-1');
    for (const difference of differences(body, sent)) {
      const reason = reasonFor(difference, ALLOWED);
      expect.soft(reason, JSON.stringify(difference)).toBeDefined();
      if (reason !== undefined) seen.set(reason, (seen.get(reason) ?? 0) + 1);
    }
  });

  test.runIf(isComplete)('every allowed change was seen', () => {
    const table = ALLOWED.map(({ reason }) => `${String(seen.get(reason) ?? 0).padStart(6)}  ${reason}`);
    process.stdout.write(`changes to ${requests.length} recorded requests:\n${table.join('\n')}\n`);
    expect([...seen.keys()].sort()).toEqual(ALLOWED.map(({ reason }) => reason).sort());
  });
});
