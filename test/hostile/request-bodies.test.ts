/** The cost of a body's structure: every operation refuses bodies above the bounds, and none fails below them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { limits } from '../../src/limits.ts';
import { startGateway, type TestGateway } from '../harness.ts';
import { inTier } from '../tier.ts';

type Json = Record<string, unknown>;
interface Operation {
  method: string;
  path: string;
  fields: string[];
}

const document = JSON.parse(readFileSync(join(import.meta.dirname, '../../openapi.json'), 'utf8'));

/** The fields of a schema in each of its forms. */
function fieldsOf(schema: Json | undefined): string[] {
  if (schema === undefined) return [];
  const { $ref, anyOf = [], properties = {} } = schema as { $ref?: string; anyOf?: Json[]; properties?: Json };
  const named = $ref === undefined ? [] : fieldsOf(document.components.schemas[$ref.split('/').at(-1) ?? '']);
  return [...new Set([...named, ...anyOf.flatMap(fieldsOf), ...Object.keys(properties)])];
}

const operations: Operation[] = Object.entries(document.paths as Record<string, Json>).flatMap(([path, methods]) =>
  Object.entries(methods).flatMap(([method, operation]) => {
    const content = (operation as { requestBody?: { content?: Json } }).requestBody?.content;
    const schema = (content?.['application/json'] as { schema?: Json } | undefined)?.schema;
    if (schema === undefined) return [];
    return [{ method: method.toUpperCase(), path: path.replace(/\{\w+\}/g, 'x'), fields: fieldsOf(schema) }];
  }),
);

/** A request that is answered if the operation runs a model; otherwise an empty one. */
function soundBody(path: string): Json {
  if (/embeddings$/.test(path)) return { model: 'sandbox/embed', input: 'a' };
  if (/responses$/.test(path)) return { model: 'sandbox/echo', input: [{ role: 'user', content: 'a' }] };
  if (/[^t]\/completions$/.test(path)) return { model: 'sandbox/echo', prompt: 'a' };
  if (/chat\/completions$|messages|explain$/.test(path))
    return { model: 'sandbox/echo', max_tokens: 9, messages: [{ role: 'user', content: 'a' }] };
  return {};
}

const nested = (levels: number, inner = '1') => `${'{"a":['.repeat(levels / 2)}${inner}${']}'.repeat(levels / 2)}`;
const MARK = '"@"';
const ARGUMENTS = '"arguments":"@"';
/** A model of each wire; the first tier uses two. */
const ALL_MODELS = [
  '"model":"sandbox/echo"',
  ...['gemini', 'bedrock', 'cohere', 'responses'].map((wire) => `"model":"sandbox/${wire}-echo"`),
  '"provider":{"only":["sandbox-anthropic"]},"model":"sandbox/echo"',
];
const MODELS = inTier([ALL_MODELS[0]!, ALL_MODELS.at(-1)!], ALL_MODELS);

/** Bodies for operations that run models, with a mark at each place for open JSON. */
function places({ path, fields }: Operation): string[] {
  const sound = soundBody(path);
  const made = [...fields, 'unknown'].map((field) => JSON.stringify({ ...sound, [field]: '@' }));
  if (/chat\/completions$|explain$/.test(path)) {
    const call = (type: string, more: Json) => ({ ...sound, ...more, x: type });
    const turns = (...messages: Json[]) => [
      { role: 'user', content: 'a' },
      ...messages,
      { role: 'user', content: 'b' },
    ];
    made.push(
      ...[
        call('tool', { tools: [{ type: 'function', function: { name: 'f', parameters: '@' } }] }),
        call('other tool', { tools: [{ type: 'other', with: '@' }] }),
        call('format', { response_format: { type: 'json_schema', json_schema: { name: 'a', schema: '@' } } }),
        call('options', { provider: { options: { sandbox: '@' } } }),
        call('plugin', { plugins: [{ id: 'web', with: '@' }] }),
        call('part', { messages: turns({ role: 'user', content: [{ type: 'text', text: 'a', with: '@' }] }) }),
        call('message', { messages: turns({ role: 'user', content: 'a', with: '@' }) }),
        call('details', {
          messages: turns({
            role: 'assistant',
            content: 'a',
            reasoning_details: [{ type: 'reasoning.text', with: '@' }],
          }),
        }),
        call('arguments', {
          messages: turns(
            { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '@' } }] },
            { role: 'tool', tool_call_id: 'a', content: 'c' },
          ),
        }),
      ].map((one) => JSON.stringify(one)),
    );
  }
  if (/messages/.test(path)) {
    const use = { type: 'tool_use', id: 'toolu_1', name: 'f', input: '@' };
    const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'a' };
    const turns = [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: [use] },
      { role: 'user', content: [result] },
    ];
    made.push(JSON.stringify({ ...sound, messages: turns }));
    made.push(JSON.stringify({ ...sound, tools: [{ name: 'f', input_schema: { type: 'object', properties: '@' } }] }));
  }
  if (/responses$/.test(path)) {
    made.push(
      JSON.stringify({
        ...sound,
        input: [
          { role: 'user', content: 'a' },
          { type: 'reasoning', id: 'r', summary: [], with: '@' },
        ],
      }),
    );
    made.push(JSON.stringify({ ...sound, tools: [{ type: 'function', name: 'f', parameters: '@' }] }));
  }
  return made;
}

/** Bodies that each exceed a bound, with a short and a long one first. */
const BEYOND: readonly [string, string][] = [
  ['levels', nested(limits.json_levels_max + 2)],
  ['levels', `{"padding":"${'x'.repeat(150_000)}","a":${nested(3_000)}}`],
  ['levels', `${'['.repeat(1_000_000)}`],
  ['keys', `{${Array.from({ length: limits.json_keys_max + 1 }, (_, i) => `"k${i}":1`).join()}}`],
  ['values', `[${'1,'.repeat(limits.json_values_max)}1]`],
  ['values', `{"metadata":{${`[${'{},'.repeat(limits.json_values_max / 2)}{}]`}}`],
];

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

/** An answer with either type of key, whichever the operation requires. */
async function send({ method, path }: Operation, body: string): Promise<{ status: number; text: string }> {
  for (const key of [gateway.key, gateway.management_key]) {
    // A key that is unknown is refused before the body's texts are parsed.
    const known = path.replace('/keys/x/route', `/keys/${gateway.key_hash}/route`);
    const response = await fetch(`${gateway.url}${known}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body,
    });
    const text = await response.text();
    if (response.status !== 403) return { status: response.status, text };
  }
  throw new Error(`${path} takes neither key`);
}

describe.each(operations.map((operation) => [`${operation.method} ${operation.path}`, operation] as const))(
  '%s',
  (_name, operation) => {
    // One parser reads all bodies: its refusals are tested completely at one operation, and the others are tested to
    // use it.
    const shapes = /chat\/completions$|auth\/keys$/.test(operation.path) ? BEYOND : BEYOND.slice(0, 2);
    test.each(shapes)('a body of too many %s is a 400 that names the rule', async (rule, body) => {
      const { status, text } = await send(operation, body);
      // Operations without a key accept only short bodies.
      const isLong = operation.path.endsWith('/auth/keys') && body.length > limits.form_bytes_max;
      const expected = isLong ? [413, 'Request payload too large'] : [400, expect.stringContaining(rule)];
      expect([status, JSON.parse(text).error.message]).toEqual(expected);
    });

    test('a value with as many levels as a body may have causes no fault, in any field', async () => {
      const runs = /chat\/completions$|messages|responses$|explain$/.test(operation.path);
      for (const place of places(operation)) {
        const value = nested(limits.json_levels_max - 20);
        const body = place.replace(MARK, place.includes(ARGUMENTS) ? JSON.stringify(value) : value);
        for (const model of runs ? MODELS : MODELS.slice(0, 1)) {
          const { status, text } = await send(operation, body.replace('"model":"sandbox/echo"', model));
          expect([place, model, status, status >= 500 ? text : '']).toEqual([place, model, expect.any(Number), '']);
          // Bodies that the schema refuses reach no wire.
          if (status === 400) break;
        }
      }
    });

    test('a value with more levels is a 400, also inside a text that is parsed as JSON', async () => {
      for (const place of places(operation).filter((one, nth) => nth === 0 || one.includes(ARGUMENTS))) {
        const value = nested(3_000);
        const body = place.replace(MARK, place.includes(ARGUMENTS) ? JSON.stringify(value) : value);
        const { status, text } = await send(operation, body);
        expect([place, status, text]).toEqual([place, 400, expect.stringContaining('nested deeper')]);
      }
    });
  },
);

test('a body at the size limit with millions of keys is refused for its keys', async () => {
  const unit = Array.from({ length: 1_000 }, (_, i) => `"key_${String(i).padStart(6, '0')}":"v"`).join();
  const body = `{"model":"sandbox/echo","metadata":{${`${unit},`.repeat(3_500).slice(0, 60 * 1024 * 1024)}"end":1}}`;
  const response = await gateway.call('POST', '/chat/completions', body);
  expect(response.status).toBe(400);
  expect(await response.text()).toContain(`${limits.json_keys_max} keys`);
});

test('a form field that is parsed as JSON has the same bounds', async () => {
  const form = new FormData();
  form.set('model', 'sandbox/transcribe');
  form.set('file', new File([readFileSync(join(import.meta.dirname, '../audio/speech.wav'))], 'speech.wav'));
  form.set('provider', `{"options":{"sandbox":${nested(3_000)}}}`);
  const response = await fetch(`${gateway.base_url}/audio/transcriptions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}` },
    body: form,
  });
  expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('nested deeper')]);
});

test('the arguments of all calls of a request are bounded together', async () => {
  const called = (text: string, count: number) => ({
    model: 'sandbox/echo',
    messages: [
      {
        role: 'assistant',
        tool_calls: Array.from({ length: count }, (_, i) => ({
          id: `c${i}`,
          type: 'function',
          function: { name: 'f', arguments: text },
        })),
      },
    ],
  });
  const many = await gateway.call('POST', '/chat/completions', called(`{"a":[${'1,'.repeat(2_000)}1]}`, 60));
  expect([many.status, await many.text()]).toEqual([400, expect.stringContaining('100000 values together')]);
  const long = await gateway.call(
    'POST',
    '/chat/completions',
    called(JSON.stringify({ a: 'x'.repeat(2_000_000) }), 10),
  );
  expect([long.status, await long.text()]).toEqual([400, expect.stringContaining('characters together')]);
});
