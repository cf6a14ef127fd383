import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { chunksOf } from '../../schemas/chunks.ts';
import type { ChatCompletion, ChatRequest, Message } from '../../schemas/inner.ts';
import { contentOf, LOGGED_OUTPUT_CHARS_MAX, OutputText } from './content.ts';
import { LOGGED_ADDRESS_CHARS_MAX, LOGGED_MEDIA_HASHED_CHARS_MAX } from './content-copy.ts';

const requestOf = (...messages: Message[]): ChatRequest => ({
  messages,
  model: 'acme/one',
  provider: { only: ['acme'] },
});
const kept = (request: ChatRequest) => contentOf(request, new OutputText(), undefined);
const user = (content: Message['content']): Message => ({ role: 'user', content });

const PNG = Buffer.from('a picture, or so'.repeat(8)).toString('base64');

test('media is logged as type, size and hash, without its bytes', () => {
  const { request } = kept(
    requestOf(
      user([
        { type: 'text', text: 'see' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
        { type: 'input_audio', input_audio: { data: PNG, format: 'wav' } },
        { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PNG}` } },
        {
          type: 'native',
          wire: 'anthropic-messages',
          block: { type: 'document', source: { type: 'base64', data: PNG } },
        },
      ]),
    ),
  );
  const text = JSON.stringify(request);
  expect(text).not.toContain(PNG.slice(0, 40));
  const bytes = Buffer.from(PNG, 'base64');
  expect(text).toContain(`[image/png, ${bytes.length} bytes, sha256 ${hash('sha256', bytes)}]`);
  expect(text).toContain(`[application/pdf, ${bytes.length} bytes`);
  expect(request.messages[0]?.content).toHaveLength(5);
});

test('plain text documents are logged as text', () => {
  const data = 'A document in words. '.repeat(10);
  const block = { type: 'document', source: { type: 'text', media_type: 'text/plain', data } };
  const { request } = kept(requestOf(user([{ type: 'native', wire: 'anthropic-messages', block }])));
  expect(request.messages[0]?.content).toEqual([block]);
});

test('only the length of very long addresses and percent-encoded data is logged', () => {
  const address = `https://store.example/${'é'.repeat(LOGGED_ADDRESS_CHARS_MAX)}`;
  const words = `data:text/plain,${'%41'.repeat(LOGGED_MEDIA_HASHED_CHARS_MAX / 3)}`;
  const sent = [address, words].map((url) => ({ type: 'image_url' as const, image_url: { url } }));
  const { request } = kept(requestOf(user(sent)));
  expect(request.messages[0]?.content).toEqual([
    { type: 'image_url', image_url: { url: `[address, ${address.length} characters]` } },
    { type: 'image_url', image_url: { url: `[media, ${words.length} characters]` } },
  ]);
});

test('addresses of media are logged without parts that may be secret', () => {
  const { request } = kept(
    requestOf(
      user([{ type: 'image_url', image_url: { url: 'https://user:pw@store.example/a.png?signature=s3cret#x' } }]),
    ),
  );
  expect(request.messages[0]?.content).toEqual([
    { type: 'image_url', image_url: { url: 'https://store.example/a.png' } },
  ]);
});

test('opaque state is not logged; reasoning is logged as text, and fields of a single wire are kept', () => {
  const message: Message = {
    role: 'assistant',
    content: 'so',
    reasoning_details: [
      { type: 'reasoning.text', text: 'I think ', signature: 'opaque-signature' },
      { type: 'reasoning.encrypted', data: 'opaque-data' },
      { type: 'reasoning.summary', summary: 'therefore' },
    ],
    ext: { wire: 'anthropic-messages', rest: { remainder: 'known to one wire', signature: 'opaque-rest' }, order: [] },
  };
  const { request } = kept(requestOf(message));
  expect(request.messages).toEqual([
    {
      role: 'assistant',
      content: 'so',
      reasoning: 'I think therefore',
      wire_fields: { remainder: 'known to one wire' },
    },
  ]);
  const blocks = [
    { type: 'web_search_result', title: 'A page', encrypted_content: 'opaque-page' },
    { type: 'thinking', thinking: 'so', signature: 'opaque-signature' },
    { type: 'text', text: 'so', thoughtSignature: 'opaque-thought', cache_control: { type: 'ephemeral' } },
  ];
  const natives = blocks.map((block) => ({ type: 'native' as const, wire: 'anthropic-messages' as const, block }));
  expect(kept(requestOf(user(natives))).request.messages[0]?.content).toEqual([
    { type: 'web_search_result', title: 'A page' },
    { type: 'thinking', thinking: 'so' },
    { type: 'text', text: 'so' },
  ]);
});

test('routing preferences are not logged; tools, metadata and the user are', () => {
  const { request } = kept({
    ...requestOf(user('hi')),
    user: 'u-1',
    metadata: { job: 'j' },
    tools: [{ type: 'function', function: { name: 'f', description: 'does', parameters: { type: 'object' } } }],
  });
  expect(Object.keys(request).sort()).toEqual(['messages', 'metadata', 'tools', 'user']);
});

test('the last messages of a long conversation and the start of a long text are logged and marked as truncated', () => {
  const long = 'x'.repeat(limits.logged_input_chars_max);
  const cut = kept(requestOf(user(long), user('the last')));
  expect(cut.truncated).toBe(true);
  expect(cut.request.messages.at(-1)).toEqual(user('the last'));
  expect(JSON.stringify(cut).length).toBeLessThan(limits.logged_input_chars_max + 1_000);
  const whole = kept(requestOf(user('x'.repeat(1_000))));
  expect(whole.truncated).toBeUndefined();
});

test('a text that is cut inside a surrogate pair stays well formed', () => {
  for (const before of [0, 1]) {
    const text = 'a'.repeat(before) + '😀'.repeat(limits.logged_input_chars_max);
    const content = kept(requestOf(user(text))).request.messages[0]?.content as string;
    expect(content.isWellFormed()).toBe(true);
  }
});

test('very deep nesting is truncated without an error', () => {
  const deep = JSON.parse('['.repeat(5_000) + ']'.repeat(5_000));
  const content = kept({ ...requestOf(user('hi')), metadata: deep });
  expect(content.truncated).toBe(true);
});

test('an answer is logged the same whole and streamed', () => {
  const completion: ChatCompletion = {
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'It rains.',
          reasoning: 'Clouds.',
          reasoning_details: [{ type: 'reasoning.text', text: 'Clouds.' }],
          tool_calls: [
            { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
            { id: 'c2', type: 'function', function: { name: 'g', arguments: '{}' } },
          ],
        },
        finish_reason: 'tool_calls',
        native_finish_reason: 'tool_use',
      },
    ],
    created: 1,
    ext: { wire: 'openai-chat', rest: {} },
  };
  const whole = new OutputText();
  whole.whole(completion);
  const streamed = new OutputText();
  for (const chunk of chunksOf(completion)) streamed.chunks([chunk]);
  expect(streamed.result()).toEqual(whole.result());
  expect(whole.result()).toEqual({
    completion: 'It rains.',
    reasoning: 'Clouds.',
    tool_calls: completion.choices[0].message.tool_calls,
    finish_reason: 'tool_calls',
  });
});

test('an answer is logged up to its bound, whole or streamed', () => {
  const output = new OutputText();
  const piece = 'y'.repeat(1_000);
  for (let sent = 0; sent < LOGGED_OUTPUT_CHARS_MAX * 2; sent += piece.length) {
    output.chunks([{ delta: { content: piece } }]);
  }
  output.chunks([{ delta: {}, finish_reason: 'stop' }]);
  expect(output.result().completion?.length).toBeLessThan(LOGGED_OUTPUT_CHARS_MAX + 100);
  expect(output.result().finish_reason).toBe('stop');
  expect(contentOf(requestOf(user('hi')), output, undefined).truncated).toBe(true);
});

test('a tool call with a huge index takes no memory', () => {
  const output = new OutputText();
  output.chunks([{ delta: { tool_calls: [{ index: 1e9, id: 'x', function: { name: 'f', arguments: '' } }] } }]);
  expect(output.result().tool_calls).toBeUndefined();
});

test('a failure is logged with the provider’s message and the earlier failures', () => {
  const error = new GatewayError(502, 'Provider returned error', {
    metadata: {
      provider_name: 'Acme',
      raw: { detail: 'bad' },
      previous_errors: [{ code: 429, message: 'slow' }, 'odd'],
    },
  });
  expect(contentOf(requestOf(user('hi')), new OutputText(), error).error).toEqual({
    message: 'Provider returned error',
    status: 502,
    provider_name: 'Acme',
    raw: { detail: 'bad' },
    previous_errors: [{ code: 429, message: 'slow' }],
  });
});
