import { describe, expect, test } from 'vitest';
import { checkMessagesStream } from '../../../test/grammar/messages.ts';
import { envelope, SERVED, STATE, streamText, wholeMessage, wholeText } from '../../../test/wires/messages-reading.ts';
import { GatewayError } from '../../errors.ts';
import { accumulate } from '../../schemas/accumulate.ts';
import type { ChatChunk, Delta, ReasoningDetail, ResponseExt, SlotEvent, Wire } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { messagesRequest } from './parse-request.ts';
import { createMessagesStream } from './stream.ts';
import type { ReasoningShown } from './thinking.ts';

type Kind = NonNullable<SlotEvent['open']>['kind'];

const begin = (wire: Wire, response: Partial<ResponseExt> = {}): ChatChunk => ({
  delta: { role: 'assistant' },
  ext: { response: { wire, rest: {}, ...response } },
});
const slot = (n: number, kind: Kind, delta: Delta, more: Partial<SlotEvent> = {}): ChatChunk => ({
  delta,
  ext: { slot: { n, open: { kind }, close: {}, ...more } },
});
const detail = (fields: Partial<ReasoningDetail> & { type: string }): ReasoningDetail =>
  ({ index: 0, id: null, ...fields }) as ReasoningDetail;
const reasoning = (n: number, ...details: ReasoningDetail[]): ChatChunk =>
  slot(n, 'reasoning', { reasoning_details: details });
const text = (n: number, content: string, more: Delta = {}): ChatChunk => slot(n, 'text', { content, ...more });
const call = (n: number, index: number, id: string, input: string): ChatChunk =>
  slot(n, 'call', { tool_calls: [{ index, id, type: 'function', function: { name: 'f', arguments: input } }] });
const finish = (finishReason: ChatChunk['finish_reason'], native: string | null = null): ChatChunk => ({
  delta: {},
  finish_reason: finishReason!,
  native_finish_reason: native,
});
const stopped = (wire: Wire, stopSequence: string): ChatChunk => ({
  delta: {},
  ext: { response: { wire, rest: {}, stopSequence } },
});

/** The message of a checked stream, which equals the whole answer. */
function messageOf(chunks: ChatChunk[], shown: ReasoningShown = 'shown'): JsonObject {
  const { message } = checkMessagesStream(streamText([chunks], shown));
  expect(message).toEqual(wholeMessage(accumulate(chunks, 0), shown));
  return message!;
}

/** The turn as the parser reads it from a client. */
function parsedBack({ content }: JsonObject): ReturnType<typeof messagesRequest>['messages'][number] {
  const body = { model: 'a/b', max_tokens: 1, messages: [{ role: 'assistant', content }] };
  const { messages } = messagesRequest(body as unknown as Parameters<typeof messagesRequest>[0], {
    envelope,
    betas: [],
  });
  return messages.find(({ role }) => role === 'assistant')!;
}

const withoutNull = ({ id, ...rest }: ReasoningDetail) => (id === null ? rest : { ...rest, id });
const detailsBack = (message: JsonObject) => (parsedBack(message).reasoning_details ?? []).map(withoutNull);

test('a message that begins with counts of its wire has no output count and no thinking count yet', () => {
  const usage = { in_uncached: 7, out_text: 2, out_reasoning: 3 };
  const textOut = streamText([[begin('gemini-generate-content', { usage }), text(0, 'a'), finish('stop')]]);
  const { events } = checkMessagesStream(textOut);
  const { message } = events[0] as { message: JsonObject };
  expect(message['usage']).toMatchObject({ input_tokens: 7, output_tokens: 0 });
  expect(message['usage']).not.toHaveProperty('output_tokens_details');
});

test('empty reasoning without a signature is not a block, since no wire would accept it back', () => {
  const empty = detail({ type: 'reasoning.text', text: '', format: 'anthropic-claude-v1' });
  const message = messageOf([begin('openai-chat'), reasoning(0, empty), text(1, 'a'), finish('stop')]);
  expect(message['content']).toEqual([{ type: 'text', text: 'a' }]);
});

describe('stop reasons', () => {
  test.each<[ChatChunk['finish_reason'], string]>([
    ['stop', 'end_turn'],
    ['length', 'max_tokens'],
    ['content_filter', 'refusal'],
  ])('%s of another wire becomes %s', (reason, stopReason) => {
    const message = messageOf([begin('openai-chat'), text(0, 'a'), finish(reason, 'whatever')]);
    expect(message).toMatchObject({ stop_reason: stopReason, stop_sequence: null });
  });

  test('an answer with calls ends with tool_use', () => {
    const message = messageOf([begin('openai-chat'), call(0, 0, 'call_1', '{}'), finish('tool_calls', 'stop')]);
    expect(message['stop_reason']).toBe('tool_use');
  });

  test.each(['pause_turn', 'compaction', 'model_context_window_exceeded', 'refusal'])(
    '%s of this wire is unchanged',
    (native) => {
      const reason = native.startsWith('model') ? 'length' : native === 'refusal' ? 'content_filter' : 'stop';
      const message = messageOf([begin('anthropic-messages'), text(0, 'a'), finish(reason, native)]);
      expect(message['stop_reason']).toBe(native);
    },
  );

  test('a tool that replaces a response format ends with end_turn', () => {
    const message = messageOf([begin('anthropic-messages'), text(0, '{}'), finish('stop', 'tool_use')]);
    expect(message['stop_reason']).toBe('end_turn');
  });

  test('the stop sequence is included if it is known', () => {
    const message = messageOf([
      begin('openai-chat'),
      text(0, 'a'),
      finish('stop', 'stop'),
      stopped('openai-chat', 'X'),
    ]);
    expect(message).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: 'X' });
  });

  test('a refusal text becomes text with the stop reason refusal', () => {
    const message = messageOf([begin('openai-chat'), slot(0, 'refusal', { refusal: 'No.' }), finish('stop', 'stop')]);
    expect(message).toMatchObject({ stop_reason: 'refusal', content: [{ type: 'text', text: 'No.' }] });
  });
});

describe('reasoning', () => {
  const unknown = detail({ type: 'reasoning.text', text: 'hm', format: 'unknown' });
  const end = [text(9, 'a'), finish('stop')];

  test('of this wire is unchanged', () => {
    const chunks = [
      begin('anthropic-messages'),
      reasoning(0, detail({ type: 'reasoning.text', text: 'hm', signature: 'sig', format: 'anthropic-claude-v1' })),
      reasoning(1, detail({ type: 'reasoning.encrypted', data: 'xyz', format: 'anthropic-claude-v1', index: 1 })),
      ...end,
    ];
    expect(messageOf(chunks)['content']).toEqual([
      { type: 'thinking', thinking: 'hm', signature: 'sig' },
      { type: 'redacted_thinking', data: 'xyz' },
      { type: 'text', text: 'a' },
    ]);
  });

  test('of several details in one slot has a block for each', () => {
    const format = 'anthropic-claude-v1';
    const sent = [
      detail({ type: 'reasoning.text', text: 'one', signature: 's1', format, index: 0 }),
      detail({ type: 'reasoning.text', text: 'two', signature: 's2', format, index: 1 }),
      detail({ type: 'reasoning.summary', summary: 'three', format: 'unknown', index: 2 }),
      detail({ type: 'reasoning.summary', summary: 'four', format: 'openai-responses-v1', index: 3 }),
      detail({ type: 'reasoning.summary', summary: 'five', format, index: 4 }),
    ];
    const message = messageOf([begin('openai-chat'), reasoning(0, ...sent), ...end]);
    expect(message['content']).toMatchObject([
      { type: 'thinking', thinking: 'one', signature: 's1' },
      { type: 'thinking', thinking: 'two', signature: 's2' },
      { type: 'thinking', thinking: 'three' },
      { type: 'thinking', thinking: 'four' },
      { type: 'thinking', thinking: 'five' },
      { type: 'text' },
    ]);
    expect(detailsBack(message)).toEqual(sent.map(withoutNull));
  });

  test('of another wire is restored after a round trip through the client', () => {
    const signed = detail({ type: 'reasoning.text', text: 'hm', signature: 'sig', format: 'google-gemini-v1' });
    for (const sent of [unknown, signed]) {
      const message = messageOf([begin('gemini-generate-content'), reasoning(0, sent), ...end]);
      expect(message['content']).toMatchObject([{ type: 'thinking', thinking: 'hm' }, { type: 'text' }]);
      // The text of the block is not in its envelope too.
      const [block] = message['content'] as JsonObject[];
      expect(envelope.unwrap(String(block!['signature']))).toEqual([{ ...sent, text: '' }]);
      expect(detailsBack(message)).toEqual([withoutNull(sent)]);
    }
  });

  test('of one item of the Responses API is one block', () => {
    const format = 'openai-responses-v1';
    const item = [
      detail({ type: 'reasoning.summary', summary: 'one', format, index: 0 }),
      detail({ type: 'reasoning.summary', summary: 'two', format, index: 1 }),
      detail({ type: 'reasoning.encrypted', data: 'xyz', format, id: 'rs_1', index: 2 }),
    ];
    const next = [detail({ type: 'reasoning.encrypted', data: 'abc', format, id: 'rs_2', index: 3 })];
    const message = messageOf([begin('openai-responses'), reasoning(0, ...item), reasoning(1, ...next), ...end]);
    expect(message['content']).toMatchObject([
      { type: 'thinking', thinking: 'one\n\ntwo' },
      { type: 'redacted_thinking' },
      { type: 'text' },
    ]);
    expect(detailsBack(message)).toEqual([...item, ...next].map(withoutNull));
  });

  test('of an item has a blank line between its parts, also if a part starts empty', () => {
    const format = 'openai-responses-v1';
    const part = (index: number, text: string) => detail({ type: 'reasoning.text', text: text, format, index });
    const more = (delta: ReasoningDetail, event: Partial<SlotEvent>): ChatChunk => ({
      delta: { reasoning_details: [delta] },
      ext: { slot: { n: 0, ...event } },
    });
    const message = messageOf([
      begin('openai-responses'),
      more(part(0, 'one'), { open: { kind: 'reasoning' } }),
      more(part(1, ''), {}),
      more(part(1, 'two'), { close: {} }),
      ...end,
    ]);
    expect(message['content']).toMatchObject([{ thinking: 'one\n\ntwo' }, { type: 'text' }]);
  });

  test('that signs a call is directly before it, and is restored to it', () => {
    const id = 'functions.f:0';
    const signature = detail({ type: 'reasoning.encrypted', data: 'sig', format: 'google-gemini-v1', id });
    const message = messageOf([
      begin('gemini-generate-content'),
      text(0, 'a'),
      reasoning(1, signature),
      call(2, 0, id, '{}'),
      finish('tool_calls', 'STOP'),
    ]);
    expect(message['content']).toMatchObject([{ type: 'text' }, { type: 'redacted_thinking' }, { type: 'tool_use' }]);
    expect(detailsBack(message)).toEqual([withoutNull(signature)]);
    expect(parsedBack(message).tool_calls).toMatchObject([{ id }]);
  });

  test('without visible text keeps the opaque state', () => {
    const own = detail({ type: 'reasoning.text', text: 'hm', signature: 'sig', format: 'anthropic-claude-v1' });
    for (const sent of [unknown, own]) {
      const message = messageOf([begin('bedrock-converse'), reasoning(0, sent), ...end], 'omitted');
      expect(message['content']).toMatchObject([{ type: 'thinking', thinking: '' }, { type: 'text' }]);
      expect(JSON.stringify(message)).not.toContain('hm');
      expect(detailsBack(message)).toEqual([withoutNull(sent)]);
    }
  });

  test('that was hidden by the upstream is unchanged', () => {
    const own = detail({ type: 'reasoning.text', text: '', signature: 'sig', format: 'anthropic-claude-v1' });
    const message = messageOf([begin('anthropic-messages'), reasoning(0, own), ...end], 'omitted');
    expect(message['content']).toMatchObject([{ type: 'thinking', thinking: '', signature: 'sig' }, { type: 'text' }]);
  });

  test('that is excluded leaves no blocks', () => {
    expect(messageOf([begin('openai-chat'), reasoning(0, unknown), ...end], 'hidden')['content']).toEqual([
      { type: 'text', text: 'a' },
    ]);
  });

  test('with the mark of another gateway is restored unchanged', () => {
    const own = detail({ type: 'reasoning.text', text: 'hm', signature: 'gw1.x.y', format: 'anthropic-claude-v1' });
    const encrypted = detail({ type: 'reasoning.encrypted', data: 'gw1.z.y', format: 'anthropic-claude-v1', index: 1 });
    const message = messageOf([begin('anthropic-messages'), reasoning(0, own), reasoning(1, encrypted), ...end]);
    expect(detailsBack(message)).toEqual([own, encrypted].map(withoutNull));
  });

  test('a seal is the last block', () => {
    const seal = detail({ type: 'reasoning.encrypted', data: 'gw1.a.b', format: 'unknown', id: 'seal_x', index: 0 });
    const chunks = [begin('openai-responses'), text(0, 'a'), { delta: { reasoning_details: [seal] } }, finish('stop')];
    const { message } = checkMessagesStream(streamText([chunks]));
    expect(message!['content']).toMatchObject([{ type: 'text' }, { type: 'redacted_thinking' }]);
    const whole = accumulate([chunks[0]!, chunks[1]!, finish('stop')], 0);
    whole.choices[0].message.reasoning_details = [seal];
    expect(wholeMessage(whole)).toEqual(message);
    expect(detailsBack(message!)).toEqual([withoutNull(seal)]);
  });
});

describe('calls', () => {
  test.each(['functions.get_weather:0', 'a b', 'gwid_x', 'gwid_YSBi', 'ü'])(
    'an id %s is encoded in characters that the wire accepts',
    (id) => {
      const message = messageOf([begin('openai-chat'), call(0, 0, id, '{}'), finish('tool_calls')]);
      const [block] = message['content'] as JsonObject[];
      expect(block!['id']).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      expect(parsedBack(message).tool_calls).toMatchObject([{ id }]);
    },
  );

  test('an invalid encoded id is unchanged', () => {
    const content = [{ type: 'tool_use', id: 'gwid_x', name: 'f', input: {} }];
    expect(parsedBack({ content }).tool_calls).toMatchObject([{ id: 'gwid_x' }]);
  });

  test('an id that is too long gets a constant replacement', () => {
    const idOf = () => {
      const message = messageOf([begin('openai-chat'), call(0, 0, `${'x'.repeat(60)}:0`, '{}'), finish('tool_calls')]);
      return (message['content'] as JsonObject[])[0]!['id'];
    };
    expect(idOf()).toMatch(/^[A-Za-z0-9]{32}$/);
    expect(idOf()).toBe(idOf());
  });

  test('numbers of a whole input are unchanged', () => {
    const input = '{"a":1.0,"b":12345678901234567890}';
    const completion = accumulate([begin('openai-chat'), call(0, 0, 'c', input), finish('tool_calls')], 0);
    expect(wholeText(completion)).toContain(`"input":${input}`);
  });

  test('a whole input that is not an object is wrapped', () => {
    const completion = accumulate([begin('openai-chat'), call(0, 0, 'c', '{"a":'), finish('tool_calls')], 0);
    expect(wholeMessage(completion)['content']).toMatchObject([{ input: { _raw: '{"a":' } }]);
  });

  test('with interleaved pieces are sent one after the other', () => {
    const piece = (n: number, index: number, text: string, more: Partial<SlotEvent> = {}): ChatChunk => ({
      delta: { tool_calls: [{ index, function: { arguments: text } }] },
      ext: { slot: { n, ...more } },
    });
    const opened = (n: number): ChatChunk => ({
      delta: { tool_calls: [{ index: n, id: `c${n}`, type: 'function', function: { name: 'f', arguments: '' } }] },
      ext: { slot: { n, open: { kind: 'call' } } },
    });
    const message = messageOf([
      begin('openai-chat'),
      opened(0),
      opened(1),
      piece(1, 1, '{"b"'),
      piece(0, 0, '{"a"'),
      piece(1, 1, ':2}'),
      piece(0, 0, ':1}'),
      piece(0, 0, '', { close: {} }),
      piece(1, 1, '', { close: {} }),
      finish('tool_calls'),
    ]);
    expect(message['content']).toMatchObject([
      { id: 'c0', input: { a: 1 } },
      { id: 'c1', input: { b: 2 } },
    ]);
  });
});

describe('content other than text', () => {
  const cites = (url: string, endIndex = 1) => ({
    type: 'url_citation' as const,
    url_citation: { url, title: 'T', content: 'said', start_index: 0, end_index: endIndex },
  });

  test('citations of another wire are at the end of their text, without an index of the provider', () => {
    const chunks = [
      begin('gemini-generate-content'),
      text(0, 'a'),
      { delta: { annotations: [cites('https://a.example')] } },
      finish('stop'),
    ];
    const { events } = checkMessagesStream(streamText([chunks]));
    expect(events.map(({ type, delta }) => (delta as JsonObject | undefined)?.['type'] ?? type)).toEqual([
      'message_start',
      'content_block_start',
      'text_delta',
      'citations_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ]);
    expect(messageOf(chunks)['content']).toEqual([
      {
        type: 'text',
        text: 'a',
        citations: [
          {
            type: 'web_search_result_location',
            cited_text: 'said',
            url: 'https://a.example',
            title: 'T',
            encrypted_index: '',
          },
        ],
      },
    ]);
  });

  test('citations that arrive before their text belong to this text alone', () => {
    const chunks = [
      begin('openai-chat'),
      { delta: { annotations: [cites('https://a.example')] } },
      text(0, 'a'),
      text(1, 'b'),
      finish('stop'),
    ];
    const { message } = checkMessagesStream(streamText([chunks]));
    const cited = (message!['content'] as JsonObject[]).map(({ citations }) => (citations as unknown[])?.length ?? 0);
    expect(cited).toEqual([1, 0]);
  });

  test('citations of this wire are not sent twice', () => {
    const citation = { type: 'page_location', cited_text: 'x', document_index: 0 };
    const chunks: ChatChunk[] = [
      begin('anthropic-messages'),
      { delta: {}, ext: { slot: { n: 0, open: { kind: 'text' }, raw: { type: 'citations_delta', citation } } } },
      { delta: { content: 'a' }, ext: { slot: { n: 0 } } },
      {
        delta: { annotations: [cites('https://a.example')] },
        ext: { slot: { n: 0, close: { ext: { wire: 'anthropic-messages', rest: { citations: [citation] } } } } },
      },
      finish('stop', 'end_turn'),
    ];
    expect(messageOf(chunks)['content']).toEqual([{ type: 'text', text: 'a', citations: [citation] }]);
    expect(checkMessagesStream(streamText([chunks])).events[1]).toMatchObject({ content_block: { citations: [] } });
  });

  test('blocks of another wire, and images, are omitted', () => {
    const block = { type: 'web_search_call', id: 'ws' };
    const chunks: ChatChunk[] = [
      begin('openai-responses'),
      slot(0, 'native', {}, { open: { kind: 'native', native: { type: 'native', wire: 'openai-responses', block } } }),
      slot(1, 'image', { images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }] }),
      text(2, 'a'),
      finish('stop'),
    ];
    expect(messageOf(chunks)['content']).toEqual([{ type: 'text', text: 'a' }]);
  });

  test('an answer without content is a message', () => {
    expect(messageOf([begin('openai-chat'), finish('length')])).toMatchObject({
      content: [],
      stop_reason: 'max_tokens',
    });
  });
});

describe('usage', () => {
  test('is reported in the classes of the wire', () => {
    const usage = {
      in_uncached: 10,
      in_audio: 2,
      in_image: 3,
      in_cache_read: 20,
      in_cache_write_5m: 4,
      in_cache_write_1h: 5,
      out_text: 7,
      out_reasoning: 6,
      counts: { web_search: 2 },
    };
    const last: ChatChunk = { delta: {}, ext: { response: { wire: 'openai-chat', rest: {}, usage } } };
    const message = messageOf([begin('openai-chat'), text(0, 'a'), finish('stop'), last]);
    expect(message['usage']).toEqual({
      input_tokens: 15,
      output_tokens: 13,
      cache_creation_input_tokens: 9,
      cache_read_input_tokens: 20,
      cache_creation: { ephemeral_5m_input_tokens: 4, ephemeral_1h_input_tokens: 5 },
      output_tokens_details: { thinking_tokens: 6 },
      server_tool_use: { web_search_requests: 2, web_fetch_requests: 0 },
      service_tier: null,
      cost: 0.5,
      cost_details: expect.any(Object),
      is_byok: false,
    });
  });

  test.each([
    ['default', 'standard'],
    ['priority', 'priority'],
  ])('has the service tier %s as %s', (serviceTier, expected) => {
    const message = messageOf([{ ...begin('openai-chat'), service_tier: serviceTier }, text(0, 'a'), finish('stop')]);
    expect(message['usage']).toMatchObject({ service_tier: expected });
  });

  test('starts with the known input counts, and no output', () => {
    const usage = { in_uncached: 5, in_cache_read: 3, out_text: 9 };
    const chunks = [begin('anthropic-messages', { usage }), text(0, 'a'), finish('stop', 'end_turn')];
    const { events } = checkMessagesStream(streamText([chunks]));
    expect(events[0]).toMatchObject({
      message: { usage: { input_tokens: 5, cache_read_input_tokens: 3, output_tokens: 0 } },
    });
  });
});

describe('the stream', () => {
  const options = { id: STATE.generation_id, envelope, reasoning: 'shown' as const };
  const ended = { type: 'end', classes: null, metadata: undefined, error: undefined } as const;
  const noUsage = {
    prompt_tokens: 0,
    completion_tokens: 0,
    total_tokens: 0,
    prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0, audio_tokens: 0, video_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0, image_tokens: 0 },
    cost: 0.25,
    is_byok: false,
  };

  test('that another endpoint continues has one text', () => {
    const encoder = createMessagesStream(options);
    const stream = [
      encoder.open(SERVED),
      encoder.chunks([
        begin('openai-chat'),
        { delta: { content: 'one ' }, ext: { slot: { n: 0, open: { kind: 'text' } } } },
      ]),
      encoder.open({ ...SERVED, provider: 'Another' }),
      encoder.chunks([begin('anthropic-messages'), text(0, 'two'), finish('stop', 'end_turn')]),
      encoder.end({ ...ended, usage: noUsage }),
    ].join('');
    const { message } = checkMessagesStream(stream);
    expect(message!['content']).toEqual([{ type: 'text', text: 'one two' }]);
  });

  test('that another endpoint continues keeps later texts separate', () => {
    const encoder = createMessagesStream(options);
    const stream = [
      encoder.open(SERVED),
      encoder.chunks([
        begin('openai-chat'),
        { delta: { content: 'one ' }, ext: { slot: { n: 0, open: { kind: 'text' } } } },
      ]),
      encoder.open(SERVED),
      encoder.chunks([call(0, 0, 'c', '{}'), text(1, 'two'), text(2, 'three'), finish('tool_calls')]),
      encoder.end({ ...ended, usage: noUsage }),
    ].join('');
    const { message } = checkMessagesStream(stream);
    expect((message!['content'] as JsonObject[]).map(({ type, text: content }) => content ?? type)).toEqual([
      'one ',
      'tool_use',
      'two',
      'three',
    ]);
  });

  test('with unclosed texts keeps them separate', () => {
    const opened = (n: number, content: string): ChatChunk => ({
      delta: { content },
      ext: { slot: { n, open: { kind: 'text' } } },
    });
    const chunks = [begin('openai-responses'), opened(0, 'a'), opened(1, 'b'), finish('stop')];
    expect(messageOf(chunks)['content']).toMatchObject([{ text: 'a' }, { text: 'b' }]);
  });

  test('without content is a message without content', () => {
    const encoder = createMessagesStream(options);
    const stream = encoder.open(SERVED) + encoder.end({ ...ended, usage: noUsage });
    expect(checkMessagesStream(stream).message).toMatchObject({ content: [], stop_reason: 'end_turn' });
  });

  test('ends a call as soon as its arguments are complete', () => {
    const encoder = createMessagesStream(options);
    encoder.open(SERVED);
    expect(encoder.chunks([begin('cohere-chat'), call(0, 0, 'c', '{}')])).toMatch(/event: content_block_stop\n.*\n\n$/);
  });

  test('of deltas without a slot starts a block when their kind changes', () => {
    const chunks: ChatChunk[] = [
      begin('openai-chat'),
      { delta: { reasoning: 'h' } },
      { delta: { reasoning: 'm' } },
      { delta: { tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{' } }] } },
      { delta: { tool_calls: [{ index: 0, function: { arguments: '}' } }] } },
      { delta: { content: 'a' } },
      { delta: { content: 'b' } },
      finish('tool_calls'),
    ];
    expect(checkMessagesStream(streamText([chunks])).message!['content']).toMatchObject([
      { type: 'thinking', thinking: 'hm' },
      { type: 'tool_use', id: 'c' },
      { type: 'text', text: 'ab' },
    ]);
  });

  test('does not wait for blocks that are omitted', () => {
    const encoder = createMessagesStream(options);
    encoder.open(SERVED);
    encoder.chunks([begin('openai-responses'), { delta: {}, ext: { slot: { n: 0, open: { kind: 'image' } } } }]);
    expect(encoder.chunks([text(1, 'a')])).toContain('"text":"a"');
  });

  test('includes fields of this wire once they are known, and not the provider’s name of the model', () => {
    const encoder = createMessagesStream(options);
    const rest = { model: 'theirs-2026', context_management: { applied_edits: [] }, container: { id: 'c' } };
    const stream = [
      encoder.open(SERVED),
      encoder.chunks([
        begin('openai-chat'),
        { delta: { content: 'one ' }, ext: { slot: { n: 0, open: { kind: 'text' } } } },
      ]),
      encoder.open(SERVED),
      encoder.chunks([
        begin('anthropic-messages', { rest }),
        text(0, 'two'),
        finish('stop', 'end_turn'),
        begin('anthropic-messages', { rest: { stop_details: { type: 'refusal' } } }),
      ]),
      encoder.end({ ...ended, usage: noUsage }),
    ].join('');
    expect(stream).not.toContain('theirs');
    const { message } = checkMessagesStream(stream);
    expect(message).toMatchObject({
      context_management: { applied_edits: [] },
      container: { id: 'c' },
      stop_details: { type: 'refusal' },
    });
  });

  test('that fails late emits the blocks that waited', () => {
    const encoder = createMessagesStream(options);
    const opened = (n: number, content: string): ChatChunk => ({
      delta: { content },
      ext: { slot: { n, open: { kind: 'text' } } },
    });
    const stream = [
      encoder.open(SERVED),
      encoder.chunks([begin('openai-responses'), opened(0, 'a'), opened(1, 'b')]),
      encoder.end({ ...ended, usage: noUsage, error: new GatewayError(502, 'gone') }),
    ].join('');
    expect(checkMessagesStream(stream).message!['content']).toMatchObject([{ text: 'a' }, { text: 'b' }]);
  });

  test('that fails late ends with the error and the cost', () => {
    const encoder = createMessagesStream(options);
    const error = new GatewayError(502, 'gone', { metadata: { provider_name: 'Recorded' } });
    const stream = [
      encoder.open(SERVED),
      encoder.chunks([
        begin('openai-chat'),
        { delta: { content: 'a' }, ext: { slot: { n: 0, open: { kind: 'text' } } } },
      ]),
      encoder.end({ ...ended, usage: noUsage, metadata: { attempt: 1 }, error }),
    ].join('');
    const { error: sentError, events } = checkMessagesStream(stream);
    expect(sentError).toEqual({
      type: 'api_error',
      message: 'gone',
      error_type: 'provider_unavailable',
      metadata: { provider_name: 'Recorded' },
    });
    expect(events.at(-1)).toMatchObject({
      request_id: STATE.generation_id,
      usage: { cost: 0.25 },
      gateway_metadata: { attempt: 1 },
    });
  });

  test('of an answer that the provider ended with an error ends with that error', () => {
    const chunks: ChatChunk[] = [
      begin('gemini-generate-content'),
      text(0, 'a'),
      { ...finish('error'), error: { code: 502, message: 'broken' } },
    ];
    expect(checkMessagesStream(streamText([chunks])).error).toMatchObject({ type: 'api_error', message: 'broken' });
    expect(() => wholeMessage(accumulate(chunks, 0))).toThrow('broken');
  });

  test('that never started contains only its failure', () => {
    const encoder = createMessagesStream(options);
    const { events } = checkMessagesStream(encoder.failed(new GatewayError(503, 'nobody'), null));
    expect(events).toMatchObject([{ type: 'error', error: { type: 'overloaded_error' } }]);
  });

  test('shows the body that was sent upstream in a ping, which clients ignore', () => {
    const encoder = createMessagesStream(options);
    expect(encoder.debug({ served: { model: 'a/b', provider: 'C' }, body: { model: 'x' } })).toBe(
      'event: ping\ndata: {"type":"ping","debug":{"echo_upstream_body":{"model":"x"}}}\n\n',
    );
  });
});
