import { expect, test } from 'vitest';
import { GatewayError } from '../../errors.ts';
import type { AnswerUsage } from '../../inference/money/answer-usage.ts';
import type { ChatChunk, ChatCompletion, Message } from '../../schemas/inner.ts';
import { publicUsage } from '../../schemas/usage.ts';
import { ChatStreamEncoder, encodeCompletion } from './encode.ts';

const envelope = { id: 'gen-1', created: 1, model: 'a/b', text_form: false, hide_reasoning: false };
const usage: AnswerUsage = {
  ...publicUsage({ in_uncached: 1, out_text: 1 }),
  cost: 0,
  is_byok: false,
  cost_details: {
    upstream_inference_cost: null,
    upstream_inference_prompt_cost: 0,
    upstream_inference_completions_cost: 0,
  },
};

function encode(chunks: ChatChunk[], options: Partial<typeof envelope> = {}) {
  const encoder = new ChatStreamEncoder({ ...envelope, ...options });
  encoder.open({ model: 'a/b', provider: 'C' });
  const text =
    encoder.chunks(chunks) + encoder.end({ type: 'end', usage, classes: null, metadata: undefined, error: undefined });
  const events = text.split('\n\n').filter((event) => event.startsWith('data: {'));
  return events.map((event) => JSON.parse(event.slice('data: '.length)));
}

test('reasoning details are sent with the reasoning string, which is null if they have no readable text', () => {
  const detail = { type: 'reasoning.encrypted', data: 'x', format: 'unknown', index: 0 } as const;
  const [first] = encode([{ delta: { reasoning_details: [detail] } }]);
  expect(first.choices[0].delta).toMatchObject({ reasoning: null, reasoning_details: [detail] });
  const [plain] = encode([{ delta: { content: 'Hi' } }]);
  expect(plain.choices[0].delta).toEqual({ role: 'assistant', content: 'Hi' });
});

test('the role is in the first delta only, and not in a failure', () => {
  const deltas = encode([
    { delta: { role: 'assistant' } },
    { delta: { content: 'Hi' } },
    { delta: { role: 'assistant', content: '!' } },
  ]);
  expect(deltas.slice(0, -1).map(({ choices }) => choices[0].delta)).toEqual([
    { role: 'assistant', content: '' },
    { content: 'Hi' },
    { content: '!' },
  ]);
  const failed = new ChatStreamEncoder(envelope).failed(new GatewayError(502, 'Broken'));
  expect(JSON.parse(failed.split('\n\n')[0]!.slice('data: '.length)).choices[0].delta).toEqual({ content: '' });
});

test('hidden reasoning is not sent, and neither is a chunk of reasoning alone', () => {
  const detail = { type: 'reasoning.text', text: 'Hm', format: 'unknown', index: 0 } as const;
  const chunks = [{ delta: { content: 'Hi' } }, { delta: { reasoning: 'Hm', reasoning_details: [detail] } }];
  const shown = encode(chunks, { hide_reasoning: true });
  expect(shown).toHaveLength(2);
  expect(JSON.stringify(shown)).not.toContain('Hm');
});

test('the usage chunk contains the service tier of the stream', () => {
  expect(encode([{ delta: { content: 'Hi' } }]).at(-1)).toMatchObject({ service_tier: null, choices: [] });
  const served = encode([{ delta: { role: 'assistant' }, service_tier: 'default' }, { delta: { content: 'Hi' } }]);
  expect(served.at(-1)).toMatchObject({ service_tier: 'default', choices: [], usage: { total_tokens: 2 } });
});

test('a failure in the stream of a prompt has text, and no delta', () => {
  const encoder = new ChatStreamEncoder({ ...envelope, text_form: true });
  encoder.open({ model: 'a/b', provider: 'C' });
  const failure = new GatewayError(502, 'Broken');
  for (const text of [
    encoder.end({ type: 'end', usage, classes: null, metadata: undefined, error: failure }),
    encoder.failed(failure),
  ]) {
    const { error, choices } = JSON.parse(text.split('\n\n')[0]!.slice('data: '.length));
    expect(error).toEqual({ code: 502, message: 'Broken', metadata: { error_type: 'provider_unavailable' } });
    expect(choices).toEqual([
      { index: 0, text: '', finish_reason: 'error', native_finish_reason: null, logprobs: null },
    ]);
  }
});

test('the event of a failure starts with its error, as some clients expect, and contains its type', () => {
  const failure = new GatewayError(429, "Slow $& $'", { metadata: { provider_name: 'C' } });
  const error = {
    code: 429,
    message: "Slow $& $'",
    metadata: { error_type: 'rate_limit_exceeded', provider_name: 'C' },
  };
  const end = { type: 'end' as const, usage, classes: null, metadata: undefined, error: failure };
  for (const start of [
    () => new ChatStreamEncoder(envelope),
    () => new ChatStreamEncoder({ ...envelope, text_form: true }),
  ]) {
    const late = start();
    late.open({ model: 'a/b', provider: 'C' });
    for (const text of [late.end(end), start().failed(failure)]) {
      const event = text.split('\n\n')[0]!;
      expect(event).toMatch(/^data: \{"error":\{/);
      expect(JSON.parse(event.slice('data: '.length))).toMatchObject({ id: 'gen-1', model: 'a/b', error });
    }
  }
});

const media = {
  images: [{ type: 'image_url' as const, image_url: { url: 'data:image/png;base64,aaaa' } }],
  audio: { id: 'a', data: 'bbbb', transcript: 'Hi' },
  annotations: [
    {
      type: 'url_citation' as const,
      url_citation: { url: 'https://a.example', title: 'A', start_index: 0, end_index: 2 },
    },
  ],
};

function whole(message: Partial<Message>, options: Partial<typeof envelope> = {}) {
  const completion: ChatCompletion = {
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'Hi', ...message } as ChatCompletion['choices'][0]['message'],
        finish_reason: 'stop',
        native_finish_reason: 'stop',
      },
    ],
    created: 1,
    system_fingerprint: 'fp',
    ext: { wire: 'openai-chat', rest: {} },
  };
  const answer = { completion, served: { model: 'a/b', provider: 'C' }, usage, classes: null, metadata: undefined };
  return JSON.parse(encodeCompletion(answer, { ...envelope, ...options }));
}

test('an answer without text has an empty one, unless it is a refusal', () => {
  expect(whole({ content: null }).choices[0].message.content).toBe('');
  expect(whole({ content: null, reasoning: 'Hm' }).choices[0].message.content).toBe('');
  expect(whole({ content: null, refusal: 'no' }).choices[0].message.content).toBeNull();
});

test('all parts of an answer are sent, whole and as a stream', () => {
  const { choices, system_fingerprint } = whole({ ...media, refusal: 'no' });
  expect(system_fingerprint).toBe('fp');
  expect(choices[0].message).toEqual({ role: 'assistant', content: 'Hi', refusal: 'no', reasoning: null, ...media });
  const [chunk] = encode([{ delta: { content: 'Hi', refusal: 'no', ...media }, system_fingerprint: 'fp' }]);
  expect(chunk.system_fingerprint).toBe('fp');
  expect(chunk.choices[0].delta).toEqual({ role: 'assistant', content: 'Hi', refusal: 'no', ...media });
});

test('a citation without a title has an empty one', () => {
  const untitled = {
    type: 'url_citation' as const,
    url_citation: { url: 'https://a.example', start_index: 0, end_index: 2 },
  };
  const titled = [{ type: 'url_citation', url_citation: { ...untitled.url_citation, title: '' } }];
  expect(whole({ annotations: [untitled] }).choices[0].message.annotations).toEqual(titled);
  const [chunk] = encode([{ delta: { annotations: [untitled] } }]);
  expect(chunk.choices[0].delta.annotations).toEqual(titled);
});

test('hidden reasoning is in no whole answer, and not beside other content of a stream', () => {
  const thought = {
    reasoning: 'Hm',
    reasoning_details: [{ type: 'reasoning.text' as const, text: 'Hm', format: 'unknown' as const, index: 0 }],
  };
  expect(whole(thought).choices[0].message).toMatchObject(thought);
  for (const textForm of [false, true]) {
    expect(JSON.stringify(whole(thought, { hide_reasoning: true, text_form: textForm }))).not.toContain('Hm');
  }
  const shown = encode([{ delta: { content: 'Hi', ...thought } }], { hide_reasoning: true });
  expect(JSON.stringify(shown)).not.toContain('Hm');
});
