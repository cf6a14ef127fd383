/** The operations that clients call for answers, and a plain request of each. */
import type { JsonObject } from '../../src/schemas/json.ts';
import { object, type Recording } from '../readings/recordings.ts';

export type ClientApi = 'chat' | 'responses' | 'messages' | 'completions';

export const clientApis: readonly ClientApi[] = ['chat', 'responses', 'messages', 'completions'];

export const paths: Readonly<Record<ClientApi, string>> = {
  chat: '/chat/completions',
  responses: '/responses',
  messages: '/messages',
  completions: '/completions',
};

const PROMPT = 'Go on.';
/** More than any recorded answer has. */
const OUTPUT_TOKENS = 30_000;

/** The smallest request of a client of this API. */
export function plainRequest(api: ClientApi): JsonObject {
  if (api === 'responses') return { input: PROMPT };
  if (api === 'completions') return { prompt: PROMPT, max_tokens: OUTPUT_TOKENS };
  const messages = [{ role: 'user', content: PROMPT }];
  return api === 'chat' ? { messages } : { messages, max_tokens: OUTPUT_TOKENS };
}

/** The API of a recorded request; undefined if the gateway has no such operation, or the request was not kept. */
export function apiOf({ request }: Recording): Exclude<ClientApi, 'completions'> | undefined {
  if (request?.body == null) return undefined;
  const path = request.path.replace(/\?.*$/, '');
  if (path.endsWith('/chat/completions')) return 'chat';
  if (path.endsWith('/responses')) return 'responses';
  return path.endsWith('/messages') ? 'messages' : undefined;
}

/** A recorded request, for a model of the replay. */
export function recordedRequest({ request }: Recording, model: string, stream: boolean): JsonObject {
  const { stream_options, models: _, provider: __, preset: ___, ...body } = object(request?.body);
  return { ...body, model, stream, ...(stream && stream_options !== undefined ? { stream_options } : {}) };
}
