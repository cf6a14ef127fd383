/** A gateway in front of a scripted upstream of the Messages API, which answers every request with one sentence. */
import { startGateway, type TestGateway } from '../harness.ts';
import { object } from '../readings/recordings.ts';
import { type Exchange, responseHead, startWireServer } from './wire-server.ts';

const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude',
  content: [{ type: 'text', text: 'Yes.' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 5, output_tokens: 2 },
};
const EVENTS = [
  { type: 'message_start', message: { ...MESSAGE, content: [], stop_reason: null } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Yes.' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 2 } },
  { type: 'message_stop' },
];

export interface MessagesUpstream {
  gateway: TestGateway;
  /** The upstream's further answers, whole, as an object or as its JSON; undefined: its one sentence. */
  answer(message: object | string | undefined): void;
  /** How many requests reached the upstream. */
  requestCount(): number;
  /** The last request that reached the upstream. */
  last(): Exchange;
  stop(): Promise<void>;
}

/** The model is `anthropic/claude`; the provider's settings are added to its own. */
export async function startMessagesUpstream(provider: object = {}): Promise<MessagesUpstream> {
  let message: object | string = MESSAGE;
  const upstream = await startWireServer(({ path, body }) => {
    if (/count[_-]tokens/.test(path)) return [responseHead(200, 'application/json'), '{"input_tokens":7}', 'END'];
    if (object(JSON.parse(body))['stream'] !== true) {
      return [
        responseHead(200, 'application/json'),
        typeof message === 'string' ? message : JSON.stringify(message),
        'END',
      ];
    }
    const text = EVENTS.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
    return [responseHead(200, 'text/event-stream'), text, 'END'];
  });
  const gateway = await startGateway({
    yaml: JSON.stringify({
      bundled_catalog: false,
      providers: {
        claudes: {
          dialect: 'anthropic-messages',
          // Like a hosted provider that fetches by itself.
          quirks: { inline_media: false },
          base_url: upstream.url,
          api_key: 'upstream-key',
          ...provider,
        },
      },
      models: {
        'anthropic/claude': {
          input_modalities: ['text', 'image', 'file'],
          endpoints: [{ provider: 'claudes', upstream_model: 'claude', pricing: { prompt: 1, completion: 1 } }],
        },
      },
    }),
  });
  return {
    gateway,
    answer(script) {
      message = script ?? MESSAGE;
    },
    requestCount: () => upstream.exchanges.length,
    last: () => upstream.exchanges.at(-1)!,
    async stop() {
      await gateway.stop();
      await upstream.stop();
    },
  };
}
