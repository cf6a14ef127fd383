/** The checker accepts a correct stream, and refuses nearly every change of one. */
import { describe, expect, test } from 'vitest';
import type { ChatChunk, Delta, Ext, SlotEvent } from '../../src/schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { array, object } from '../readings/recordings.ts';
import { streamed } from '../wires/responses-encoder.ts';
import { checkResponsesStream } from './responses.ts';

const chunk = (n: number, delta: Delta, event: Omit<SlotEvent, 'n'> = {}): ChatChunk => ({
  delta,
  ext: { slot: { n, ...event } },
});
const ext = (rest: JsonObject): Ext => ({ wire: 'openai-responses', rest });
const cited = {
  type: 'url_citation' as const,
  url_citation: { url: 'https://a.example', start_index: 0, end_index: 2 },
};
const search = (status: string) => ({
  type: 'native' as const,
  wire: 'openai-responses' as const,
  block: { type: 'web_search_call', id: 'ws_1', status },
});

/** One of everything. */
const CHUNKS: ChatChunk[] = [
  { delta: { role: 'assistant' } },
  chunk(
    0,
    { reasoning_details: [{ type: 'reasoning.summary', summary: 'So', format: 'openai-responses-v1', index: 0 }] },
    { open: { kind: 'reasoning', ext: ext({ id: 'rs_1' }) } },
  ),
  chunk(0, { reasoning_details: [{ type: 'reasoning.text', text: 'Hm', format: 'openai-responses-v1', index: 1 }] }),
  chunk(0, {}, { close: { ext: ext({ id: 'rs_1' }) } }),
  chunk(1, {}, { open: { kind: 'native', native: search('in_progress') } }),
  chunk(1, {}, { raw: { type: 'response.web_search_call.searching' } }),
  chunk(1, {}, { close: { native: search('completed') } }),
  {
    ...chunk(2, { content: 'Hello' }, { open: { kind: 'text' } }),
    logprobs: { content: [{ token: 'Hello', logprob: 0 }] },
  },
  chunk(2, { content: ' there' }),
  chunk(2, { annotations: [cited] }, { close: {} }),
  chunk(3, { refusal: 'No' }, { open: { kind: 'refusal' } }),
  chunk(3, {}, { close: {} }),
  chunk(
    4,
    { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '' } }] },
    { open: { kind: 'call' } },
  ),
  chunk(4, { tool_calls: [{ index: 0, function: { arguments: '{"a":' } }] }),
  chunk(4, { tool_calls: [{ index: 0, function: { arguments: '1}' } }] }),
  chunk(4, {}, { close: {} }),
  chunk(
    5,
    { tool_calls: [{ index: 1, id: 'call_2', type: 'function', function: { name: 'run', arguments: '' } }] },
    { open: { kind: 'call', ext: ext({ id: 'ctc_1', type: 'custom_tool_call' }) } },
  ),
  chunk(5, { tool_calls: [{ index: 1, function: { arguments: '{"input":"ls"}' } }] }, { close: {} }),
  chunk(
    6,
    { images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }] },
    { open: { kind: 'image' } },
  ),
  chunk(6, {}, { close: {} }),
  { delta: {}, finish_reason: 'tool_calls', native_finish_reason: 'completed' },
];

const EVENTS = eventsOf(streamed([CHUNKS]));

function eventsOf(text: string): JsonObject[] {
  return [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json]) => JSON.parse(json!));
}

function written(events: readonly JsonObject[]): string {
  const counted = events.map((event, sequenceNumber) => ({ ...event, sequence_number: sequenceNumber }));
  return `${counted.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`;
}

function passes(events: readonly JsonObject[]): boolean {
  try {
    checkResponsesStream(written(events));
    return true;
  } catch {
    return false;
  }
}

const named = EVENTS.map((event, at) => ({ name: `${at} ${event['type']}`, at }));

/** Events of the upstream's own items, and of a generated image. None of them is required. */
const FREE = /web_search_call\.|image_generation_call\./;
/** After this event no other event of its item follows. */
const OVER = /_call\.completed$/;

test('a correct stream passes, and contains every event', () => {
  expect(EVENTS.length).toBeGreaterThan(40);
  expect(passes(EVENTS)).toBe(true);
});

describe('it fails if', () => {
  test.each(named)('$name is missing', ({ name, at }) => {
    expect(passes(EVENTS.toSpliced(at, 1))).toBe(FREE.test(name));
  });

  test.each(named)('$name is repeated', ({ name, at }) => {
    expect(passes(EVENTS.toSpliced(at, 0, EVENTS[at]!))).toBe(FREE.test(name) && !OVER.test(name));
  });

  test.each(named.slice(1))('$name is too early', ({ name, at }) => {
    const swapped = EVENTS.with(at, EVENTS[at - 1]!).with(at - 1, EVENTS[at]!);
    // A citation may precede or follow the end of its text.
    const isFree = /annotation\.added|output_text\.done/.test(name) && /delta|annotation/.test(named[at - 1]!.name);
    expect(passes(swapped)).toBe(isFree || (FREE.test(name) && FREE.test(named[at - 1]!.name) && !OVER.test(name)));
  });

  test.each(named)('$name is the last', ({ at }) => {
    expect(passes(EVENTS.slice(0, at))).toBe(false);
  });
});

/** Members of a stream that may have any value of their type, by the contract. */
const ANYTHING: readonly (readonly [RegExp, string])[] = [
  [
    /^response\.(?!output\.|status|id$|object|created_at|completed_at|error|incomplete|usage|instructions|tools|metadata)/,
    'what the answer repeats of its request',
  ],
  [/^item\.status$/, 'how far an item of the provider’s own is'],
  [/^response\.completed_at$|^response\.created_at$/, 'times'],
  [
    /^response\.usage\.(?:cost|cost_details\..*|input_tokens_details\..*|output_tokens_details\..*|is_byok)$/,
    'amounts',
  ],
];

/** Every leaf of a value, as its path. */
function leaves(value: JsonValue | undefined, path: string[] = []): string[][] {
  if (Array.isArray(value)) return value.flatMap((one, at) => leaves(one, [...path, String(at)]));
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([name, one]) => leaves(one, [...path, name]));
}

function replaced(value: JsonValue, [name, ...path]: readonly string[], by: JsonValue): JsonValue {
  if (name === undefined) return by;
  if (Array.isArray(value)) return value.map((one, at) => (String(at) === name ? replaced(one, path, by) : one));
  const of = object(value);
  return { ...of, [name]: replaced(of[name]!, path, by) };
}

function changed(value: JsonValue, [name, ...path]: readonly string[]): JsonValue {
  if (name === undefined) {
    if (typeof value === 'string') return `${value}x`;
    if (typeof value === 'number') return value + 1;
    return typeof value === 'boolean' ? !value : 'x';
  }
  const of = Array.isArray(value) ? value[Number(name)] : object(value)[name];
  return replaced(value, [name], changed(of!, path));
}

test('it fails if any value changes, except values that are free', () => {
  const free = new Set<string>();
  const passed: string[] = [];
  let changes = 0;
  EVENTS.forEach((event, at) => {
    for (const path of leaves(event)) {
      if (path[0] === 'sequence_number') continue;
      changes += 1;
      if (!passes(EVENTS.with(at, object(changed(event, path))))) continue;
      const field = path.filter((name) => !/^\d+$/.test(name)).join('.');
      const reason = ANYTHING.find(([pattern]) => pattern.test(field))?.[1];
      if (reason === undefined) passed.push(`${event['type']} ${field}`);
      else free.add(reason);
    }
  });
  expect(passed).toEqual([]);
  expect(changes).toBeGreaterThan(300);
  expect(free.size).toBe(ANYTHING.length);
});

test('it fails if an event has no position, or the response lacks a default of the request', () => {
  const passed: string[] = [];
  EVENTS.forEach((event, at) => {
    for (const path of leaves(event)) {
      const field = path.join('.');
      if (!/_index$|^response\.(?:temperature|top_p|\w+_penalty|top_logprobs|store|truncation|text\.)/.test(field))
        continue;
      for (const value of [null, {}, 'x1', -1.5]) {
        if (typeof value === typeof at && field.startsWith('response.')) continue;
        if (value === 'x1' && /truncation|text/.test(field)) continue;
        if (passes(EVENTS.with(at, object(replaced(event, path, value))))) passed.push(`${event['type']} ${field}`);
      }
    }
  });
  expect(passed).toEqual([]);
});

test('a late citation of a closed message follows all items, has its position, and is in the last event', () => {
  const late: ChatChunk = {
    delta: { annotations: [{ ...cited, url_citation: { ...cited.url_citation, title: 'L' } }] },
  };
  const events = eventsOf(streamed([CHUNKS.toSpliced(-1, 0, late)]));
  const at = events.length - 2;
  expect(events[at]!['type']).toBe('response.output_text.annotation.added');
  expect(passes(events)).toBe(true);
  for (const wrong of [
    { item_id: 'msg_x' },
    { output_index: 0 },
    { content_index: 1 },
    { annotation_index: 0 },
    { annotation: cited },
  ]) {
    expect(passes(events.with(at, { ...events[at]!, ...wrong })), JSON.stringify(wrong)).toBe(false);
  }
  expect(passes(events.toSpliced(at, 1))).toBe(false);
  expect(passes(events.toSpliced(at - 3, 0, ...events.slice(at, at + 1)).toSpliced(at + 1, 1))).toBe(false);
});

test('it fails if numbers of events have a gap, an item has more than its events, or the framing differs', () => {
  const text = written(EVENTS);
  expect(() => checkResponsesStream(text.replace('"sequence_number":7', '"sequence_number":8'))).toThrow('number');
  const last = EVENTS.at(-1)!;
  const output = array(object(last['response'])['output']);
  const longer = { ...last, response: { ...object(last['response']), output: [...output, output[0]!] } };
  expect(passes(EVENTS.with(-1, longer))).toBe(false);
  for (const broken of [
    text.replace('data: [DONE]\n\n', ''),
    `${text}data: [DONE]\n\n`,
    text.replace('data: ', 'event: response.created\ndata: '),
    text.replaceAll('\n', '\r\n'),
    text.replace('data: {', 'data: {\n'),
  ]) {
    expect(() => checkResponsesStream(broken)).toThrow();
  }
  expect(() =>
    checkResponsesStream(`: WAIT\n\n${text.replace('data: [DONE]', ': WAIT\n\ndata: [DONE]')}`),
  ).not.toThrow();
});
