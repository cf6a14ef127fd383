import type { JsonValue } from '../../src/schemas/json.ts';
import { object } from '../readings/recordings.ts';
import { checkChatStream } from './chat.ts';
import { checkMessagesStream } from './messages.ts';
import { checkResponsesStream } from './responses.ts';

/** Throws if the whole stream of an operation violates its API's grammar. A path without `/api/v1`. */
export function checkStreamOf(path: string, body: unknown, text: string): void {
  const request = object((typeof body === 'string' ? JSON.parse(body) : body) as JsonValue);
  switch (path) {
    case '/chat/completions':
      // The test knows whether another endpoint continued the stream.
      checkChatStream(text, {
        form: request['prompt'] == null ? 'chat' : 'prompt',
        choices: typeof request['n'] === 'number' ? request['n'] : 1,
        continued: true,
      });
      return;
    case '/completions': {
      const { prompt } = request;
      checkChatStream(text, {
        form: 'completions',
        choices: Array.isArray(prompt) ? prompt.length : 1,
        continued: true,
      });
      return;
    }
    case '/responses':
      checkResponsesStream(text, { continued: true });
      return;
    case '/messages':
      checkMessagesStream(text);
  }
}
