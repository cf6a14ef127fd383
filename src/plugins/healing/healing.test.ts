import { afterAll, describe, expect, test } from 'vitest';
import type { Call } from '../../inference/call.ts';
import { CallCancellation } from '../../inference/call.ts';
import type { ChatCompletion, ChatRequest, Message, ResponseFormat } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { Stage } from '../../schemas/routing-metadata.ts';
import { createHealing } from './healing.ts';

const healing = createHealing({ ms_max: 1_500 });
afterAll(() => healing.stop());

const object: ResponseFormat = { type: 'json_object' };
const schema = (definition: JsonObject): ResponseFormat => ({
  type: 'json_schema',
  json_schema: { name: 'a', schema: definition },
});
const plugins = [{ id: 'response-healing' }];

function callOf(responseFormat: ResponseFormat | undefined, more: Partial<ChatRequest> = {}): Call {
  const request = { messages: [], plugins, ...(responseFormat ? { response_format: responseFormat } : {}), ...more };
  const principal = { key_hash: 'k', kind: 'key' };
  return { request, principal, stages: [] as Stage[], cancellation: new CallCancellation() } as unknown as Call;
}

function answerOf(content: Message['content'], more: Partial<ChatCompletion['choices'][0]> = {}): ChatCompletion {
  const message = { role: 'assistant' as const, content: content ?? null };
  return {
    choices: [{ index: 0, message, finish_reason: 'stop', native_finish_reason: 'stop', ...more }],
    created: 0,
    ext: { wire: 'openai-chat', rest: {} },
  };
}

async function healed(text: string, format: ResponseFormat = object) {
  const call = callOf(format);
  const { choices } = await healing.heal(call, answerOf(text));
  return { text: choices[0].message.content, stages: call.stages };
}

describe('faulty JSON is repaired', () => {
  test.each([
    ['in a fence', '```json\n{"a": 1}\n```', { a: 1 }],
    ['in a fence without an end', '```json\n{"a": 1}', { a: 1 }],
    ['between prose', 'Here you are: {"a": 1}. Is there anything else?', { a: 1 }],
    ['in a fence between prose', 'Sure!\n```\n{"a": [1, 2]}\n```\nDone.', { a: [1, 2] }],
    ['with an additional comma', '{"a": 1,}', { a: 1 }],
    ['with a missing comma', '{"a": 1 "b": 2}', { a: 1, b: 2 }],
    ['with single quotes', "{'a': 'b'}", { a: 'b' }],
    ['with unquoted keys', '{a: 1}', { a: 1 }],
    ['without its last bracket', '{"a": {"b": [1, 2]', { a: { b: [1, 2] } }],
    ["with Python's literals", '{"a": True, "b": None}', { a: true, b: null }],
    ['with comments', '{"a": 1 /* one */}', { a: 1 }],
    ['with a fence inside a string', '{"a": "```json\\n{}\\n```",}', { a: '```json\n{}\n```' }],
  ])('%s', async (_title, text, value) => {
    const result = await healed(text);
    expect(JSON.parse(result.text as string)).toEqual(value);
    expect(result.stages).toEqual([
      {
        type: 'response_healing',
        name: 'response-healing',
        data: {
          mode: 'json_object',
          improved: true,
          original_length: text.length,
          healed_length: (result.text as string).length,
        },
      },
    ]);
  });
});

const person = schema({
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer' } },
  required: ['name', 'age'],
  additionalProperties: false,
});

describe('a schema', () => {
  test('selects the matching candidate', async () => {
    const text = 'For example {"x": 1}. The answer:\n```json\n{"name": "Ann", "age": 7,}\n```';
    expect(JSON.parse((await healed(text, person)).text as string)).toEqual({ name: 'Ann', age: 7 });
  });

  test('accepts a valid answer without a stage', async () => {
    expect(await healed('{"name": "Ann", "age": 7}', person)).toEqual({
      text: '{"name": "Ann", "age": 7}',
      stages: [],
    });
  });

  test.each(['{"name": "Ann"}', '{"name": "Ann", "age": "seven",}', 'I do not know.', '[1, 2]'])(
    'that matches no candidate leaves the answer unchanged: %s',
    async (text) => {
      const result = await healed(text, person);
      expect(result.text).toBe(text);
      expect(result.stages[0]?.data).toMatchObject({
        mode: 'json_schema',
        improved: false,
        reason: expect.any(String),
      });
    },
  );

  test('of an array accepts an array', async () => {
    expect((await healed('```\n[1, 2,]\n```', schema({ type: 'array', items: { type: 'integer' } }))).text).toMatch(
      /^\[1, 2\s*\]$/,
    );
  });

  test('of an older draft is checked by that draft', async () => {
    const tuple = { $schema: 'http://json-schema.org/draft-07/schema#', items: [{ type: 'string' }], type: 'array' };
    expect((await healed('["a",]', schema(tuple))).text).toBe('["a"]');
    expect((await healed('[1,]', schema(tuple))).text).toBe('[1,]');
  });
});

describe('a hostile schema', () => {
  const levels = Array.from({ length: 40 }, (_, at) => [
    `l${at}`,
    at === 39 ? { type: 'object' } : { allOf: [{ $ref: `#/$defs/l${at + 1}` }, { $ref: `#/$defs/l${at + 1}` }] },
  ]);
  test.each<[string, JsonObject, string]>([
    ['that doubles forty times', { $defs: Object.fromEntries(levels), $ref: '#/$defs/l0' }, '{"a": 1,}'],
    ['that contains itself', { allOf: [{ $ref: '#' }] }, '{"a": 1,}'],
    ['that is at another address', { $ref: 'https://schemas.example/a.json' }, '{"a": 1,}'],
    ['that is invalid', { type: 'nothing' }, '{"a": 1,}'],
    ['with a pattern that RE2 does not support', { properties: { a: { pattern: '(?=a)b' } } }, '{"a": "b",}'],
    ['that is large', { description: 'x'.repeat(300_000) }, '{"a": 1,}'],
    [
      'that is nested deeply',
      JSON.parse(`${'{"not":'.repeat(5_000)}{}${'}'.repeat(5_000)}`) as JsonObject,
      '{"a": 1,}',
    ],
  ])('%s: the answer is unchanged', async (_title, definition, text) => {
    const result = await healed(text, schema(definition));
    expect(result.text).toBe(text);
    expect(result.stages[0]?.data).toMatchObject({ improved: false });
    expect((await healed('{"a": 1,}')).text).toBe('{"a": 1}');
  });

  test('any pattern is matched in linear time', async () => {
    const evil = schema({ type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } });
    const text = `{"a": "${'a'.repeat(50_000)}"`;
    expect((await healed(text, evil)).stages[0]?.data).toMatchObject({ improved: true });
    const { stages } = await healed(`{"a": "${'a'.repeat(50_000)}!"`, evil);
    // It was checked to its end.
    expect(stages[0]?.data).toMatchObject({
      improved: false,
      reason: expect.stringMatching(/^it could not be turned/),
    });
  });
});

describe('an answer is not repaired', () => {
  const broken = '{"a": 1,}';
  test.each<[string, Partial<ChatCompletion['choices'][0]>]>([
    ['if it was cut off', { finish_reason: 'length' }],
    ['if it ended in an error', { finish_reason: 'error' }],
    [
      'if it calls tools',
      {
        message: {
          role: 'assistant',
          content: broken,
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{' } }],
        },
      },
    ],
  ])('%s', async (_title, more) => {
    const call = callOf(object);
    const answer = answerOf(broken, more);
    expect(await healing.heal(call, answer)).toBe(answer);
    expect(call.stages).toEqual([]);
  });

  test.each<[string, ResponseFormat | undefined, Partial<ChatRequest>]>([
    ['for a call without a format', undefined, {}],
    ['for a call for text', { type: 'text' }, {}],
    ['for a call without the plugin', object, { plugins: [] }],
    ['for a call with the plugin disabled', object, { plugins: [{ id: 'response-healing', enabled: false }] }],
  ])('%s', (_title, format, more) => {
    expect(healing.isFor(callOf(format, more))).toBe(false);
    expect(healing.isFor(callOf(object))).toBe(true);
  });
});

describe('a repair loses no content of an answer', () => {
  const whole = { code: '```js\nf({})\n``` and "```" {x} [y]', n: 1 };
  const code = JSON.stringify(whole);
  const broken = code.replace(/\}$/, ',}');
  test.each<[string, string]>([
    ['fences in a string, between fences', `\`\`\`json\n${broken}\n\`\`\``],
    ['fences in a string, after another fence', `\`\`\`js\nf({})\n\`\`\`\nand\n\`\`\`json\n${code}\n\`\`\``],
    ['fences in a string, and prose with brackets', `Here [as {asked}]: ${broken} as {asked}.`],
    ['reasoning before it', `<think>I need {"code": ...}</think>${code}`],
    ['all of it in a string', JSON.stringify(code)],
    ['a missing end', `\`\`\`json\n${code.slice(0, -1)}\n\`\`\``],
  ])('%s', async (_title, text) => {
    const form = schema({ type: 'object', properties: { code: { type: 'string' }, n: {} }, required: ['code', 'n'] });
    expect(JSON.parse((await healed(text, form)).text as string)).toEqual(whole);
  });

  test('an array of objects is not replaced by one of its objects', async () => {
    expect((await healed('[{"a": 1}, {"b": 2}]')).text).toBe('[{"a": 1}, {"b": 2}]');
    expect((await healed('{"user": {"name": "Ann"}, "tags": [1,')).text).toMatch(/^\{"user"/);
  });
});

test('a repaired answer of several texts has all text in the first, and other blocks keep their positions', async () => {
  const parts = ['Here: ', '{"a":', ' 1,}'].map((text) => ({ type: 'text' as const, text }));
  const order = parts.map((_, at) => ({ kind: 'text' as const, at }));
  const answer = answerOf(parts);
  answer.choices[0].message.ext = { wire: 'openai-chat', rest: {}, order };
  answer.choices[0].message.annotations = [
    { type: 'url_citation', url_citation: { url: 'https://a.example', start_index: 1, end_index: 3 } },
  ];
  const { message } = (await healing.heal(callOf(object), answer)).choices[0];
  expect(message.content).toEqual([
    { type: 'text', text: '{"a": 1}' },
    { type: 'text', text: '' },
    { type: 'text', text: '' },
  ]);
  expect(message.ext?.order).toEqual(order);
  expect(message.annotations?.[0]).toMatchObject({ url_citation: { start_index: 0, end_index: 0 } });
});
