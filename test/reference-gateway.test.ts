/**
 * Recorded exchanges with the public service whose contract this gateway follows: it accepts every recorded request,
 * and its answers have every field of the recorded ones. A scripted upstream sends the service's content.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../src/schemas/json.ts';
import { checkChatStream } from './grammar/chat.ts';
import { checkResponsesStream } from './grammar/responses.ts';
import { startGateway, type TestGateway } from './harness.ts';
import { array, isComplete, type NamedRecording, object, recordingsOf, whySkipped } from './readings/recordings.ts';
import { responseHead, startWireServer, type WireServer } from './wires/wire-server.ts';

const all = recordingsOf('reference-gateway');
const why = whySkipped(all, 'reference-gateway');
const isChat = ({ recording }: NamedRecording) => recording.request?.path.endsWith('/chat/completions');
const chats = all.filter(isChat);
const responses = all.filter(({ recording }) => recording.request?.path.endsWith('/responses'));
const namesPreset = ({ recording }: NamedRecording) => recording.request?.body?.['preset'] !== undefined;
const presets = chats.filter(namesPreset);
const whole = chats.filter(
  (one) => one.recording.response.status === 200 && one.recording.response.json && !namesPreset(one),
);
const streams = chats.filter(({ recording }) => recording.response.text !== undefined);
const errors = chats.filter(({ recording }) => recording.response.status !== 200);

/**
 * Fields of recorded answers that the gateway's answers may lack, and why. Each must be missing in at least one answer.
 */
const MISSING: readonly (readonly [RegExp, string])[] = [
  [/^(?:\[\]\.)?usage\.server_tool_use_details\b/, 'the gateway does not report these details'],
  [/^response\.\w+: response\.output_text$/, 'the service omits it today; clients add it themselves'],
];
const missed = new Set<string>();

/** Providers that recorded requests name. Here all of them speak the chat wire. */
const SLUGS = ['anthropic', 'google-ai-studio', 'openai', 'xai'];

let upstream: WireServer;
let gateway: TestGateway;
let answering: NamedRecording;

beforeAll(async () => {
  upstream = await startWireServer(() => {
    const { status, json, text } = answering.recording.response;
    if (text !== undefined) return [responseHead(status, 'text/event-stream'), text, 'END'];
    return [responseHead(status, 'application/json'), JSON.stringify(json), 'END'];
  });
  const ids = new Set(chats.flatMap(({ recording }) => modelsOf(recording.request!.body!)));
  const models = [...ids].map((id) => [
    id,
    {
      input_modalities: ['text', 'image', 'file', 'audio', 'video'],
      output_modalities: ['text', 'image'],
      endpoints: SLUGS.map((provider) => ({
        provider,
        upstream_model: id,
        pricing: { prompt: 1, completion: 2 },
      })),
    },
  ]);
  const routes = responses.map((one) => [
    modelOf(one),
    {
      endpoints: [
        { provider: 'openai', dialect: 'openai-responses', upstream_model: 'x', pricing: { prompt: 1, completion: 2 } },
      ],
    },
  ]);
  const file = {
    bundled_catalog: false,
    // Some requests offer a search; no model of the recordings calls the tool that it becomes here.
    plugins: { web: { engines: { searxng: { url: 'http://127.0.0.1:9' } } } },
    providers: Object.fromEntries(
      SLUGS.map((slug) => [
        slug,
        {
          dialect: 'openai-chat',
          base_url: upstream.url,
          api_key: 'secret',
          quirks: { inline_media: false },
        },
      ]),
    ),
    models: Object.fromEntries([...models, ...routes]),
    ledger: { journal_sync: 'os' },
  };
  gateway = await startGateway({ yaml: JSON.stringify(file) });
});

afterAll(async () => {
  await gateway.stop();
  await upstream.stop();
});

function modelsOf(body: JsonObject): string[] {
  return [body['model'], ...array(body['models'])].map(String);
}

/** Its own model of the gateway, whose upstream speaks the API itself. */
function modelOf(one: NamedRecording): string {
  return `responses/${responses.indexOf(one)}`;
}

/** Fields for a gateway, not for a model. */
const GATEWAY_ONLY = ['models', 'provider', 'preset', 'transforms', 'usage'];

/** A page that replaces a document on the internet, which the gateway would fetch for an upstream that cannot. */
function withoutAddresses(body: JsonObject): string {
  const page = `"file_data":"data:application/pdf;base64,${Buffer.from('%PDF-1.4').toString('base64')}"`;
  return JSON.stringify(body).replace(/"file_data":"https?:[^"]*"/g, page);
}

async function ask(one: NamedRecording): Promise<Response> {
  answering = one;
  const body = one.recording.request!.body!;
  const response = isChat(one)
    ? await gateway.call('POST', '/chat/completions', withoutAddresses(body))
    : await gateway.call('POST', '/responses', { ...body, model: modelOf(one) });
  const sent = upstream.exchanges.splice(0).map(({ body }) => object(JSON.parse(body)));
  expect(sent.flatMap((body) => GATEWAY_ONLY.filter((field) => field in body))).toEqual([]);
  return response;
}

/**
 * Every member of a value and below it, with lists by their entries: `choices[].delta.content`. An empty list has no
 * members.
 */
function fieldsOf(value: JsonValue | undefined, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((entry) => fieldsOf(entry, `${path}[]`));
  return Object.entries(object(value)).flatMap(([name, entry]) => {
    const field = path === '' ? name : `${path}.${name}`;
    if (Array.isArray(entry) && entry.length === 0) return [];
    return [field, ...fieldsOf(entry, field)];
  });
}

function expectFields(recorded: JsonValue, ours: JsonValue, of = ''): void {
  const have = new Set(fieldsOf(ours));
  for (const name of new Set(fieldsOf(recorded))) {
    const field = of + name;
    if (have.has(name)) continue;
    const reason = MISSING.find(([pattern]) => pattern.test(field))?.[1];
    expect.soft(reason, `${field} is missing`).toBeDefined();
    if (reason !== undefined) missed.add(reason);
  }
}

function recordedChunks(chat: NamedRecording): JsonObject[] {
  const lines = chat.recording.response.text!.split('\n').filter((line) => line.startsWith('data: {'));
  return lines.map((line) => object(JSON.parse(line.slice('data: '.length))));
}

describe.skipIf(all.length === 0)(`whole answers${why}`, () => {
  test.each(whole)('$name', async (chat) => {
    const response = await ask(chat);
    const answer = (await response.json()) as JsonObject;
    expect(response.status, JSON.stringify(answer)).toBe(200);
    const recorded = object(chat.recording.response.json);
    expectFields(recorded, answer);
    const [expected, actual] = [recorded, answer].map((one) => object(object(array(one['choices'])[0])['message']));
    // Beside tool calls some providers send null and others omit the field.
    expect(actual!['content'] ?? '').toBe(expected!['content'] ?? '');
  });
});

describe.skipIf(all.length === 0)(`streams${why}`, () => {
  test.each(streams)('$name', async (chat) => {
    const response = await ask(chat);
    const body = await response.text();
    expect(response.status, body).toBe(200);
    const [recorded, ours] = [recordedChunks(chat), checkChatStream(body)];
    expectFields(recorded, ours);
    // Each of the gateway's chunks and choices has the members that every recorded one has.
    for (const [before, after] of [
      [recorded, ours],
      [choicesOf(recorded), choicesOf(ours)],
    ] as const) {
      const everywhere = Object.keys(before[0]!).filter((name) => before.every((one) => name in one));
      for (const one of after) expect(Object.keys(one)).toEqual(expect.arrayContaining(everywhere));
    }
    const textOf = (chunks: JsonObject[]) =>
      choicesOf(chunks)
        .map((choice) => object(choice['delta'])['content'] ?? '')
        .join('');
    expect(textOf(ours)).toBe(textOf(recorded));
  });
});

function choicesOf(chunks: JsonObject[]): JsonObject[] {
  return chunks.flatMap((chunk) => array(chunk['choices']).map(object));
}

test.skipIf(all.length === 0)(`every recording is one of those above${why}`, () => {
  expect(whole.length + streams.length + errors.length + responses.length + presets.length).toBe(all.length);
});

// A preset stands for fields that this gateway does not know.
describe.skipIf(presets.length === 0)('presets', () => {
  test.each(presets)('$name is refused with the name of the field', async (chat) => {
    const response = await gateway.call('POST', '/chat/completions', withoutAddresses(chat.recording.request!.body!));
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('preset is not supported')]);
  });
});

describe.skipIf(all.length === 0)(`errors${why}`, () => {
  test.each(errors)('$name', async (chat) => {
    const response = await ask(chat);
    const body = (await response.json()) as JsonObject;
    expect(response.status).toBe(chat.recording.response.status);
    expectFields(chat.recording.response.json!, body);
  });
});

describe.skipIf(all.length === 0)(`responses${why}`, () => {
  test.each(responses)('$name', async (one) => {
    const answer = await ask(one);
    const text = await answer.text();
    expect(answer.status, text).toBe(200);
    const { json } = one.recording.response;
    if (json !== undefined) {
      const ours = JSON.parse(text) as JsonObject;
      expectFields(json, ours);
      expect(textOfOutput(ours)).toBe(textOfOutput(object(json)));
      return;
    }
    const [recorded, { events }] = [recordedChunks(one), checkResponsesStream(text)];
    const kindOf = ({ type, item, part }: JsonObject) =>
      `${type} ${object(item)['type'] ?? object(part)['type'] ?? ''}`;
    for (const kind of new Set(recorded.map(kindOf))) {
      const [theirs, mine] = [recorded, events].map((one) => one.filter((event) => kindOf(event) === kind));
      expect(mine!.length, kind).toBe(theirs!.length);
      for (const [at, event] of theirs!.entries()) expectFields(event, mine![at]!, `${event['type']}: `);
    }
    const last = (all: JsonObject[]) => object(all.at(-1)!['response']);
    expect(textOfOutput(last(events))).toBe(textOfOutput(last(recorded)));
  });
});

function textOfOutput(response: JsonObject): string {
  const parts = array(response['output']).flatMap((item) => array(object(item)['content']).map(object));
  return parts.map((part) => part['text'] ?? '').join('');
}

test.runIf(isComplete)('every listed missing field is still missing', () => {
  expect([...missed].sort()).toEqual(MISSING.map(([, reason]) => reason).sort());
});
