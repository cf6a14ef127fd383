import { expect, test } from 'vitest';
import type { ChatRequest } from '../../schemas/inner.ts';
import { anthropicMessages } from './index.ts';

const url = 'https://a.example/cat.png';
const page = 'https://a.example/page.pdf';
const request: ChatRequest = {
  messages: [
    {
      role: 'user',
      content: [
        { type: 'image_url', image_url: { url } },
        { type: 'file', file: { file_data: page, filename: 'page' } },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
      ],
    },
  ],
  stream: true,
};
const endpoint = (googleCloud: boolean) => ({
  model: 'anthropic/claude',
  provider: 'google-vertex',
  upstream_model: 'claude-sonnet-4-5@20250929',
  max_completion_tokens: 10,
  context_length: undefined,
  input_modalities: ['text', 'image', 'file'],
  quirks: { google_cloud: googleCloud },
});

test('on Vertex AI media at addresses are fetched first and sent as bytes', () => {
  expect(anthropicMessages.requiredMedia(request, endpoint(false))).toEqual([]);
  expect(anthropicMessages.requiredMedia(request, endpoint(true))).toEqual([
    { url, kind: 'image' },
    { url: page, kind: 'file' },
  ]);
  const media = new Map([
    [url, { mime_type: 'image/png', base64: 'aW1n' }],
    [page, { mime_type: 'application/pdf', base64: 'cGRm' }],
  ]);
  const { body, path, headers } = anthropicMessages.encodeRequest(request, endpoint(true), {
    media,
    strip_state: false,
  });
  const source = (mediaType: string, data: string) => ({ source: { type: 'base64', media_type: mediaType, data } });
  expect(body).toEqual({
    anthropic_version: 'vertex-2023-10-16',
    max_tokens: 10,
    stream: true,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'image', ...source('image/png', 'aW1n') },
          { type: 'document', ...source('application/pdf', 'cGRm'), title: 'page' },
          { type: 'image', ...source('image/png', 'AAAA') },
        ],
      },
    ],
  });
  expect([path, headers]).toEqual(['/models/claude-sonnet-4-5@20250929:streamRawPredict', {}]);
});

test('clients and credentials cannot choose the version or the publisher', () => {
  expect(anthropicMessages.reserved.has('anthropic_version')).toBe(true);
  const base = 'https://aiplatform.googleapis.com/v1beta1/projects/p/locations/global/publishers/google';
  expect(anthropicMessages.addressFor!(base, undefined)).toBe(base.replace('/google', '/anthropic'));
});
