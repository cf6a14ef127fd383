import { describe, expect, test } from 'vitest';
import { checkMessagesStream } from './messages.ts';

const usage = {
  input_tokens: 1,
  output_tokens: 2,
  cache_creation_input_tokens: null,
  cache_read_input_tokens: null,
  cache_creation: null,
  service_tier: null,
  server_tool_use: null,
};
const id = `gen-1700000000-${'a'.repeat(20)}`;
const message = {
  id,
  type: 'message',
  role: 'assistant',
  model: 'a/b',
  content: [],
  stop_reason: null,
  stop_sequence: null,
  stop_details: null,
  container: null,
  usage: { ...usage, output_tokens: 0 },
};

type Event = { type: string } & Record<string, unknown>;
const start: Event = { type: 'message_start', message };
const ping: Event = { type: 'ping' };
const open = (contentBlock: object, index = 0): Event => ({
  type: 'content_block_start',
  index,
  content_block: contentBlock,
});
const delta = (fields: object, index = 0): Event => ({ type: 'content_block_delta', index, delta: fields });
const close = (index = 0): Event => ({ type: 'content_block_stop', index });
const end = (fields: object = {}, more: object = {}): Event => ({
  type: 'message_delta',
  delta: { stop_reason: 'end_turn', stop_sequence: null, stop_details: null, container: null, ...fields },
  usage,
  ...more,
});
const stop: Event = { type: 'message_stop' };
const failed: Event = { type: 'error', error: { type: 'api_error', message: 'gone' }, request_id: id };

const text = { type: 'text', text: '' };
const textDelta = (piece = 'a') => ({ type: 'text_delta', text: piece });
const thinking = { type: 'thinking', thinking: '', signature: '' };
const thought = { type: 'thinking_delta', thinking: 'a' };
const signed = { type: 'signature_delta', signature: 's' };
const call = (more: object = {}) => ({ type: 'tool_use', id: 'call_1', name: 'f', input: {}, ...more });
const input = (piece: string) => ({ type: 'input_json_delta', partial_json: piece });
const block = (opened: object, ...deltas: object[]) => [open(opened), ...deltas.map((one) => delta(one)), close()];
const use = end({ stop_reason: 'tool_use' });

const written = (...events: Event[]) =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');
const answer = (...blocks: Event[]) => written(start, ...blocks, end(), stop);
const good = answer(...block(text, textDelta()));

const right: [string, string][] = [
  ['text', good],
  ['pings at any place', written(ping, start, ping, open(text), ping, delta(textDelta()), close(), end(), ping, stop)],
  ['no content', answer()],
  ['thinking', answer(...block(thinking, thought, signed))],
  ['thinking that is not shown', answer(...block(thinking, signed))],
  ['redacted thinking', answer(...block({ type: 'redacted_thinking', data: 'd' }))],
  ['a call', written(start, ...block(call(), input(''), input('{"a'), input('":1}')), use, stop)],
  ['a call without input', written(start, ...block(call()), use, stop)],
  [
    'a cited text',
    answer(...block(text, { type: 'citations_delta', citation: { type: 'page_location' } }, textDelta())),
  ],
  [
    'a block that only the provider knows',
    answer(...block({ type: 'compaction', content: null }, { type: 'compaction_delta', content: 'a' })),
  ],
  ['two blocks', answer(...block(text, textDelta()), open(text, 1), delta(textDelta(), 1), close(1))],
  ['a matched stop sequence', written(start, end({ stop_reason: 'stop_sequence', stop_sequence: 'x' }), stop)],
  ['metadata', written(start, end(), { ...stop, gateway_metadata: {} })],
  ['a failure before the start', written(ping, failed)],
  ['a failure in a block', written(start, open(text), delta(textDelta()), { ...failed, usage })],
];

const wrong: [string, string][] = [
  ['no end', written(start, ...block(text, textDelta()))],
  ['no message_stop', written(start, end())],
  ['an event after the end', `${good}${written(ping)}`],
  ['carriage returns', good.replaceAll('\n', '\r\n')],
  ['a comment', `: WAIT\n\n${good}`],
  ['an event without a name', good.replace('event: message_stop\n', '')],
  ['an event with another name', good.replace('event: message_stop', 'event: message_end')],
  ['the end of the chat API', `${good}data: [DONE]\n\n`],
  ['an unknown event', written(start, { type: 'message_pause' }, end(), stop)],
  ['a block before the start', written(...block(text, textDelta()), start, end(), stop)],
  ['two starts', written(start, start, end(), stop)],
  ['an id of another form', answer().replace(id, 'msg_1')],
  ['no model', answer().replace('a/b', '')],
  ['content in message_start', answer().replace('"content":[]', '"content":[{}]')],
  ['a stop reason in message_start', answer().replace('"stop_reason":null', '"stop_reason":"end_turn"')],
  ['a token count that is not an integer', answer().replace('"input_tokens":1', '"input_tokens":1.5')],
  ['no token count', answer().replace('"output_tokens":2,', '')],
  ['an index that skips one', answer(open(text, 1), delta(textDelta(), 1), close(1))],
  ['two open blocks', answer(open(text), open(text, 1), delta(textDelta(), 1), close(1), close())],
  ['a delta of a closed block', answer(...block(text, textDelta()), delta(textDelta()))],
  ['a delta of another block', answer(open(text), delta(textDelta(), 1), close())],
  ['a stop without a block', answer(close())],
  ['an open block at the end', answer(open(text), delta(textDelta()))],
  ['text in thinking', answer(...block(thinking, textDelta()))],
  ['thinking in text', answer(...block(text, thought))],
  ['input in text', answer(...block(text, textDelta(), input('{}')))],
  ['a delta of redacted thinking', answer(...block({ type: 'redacted_thinking', data: 'd' }, signed))],
  ['redacted thinking without data', answer(...block({ type: 'redacted_thinking', data: '' }))],
  ['thinking after its signature', answer(...block(thinking, signed, thought))],
  ['two signatures', answer(...block(thinking, signed, signed))],
  ['an empty signature', answer(...block(thinking, { type: 'signature_delta', signature: '' }))],
  ['text at the start of its block', answer(...block({ type: 'text', text: 'a' }))],
  ['a text block without text', answer(...block(text))],
  ['an empty delta', answer(...block(text, textDelta('')))],
  ['a field of another API', answer(...block(text, { ...textDelta(), index: 0 }))],
  ['an extension', answer(...block({ ...text, ext: {} }, textDelta()))],
  ['a native object', answer(...block({ type: 'native' }))],
  ['a call without a name', written(start, ...block(call({ name: '' })), use, stop)],
  ['an id that the API does not accept', written(start, ...block(call({ id: 'functions.f:0' })), use, stop)],
  ['an id used twice', written(start, ...block(call()), open(call(), 1), close(1), use, stop)],
  ['an input that is not JSON', written(start, ...block(call(), input('{"a')), use, stop)],
  ['an input that is not an object', written(start, ...block(call(), input('[]')), use, stop)],
  ['an input at the start', written(start, ...block(call({ input: { a: 1 } })), use, stop)],
  ['a call without the stop reason tool_use', answer(...block(call()))],
  ['the stop reason tool_use without a call', written(start, use, stop)],
  ['a stop reason of the chat API', written(start, end({ stop_reason: 'length' }), stop)],
  ['no stop reason', written(start, end({ stop_reason: null }), stop)],
  ['a stop sequence without its stop reason', written(start, end({ stop_sequence: 'x' }), stop)],
  ['the reason stop_sequence without the sequence', written(start, end({ stop_reason: 'stop_sequence' }), stop)],
  ['two ends', written(start, end(), end(), stop)],
  ['a block after the end', written(start, end(), ...block(text, textDelta()), stop)],
  ['a failure after the end', written(start, end(), failed)],
  ['an event after a failure', written(start, failed, end(), stop)],
  ['a failure of an unknown type', written(start, { ...failed, error: { type: 'bad', message: 'gone' } })],
  ['a failure without a message', written(start, { ...failed, error: { type: 'api_error', message: '' } })],
];

describe('a stream of the Messages API', () => {
  test.each(right)('may have %s', (_, stream) => {
    expect(() => checkMessagesStream(stream)).not.toThrow();
  });
  test.each(wrong)('must not have %s', (_, stream) => {
    expect(() => checkMessagesStream(stream)).toThrow(/^messages stream: |JSON/);
  });
  test('accumulates to its message', () => {
    const { message } = checkMessagesStream(
      written(
        start,
        ...block(thinking, thought, signed),
        open(call(), 1),
        delta(input('{"a":'), 1),
        delta(input('1}'), 1),
        close(1),
        use,
        stop,
      ),
    );
    expect(message).toMatchObject({
      stop_reason: 'tool_use',
      content: [
        { type: 'thinking', thinking: 'a', signature: 's' },
        { type: 'tool_use', input: { a: 1 } },
      ],
    });
  });
});
