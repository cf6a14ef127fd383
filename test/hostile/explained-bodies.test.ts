/** The cost of explaining the error of a body does not grow with its valid part. */
import { describe, expect, test } from 'vitest';
import { type ExplainingWork, explain, VIOLATIONS_MAX } from '../../src/http/validation.ts';
import { limits } from '../../src/limits.ts';
import { ChatCompletionBody } from '../../src/schemas/chat.ts';
import { CompletionBody } from '../../src/schemas/completions.ts';
import { EmbeddingsBody } from '../../src/schemas/embeddings.ts';
import { MessagesBody } from '../../src/schemas/messages.ts';
import { ResponsesBody } from '../../src/schemas/responses.ts';

const MIB = 1024 * 1024;
/** Values that the check reads: those that the schemas accept, and the most keys that one object may have. */
const WORK_MAX = 500;

const many = <T>(one: T, bytes: number): T[] =>
  new Array(Math.ceil(bytes / (JSON.stringify(one).length + 1))).fill(one);
/** A body with more keys in one object is not parsed. */
const keys = (value: unknown) =>
  Object.fromEntries(Array.from({ length: limits.json_keys_max }, (_, i) => [`key_${i}`, value]));
const text = { type: 'text', text: 'a' };
const user = (content: unknown) => ({ role: 'user', content });
const called = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };

const shapes: [string, object, (bytes: number) => object][] = [
  ['chat: a bad last part', ChatCompletionBody, (n) => ({ messages: [user([...many(text, n), { type: 'x' }])] })],
  ['chat: many bad parts', ChatCompletionBody, (n) => ({ messages: [user(many({ type: 'x' }, n))] })],
  [
    'chat: a bad last message',
    ChatCompletionBody,
    (n) => ({ messages: [...many(user('a'), Math.min(n, 2e5)), { role: 'x' }] }),
  ],
  [
    'chat: a bad field behind good parts',
    ChatCompletionBody,
    (n) => ({ messages: [user(many(text, n))], temperature: 'hot' }),
  ],
  [
    'chat: a bad last call',
    ChatCompletionBody,
    (n) => ({ messages: [{ role: 'assistant', tool_calls: [...many(called, n), {}] }] }),
  ],
  ['chat: metadata of many keys', ChatCompletionBody, () => ({ messages: [user('a')], metadata: keys(1) })],
  ['chat: unknown keys', ChatCompletionBody, () => ({ messages: [user('a')], ...keys(1), temperature: 'hot' })],
  ['chat: biases of many keys', ChatCompletionBody, () => ({ messages: [user('a')], logit_bias: keys('x') })],
  [
    'chat: a bad last tool',
    ChatCompletionBody,
    () => ({ messages: [user('a')], tools: [...many({ type: 'function', function: { name: 'f' } }, 30_000), 1] }),
  ],
  [
    'messages: a bad last block',
    MessagesBody,
    (n) => ({ model: 'a', max_tokens: 1, messages: [user([...many(text, n), { type: 'x' }])] }),
  ],
  [
    'messages: a bad last block of a result',
    MessagesBody,
    (n) => ({
      model: 'a',
      max_tokens: 1,
      messages: [user([{ type: 'tool_result', tool_use_id: 'a', content: [...many(text, n), {}] }])],
    }),
  ],
  [
    'messages: an input of many keys',
    MessagesBody,
    () => ({
      model: 'a',
      max_tokens: 'x',
      messages: [{ role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: keys(1) }] }],
    }),
  ],
  [
    'responses: a bad last part',
    ResponsesBody,
    (n) => ({ input: [user([...many({ type: 'input_text', text: 'a' }, Math.min(n, 2e5)), {}])] }),
  ],
  ['responses: too many items', ResponsesBody, (n) => ({ input: many(user('a'), n) })],
  ['completions: a bad last prompt', CompletionBody, (n) => ({ prompt: many('a', n), max_tokens: 'x' })],
  [
    'embeddings: a bad last token',
    EmbeddingsBody,
    (n) => ({ model: 'a', input: [...many([1, 2, 3], Math.min(n, 7e4)), [1.5]] }),
  ],
];

describe.each(shapes)('%s', (_name, schema, body) => {
  test.each([1, 10])('of %d MiB is explained with bounded work', (mib) => {
    const work: ExplainingWork = { values: 0 };
    const violations = explain(schema as never, body(mib * MIB), '', work);
    expect(violations.length).toBeGreaterThan(0);
    expect(violations.length).toBeLessThanOrEqual(VIOLATIONS_MAX);
    expect(work.values).toBeLessThanOrEqual(WORK_MAX);
  });
});
