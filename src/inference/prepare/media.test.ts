import { expect, test } from 'vitest';
import { GatewayError } from '../../errors.ts';
import type { MediaNeed } from '../../providers/dialect.ts';
import { type MediaFetcher, MediaRefused } from '../../providers/transport/fetch-media.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import { type Call, CallCancellation } from '../call.ts';
import { createCallMedia } from './media.ts';

const needs: MediaNeed[] = ['slow', 'bad'].map((name) => ({ url: `https://files.test/${name}`, kind: 'image' }));

test('a fetch aborted by another’s failure is repeated for the next endpoint; a refused fetch is not', async () => {
  const urls: string[] = [];
  const fetcher: MediaFetcher = {
    fetch({ url }, { signal }) {
      urls.push(url);
      if (url.endsWith('bad')) return Promise.reject(new MediaRefused('it is empty'));
      if (urls.length > 2) return Promise.resolve({ mime_type: 'image/png', base64: 'AAAA', bytes: 3 });
      return new Promise((_, reject) => {
        // A connection does not close immediately.
        signal.addEventListener('abort', () => setTimeout(reject, 20, signal.reason));
      });
    },
  };
  const request: ChatRequest = { messages: [{ role: 'user', content: 'Hello' }] };
  const call = { request, principal: { key_hash: 'k' }, cancellation: new CallCancellation() } as unknown as Call;
  const media = createCallMedia(call, fetcher);
  for (let endpoint = 0; endpoint < 3; endpoint += 1) {
    const failure: unknown = await media.gather(needs).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(GatewayError);
    expect(failure).toMatchObject({ status: 400, message: 'messages cannot be fetched: it is empty' });
  }
  expect(urls.map((url) => url.split('/').at(-1))).toEqual(['slow', 'bad', 'slow']);
});
