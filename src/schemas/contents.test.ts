import { expect, test } from 'vitest';
import { chatClient } from '../api/chat/client.ts';
import { Contents, contentsOf, noteContents } from './contents.ts';
import type { ChatRequest, InnerPart, Message } from './inner.ts';

const text: InnerPart = { type: 'text', text: 'four' };
const image: InnerPart = { type: 'image_url', image_url: { url: 'https://a.example/b.png' } };
const sound: InnerPart = { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } };
const film: InnerPart = { type: 'video_url', video_url: { url: 'https://a.example/b.mp4' } };
const file: InnerPart = { type: 'file', file: { file_data: 'https://a.example/b.pdf' } };
const native: InnerPart = { type: 'native', wire: 'anthropic-messages', block: { type: 'x' } };
const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } } as const;

const NOTHING = {
  chars: 0,
  media: 0,
  images: 0,
  sounds: 0,
  has_files: false,
  kinds: [],
  has_natives: false,
  has_more: false,
  has_calls: false,
  is_stateful: false,
  is_issued: false,
};

const cases: [string, Message, Partial<typeof NOTHING> | { kinds: string[] }][] = [
  ['a text', { role: 'user', content: 'four' }, { chars: 4 }],
  ['parts of text', { role: 'user', content: [text, text] }, { chars: 8 }],
  ['an empty text', { role: 'user', content: '' }, {}],
  ['nothing', { role: 'assistant', content: null }, {}],
  ['an image', { role: 'user', content: [image] }, { media: 1, images: 1, kinds: ['image'], has_more: true }],
  ['audio', { role: 'user', content: [sound] }, { media: 1, sounds: 1, kinds: ['audio'], has_more: true }],
  ['a video', { role: 'user', content: [film] }, { media: 1, kinds: ['video'], has_more: true }],
  ['a file', { role: 'user', content: [text, file] }, { chars: 4, media: 1, has_files: true, has_more: true }],
  [
    'several kinds',
    { role: 'user', content: [film, image, image] },
    { media: 3, images: 2, kinds: ['video', 'image'], has_more: true },
  ],
  ['a native part of a wire', { role: 'user', content: [native] }, { has_natives: true, has_more: true }],
  [
    'a native object of a wire beside the text',
    { role: 'assistant', content: 'a', ext: { wire: 'anthropic-messages', rest: {}, natives: [native] } },
    { chars: 1, has_natives: true, has_more: true },
  ],
  [
    'images that a model made',
    { role: 'assistant', content: null, images: [{ type: 'image_url', image_url: { url: 'data:,' } }] },
    { has_more: true },
  ],
  ['calls', { role: 'assistant', content: null, tool_calls: [call] }, { has_calls: true, is_stateful: true }],
  ['no calls', { role: 'assistant', content: null, tool_calls: [] }, {}],
  ['a result', { role: 'tool', tool_call_id: 'a', content: 'b' }, { chars: 1, has_calls: true }],
  [
    'reasoning',
    { role: 'assistant', content: 'a', reasoning_details: [{ type: 'reasoning.text', text: 'b' }] },
    { chars: 1, is_stateful: true },
  ],
  [
    'an issuer',
    { role: 'assistant', content: 'a', ext: { wire: 'openai-chat', rest: {}, issuer: 'x' } },
    { chars: 1, is_issued: true },
  ],
];

test.each(cases)('the contents of messages are recorded: %s', (_what, message, expected) => {
  const { messages, ...facts } = new Contents([message]);
  expect(messages).toEqual([message]);
  expect(facts).toEqual({ ...NOTHING, ...expected });
});

test('the facts cover all messages', () => {
  const contents = new Contents(cases.map(([, message]) => message));
  expect(contents).toMatchObject({ media: 7, images: 3, sounds: 1, has_files: true, has_calls: true, is_issued: true });
  expect(contents.kinds).toEqual(['image', 'audio', 'video']);
});

function requestOf(messages: Message[]): ChatRequest {
  return { messages, ext: { wire: 'openai-chat', client: chatClient, rest: {} } };
}

test('copies of a request share the record of the same messages', () => {
  const request = requestOf([{ role: 'user', content: 'a' }]);
  noteContents(request);
  const contents = contentsOf(request);
  const copy: ChatRequest = { ...request, model: 'b' };
  expect(contentsOf(copy)).toBe(contents);
  expect(contentsOf(request)).toBe(contents);
});

test('changed messages are recorded again', () => {
  const request = requestOf([{ role: 'user', content: 'a' }]);
  noteContents(request);
  const changed = { ...request, messages: [...request.messages, { role: 'user', content: [file] } as Message] };
  expect(contentsOf(changed).has_files).toBe(true);
  expect(contentsOf(changed)).toBe(contentsOf(changed));
  expect(contentsOf(request).has_files).toBe(false);
});

test('a request without recorded contents is not changed', () => {
  const request = Object.freeze(requestOf([{ role: 'user', content: [file] }]));
  Object.freeze(request.ext);
  expect(contentsOf(request).has_files).toBe(true);
  expect(contentsOf({ messages: request.messages }).has_files).toBe(true);
});
