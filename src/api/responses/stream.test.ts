import { describe, expect, test } from 'vitest';
import { checkResponsesStream } from '../../../test/grammar/responses.ts';
import { array, object } from '../../../test/readings/recordings.ts';
import {
  contextOf,
  END,
  encoded,
  envelope,
  generationId,
  served,
  streamed,
  whole,
} from '../../../test/wires/responses-encoder.ts';
import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { accumulate } from '../../schemas/accumulate.ts';
import type { ChatChunk, Delta, Ext, Message, ReasoningDetail, SlotEvent } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { WAITING_BLOCKS_CHARS_MAX } from '../shared/block-order.ts';
import { responsesRequest } from './parse-request.ts';
import { createResponseStream } from './stream.ts';

const chunk = (n: number, delta: Delta, event: Omit<SlotEvent, 'n'> = {}): ChatChunk => ({
  delta,
  ext: { slot: { n, ...event } },
});
const own = (rest: JsonObject): Ext => ({ wire: 'openai-responses', rest });
const STOP: ChatChunk = { delta: {}, finish_reason: 'stop', native_finish_reason: 'end' };
const text = (n: number, ...pieces: string[]): ChatChunk[] => [
  chunk(n, {}, { open: { kind: 'text' } }),
  ...pieces.map((content) => chunk(n, { content })),
  chunk(n, {}, { close: {} }),
];
const calling = (n: number, index: number, name: string, ...pieces: string[]): ChatChunk[] => [
  chunk(
    n,
    { tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name, arguments: '' } }] },
    { open: { kind: 'call' } },
  ),
  ...pieces.map((piece) => chunk(n, { tool_calls: [{ index, function: { arguments: piece } }] })),
  chunk(n, {}, { close: {} }),
];
const thinking = (n: number, ...details: ReasoningDetail[]): ChatChunk[] => [
  chunk(n, {}, { open: { kind: 'reasoning' } }),
  ...details.map((detail) => chunk(n, { reasoning_details: [detail] })),
  chunk(n, {}, { close: {} }),
];

function decoded(
  chunks: readonly ChatChunk[],
  context = contextOf(),
): { types: string[]; output: JsonObject[]; response: JsonObject } {
  const { events, response } = checkResponsesStream(streamed([chunks], context));
  return {
    types: events.map(({ type }) => String(type).replace('response.', '')).slice(2),
    output: array(response['output']).map(object),
    response,
  };
}

/** The conversation of a client that sends the output back. */
function replayed(output: readonly JsonObject[]): Message {
  const input = [{ role: 'user', content: 'Q' }, ...output, { role: 'user', content: 'More' }];
  const body = { model: 'a/b', input } as unknown as Parameters<typeof responsesRequest>[0];
  return responsesRequest(body, { envelope }).messages[1]!;
}

describe('the order of events', () => {
  test('is the standard one: each part and item is closed before the next opens', () => {
    const { types } = decoded([
      ...thinking(0, { type: 'reasoning.text', text: 'Hm', format: 'unknown', index: 0 }),
      ...text(1, 'A'),
      ...calling(2, 0, 'look', '{}'),
      { ...STOP, finish_reason: 'tool_calls' },
    ]);
    expect(types).toEqual([
      'output_item.added',
      'content_part.added',
      'reasoning_text.delta',
      'reasoning_text.done',
      'content_part.done',
      'output_item.done',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'output_item.added',
      'function_call_arguments.delta',
      'function_call_arguments.done',
      'output_item.done',
      'completed',
    ]);
  });

  test('of interleaved blocks is that of their opening', () => {
    const [first, ...rest] = calling(0, 0, 'a', '{"x":', '1}');
    const [second, ...others] = calling(1, 1, 'b', '{"y":', '2}');
    const mixed = [first!, second!, others[0]!, rest[0]!, others[1]!, rest[1]!, others[2]!, rest[2]!];
    const { output } = decoded([...mixed, { ...STOP, finish_reason: 'tool_calls' }]);
    expect(output.map(({ call_id, arguments: all }) => [call_id, all])).toEqual([
      ['call_0', '{"x":1}'],
      ['call_1', '{"y":2}'],
    ]);
  });

  test('fails the answer if too much content waits, and sends the output so far', () => {
    const encoder = createResponseStream(contextOf());
    const begun = encoder.open({ model: 'a/b', provider: 'A' });
    const waiting = text(1, 'x'.repeat(WAITING_BLOCKS_CHARS_MAX));
    let thrown: unknown;
    try {
      encoder.chunks([...text(0, 'A').slice(0, 2), ...waiting]);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(GatewayError);
    const end = { type: 'end', usage: usageOf({}), classes: null, metadata: undefined } as const;
    const { response } = checkResponsesStream(begun + encoder.end({ ...end, error: thrown as GatewayError }));
    expect(response).toMatchObject({ status: 'failed', output: [{ status: 'incomplete', content: [{ text: 'A' }] }] });
  });
});

describe('items', () => {
  test('are not created for empty blocks', () => {
    const { output, types } = decoded([...text(0), ...thinking(1), ...text(2, ''), STOP]);
    expect([output, types]).toEqual([[], ['completed']]);
  });

  test('have unique ids that are the same for the same answer', () => {
    const chunks = [...text(0, 'A'), ...calling(1, 0, 'a', '{}'), ...text(2, 'B'), STOP];
    const [first, again] = [decoded(chunks), decoded(chunks)];
    expect(first.output).toEqual(again.output);
    const stem = `1700000000${'a'.repeat(20)}`;
    expect(first.output.map(({ id }) => id)).toEqual([`msg_${stem}0`, `fc_${stem}1`, `msg_${stem}2`]);
    expect(first.response['id']).toBe(generationId);
  });

  test('keep the ids of an upstream of the same wire, except repeated ones', () => {
    const named = (n: number, id: string) => [
      chunk(n, { content: 'A' }, { open: { kind: 'text', ext: own({ id }) } }),
      chunk(n, {}, { close: { ext: own({ id, status: 'completed' }) } }),
    ];
    const { output } = decoded([...named(0, 'msg_x'), ...calling(1, 0, 'a', '{}'), ...named(2, 'msg_x'), STOP]);
    expect(output[0]!['id']).toBe('msg_x');
    expect(output[2]!['id']).toMatch(/^msg_1700000000a+2$/);
  });

  test('of this wire are one message if their ids and phases are equal, else two', () => {
    const part = (n: number, rest: JsonObject, text: string) => [
      chunk(n, { content: text }, { open: { kind: 'text', ext: own(rest) } }),
      chunk(n, {}, { close: { ext: own(rest) } }),
    ];
    const { output } = decoded([
      ...part(0, { id: 'msg_1', phase: 'commentary' }, 'A'),
      ...part(1, { id: 'msg_1', phase: 'commentary' }, 'B'),
      ...part(2, { id: 'msg_2', phase: 'commentary' }, 'C'),
      ...part(3, { id: 'msg_2', phase: 'final_answer' }, 'D'),
      STOP,
    ]);
    const items = output.map(({ id, phase, content }) => [id, phase, array(content).map((one) => object(one)['text'])]);
    expect(items).toEqual([
      ['msg_1', 'commentary', ['A', 'B']],
      ['msg_2', 'commentary', ['C']],
      [expect.stringMatching(/^msg_1700000000a+2$/), 'final_answer', ['D']],
    ]);
  });

  test.each<[string, ChatChunk['finish_reason'], string, unknown]>([
    ['length', 'length', 'incomplete', { reason: 'max_output_tokens' }],
    ['a filter', 'content_filter', 'incomplete', { reason: 'content_filter' }],
    ['an error', 'error', 'failed', null],
    ['the model itself', 'stop', 'completed', null],
  ])('have a status that shows that the answer was ended by %s', (_what, finishReason, status, incompleteDetails) => {
    const chunks = [...text(0, 'A'), ...calling(1, 0, 'a', '{"x'), { ...STOP, finish_reason: finishReason }];
    const { output, response } = decoded(chunks as ChatChunk[]);
    expect(response).toMatchObject({ status, incomplete_details: incompleteDetails });
    expect(output.map((item) => item['status'])).toEqual(['completed', status === 'completed' ? status : 'incomplete']);
    expect(whole(chunks as ChatChunk[])).toEqual(response);
  });

  test('have log probabilities only if requested', () => {
    const likely = { content: [{ token: 'A', logprob: -0.1, bytes: null, top_logprobs: [] }] };
    const chunks = text(0, 'A').map((one) => (one.delta.content ? { ...one, logprobs: likely } : one));
    for (const showsLogprobs of [true, false]) {
      const { output } = decoded([...chunks, STOP], contextOf({}, { shows_logprobs: showsLogprobs }));
      const logprobs = showsLogprobs ? [{ token: 'A', logprob: -0.1, bytes: [65], top_logprobs: [] }] : [];
      expect(output).toMatchObject([{ content: [{ text: 'A', logprobs }] }]);
    }
  });

  test('have the bytes of their tokens from the provider, or else from the text of the token', () => {
    const topLogprobs = [
      { token: '\ufffd', logprob: -1 },
      { token: 'é', logprob: -2 },
    ];
    const content = [
      { token: 'bytes:\\xc3', logprob: 0, bytes: [195], top_logprobs: topLogprobs },
      { token: 'bytes:\\xa9', logprob: 0, bytes: null, top_logprobs: [] },
    ];
    const chunks = text(0, 'é').map((one) => (one.delta.content ? { ...one, logprobs: { content } } : one));
    const [part] = array(decoded([...chunks, STOP]).output[0]!['content']).map(object);
    expect(part!['logprobs']).toEqual([
      {
        token: 'bytes:\\xc3',
        logprob: 0,
        bytes: [195],
        top_logprobs: [
          { token: '\ufffd', logprob: -1 },
          { token: 'é', logprob: -2, bytes: [195, 169] },
        ],
      },
      { token: 'bytes:\\xa9', logprob: 0, top_logprobs: [] },
    ]);
  });

  test('have the log probabilities of their own tokens, streamed and whole, also if these arrive later', () => {
    const likely = (token: string) => ({ content: [{ token, logprob: -0.1, bytes: null, top_logprobs: [] }] });
    const saying = (n: number, token: string): ChatChunk[] =>
      text(n, token).map((one) => (one.delta.content ? { ...one, logprobs: likely(token) } : one));
    const behind: ChatChunk = { delta: {}, logprobs: likely('é') };
    const chunks = [...saying(0, 'Łó'), ...calling(1, 0, 'a', '{}'), ...saying(2, 'x'), ...text(3, 'é'), behind, STOP];
    const { output, response } = decoded(chunks);
    const logprobs = array(output[2]!['content']).map((part) => array(object(part)['logprobs']));
    expect(logprobs).toMatchObject([[{ token: 'x' }], [{ token: 'é' }]]);
    expect(whole(chunks)).toEqual(response);
  });

  test('an error of the upstream inside its answer is the error of the response', () => {
    const error = { code: 429, message: 'Slow down' };
    const { response } = decoded([...text(0, 'A'), { delta: {}, finish_reason: 'error', error }]);
    expect(response).toMatchObject({
      status: 'failed',
      error: { code: 'rate_limit_exceeded', message: 'Slow down' },
      error_type: 'rate_limit_exceeded',
    });
  });

  test('of images are those of the image tool, one each', () => {
    const image = (data: string) => ({
      type: 'image_url' as const,
      image_url: { url: `data:image/png;base64,${data}` },
    });
    const chunks = [
      chunk(0, { images: [image('AA=='), image('BB==')] }, { open: { kind: 'image' } }),
      chunk(0, {}, { close: {} }),
      STOP,
    ];
    const { output, response, types } = decoded(chunks);
    const events = ['in_progress', 'completed'].map((one) => `image_generation_call.${one}`);
    const each = ['output_item.added', ...events, 'output_item.done'];
    expect(types).toEqual([...each, ...each, 'completed']);
    expect(output).toMatchObject([
      { type: 'image_generation_call', status: 'completed', result: 'AA==' },
      { type: 'image_generation_call', status: 'completed', result: 'BB==' },
    ]);
    expect(whole(chunks)).toEqual(response);
  });

  test('are created for all content of a chunk without a block', () => {
    const call = (index: number) => ({
      index,
      id: `call_${index}`,
      type: 'function' as const,
      function: { name: 'f', arguments: '{}' },
    });
    const images = [{ type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AA==' } }];
    const reasoningDetails: ReasoningDetail[] = [{ type: 'reasoning.text', text: 'Hm', format: 'unknown', index: 0 }];
    const delta: Delta = {
      tool_calls: [call(0), call(1)],
      images,
      content: 'A',
      reasoning: 'Hm',
      reasoning_details: reasoningDetails,
    };
    const { output, response } = decoded([{ delta, finish_reason: 'tool_calls' }]);
    expect(output.map(({ type }) => type)).toEqual([
      'reasoning',
      'message',
      'image_generation_call',
      'function_call',
      'function_call',
    ]);
    expect(whole([{ delta, finish_reason: 'tool_calls' }])).toEqual(response);
  });

  test('are not created for opaque state of other wires, nor for audio', () => {
    const native = { type: 'native' as const, wire: 'anthropic-messages' as const, block: { type: 'server_tool_use' } };
    const { output } = decoded([
      chunk(0, {}, { open: { kind: 'native', native } }),
      chunk(0, {}, { close: { native } }),
      { delta: { audio: { data: 'AA==' } } },
      ...text(1, 'A'),
      STOP,
    ]);
    expect(output.map(({ type }) => type)).toEqual(['message']);
  });
});

describe('citations', () => {
  const cite = (startIndex: number, endIndex: number) => ({
    type: 'url_citation' as const,
    url_citation: { url: 'https://a.example', title: 'A', start_index: startIndex, end_index: endIndex },
  });

  test('have offsets within their part, in code points', () => {
    const chunks = [
      ...text(0, 'Łódź 🎉 '),
      chunk(1, { content: 'is nice' }, { open: { kind: 'text' } }),
      chunk(1, { annotations: [cite(7, 14)] }, { close: {} }),
      STOP,
    ];
    const { output, response } = decoded(chunks);
    const [, part] = array(output[0]!['content']).map(object);
    expect(part!['annotations']).toMatchObject([
      { url: 'https://a.example', title: 'A', start_index: 0, end_index: 7 },
    ]);
    expect(whole(chunks)).toEqual(response);
  });

  test('that arrive after their text are in its part', () => {
    const late: ChatChunk = { delta: { annotations: [cite(1, 2), cite(4, 5), cite(0, 0)] } };
    const { output } = decoded([...text(0, 'abc'), ...text(1, 'def'), late, STOP]);
    const places = array(output[0]!['content']).map((part) =>
      array(object(part)['annotations']).map((one) => [object(one)['start_index'], object(one)['end_index']]),
    );
    expect(places).toEqual([
      [[1, 2]],
      [
        [1, 2],
        [0, 0],
      ],
    ]);
  });

  test('that arrive before their text wait for it', () => {
    const { output } = decoded([{ delta: { annotations: [cite(0, 0)] } }, ...text(0, 'abc'), STOP]);
    expect(object(array(output[0]!['content'])[0])['annotations']).toHaveLength(1);
  });

  test.each([
    ['without a position', cite(0, 0), 0, [0, 0]],
    ['of the text before a call', cite(1, 2), 0, [1, 2]],
    ['that start in one message and end in the next', cite(2, 5), 0, [2, 5]],
    ['of the text after a call', cite(4, 6), 2, [1, 3]],
  ])('%s have the same place as in the whole answer, also if they arrive late', (_, citation, at, place) => {
    const after = at === 2 || citation.url_citation.end_index === 5 ? text(2, 'def') : [];
    const late: ChatChunk = { delta: { annotations: [citation] } };
    const chunks = [...text(0, 'abc'), ...calling(1, 0, 'look', '{}'), ...after, late, STOP];
    const { output, response, types } = decoded(chunks);
    const [part] = array(output[at]!['content']).map(object);
    expect(part!['annotations']).toMatchObject([{ start_index: place[0], end_index: place[1] }]);
    expect(response).toEqual(whole(chunks));
    // Those of a closed message follow all items.
    if (at === 0) expect(types.slice(-3)).toEqual(['output_item.done', 'output_text.annotation.added', 'completed']);
  });

  test('that end before they start have no length, and those beyond their text are kept', () => {
    const late: ChatChunk = { delta: { annotations: [cite(2, 1), cite(1, 99), cite(-4, 2), cite(7, 9)] } };
    const chunks = [...text(0, 'abc'), late, STOP];
    const { output, response } = decoded(chunks);
    const places = array(object(array(output[0]!['content'])[0])['annotations']).map((one) => [
      object(one)['start_index'],
      object(one)['end_index'],
    ]);
    expect(places).toEqual([
      [2, 2],
      [0, 2],
      [1, 99],
      [7, 9],
    ]);
    expect(response).toMatchObject({ status: 'completed' });
  });

  test('without offsets belong to the last text, whether they arrive before or between texts', () => {
    const early: ChatChunk = { delta: { annotations: [cite(0, 0)] } };
    for (const chunks of [
      [early, ...text(0, 'abc'), ...calling(1, 0, 'look', '{}'), ...text(2, 'def'), STOP],
      [...text(0, 'abc'), early, ...calling(1, 0, 'look', '{}'), ...text(2, 'def'), STOP],
    ]) {
      const { output, response } = decoded(chunks);
      expect(object(array(output[2]!['content'])[0])['annotations']).toHaveLength(1);
      expect(response).toEqual(whole(chunks));
    }
  });
});

describe('reasoning', () => {
  const signed: ReasoningDetail[] = [
    { type: 'reasoning.text', text: 'Let me ', format: 'anthropic-claude-v1', id: null, index: 0 },
    { type: 'reasoning.text', text: 'see', format: 'anthropic-claude-v1', id: null, index: 0 },
    { type: 'reasoning.text', signature: 'sig', format: 'anthropic-claude-v1', id: null, index: 0 },
    { type: 'reasoning.encrypted', data: 'opaque', format: 'anthropic-claude-v1', id: null, index: 1 },
  ];

  test('of another wire is readable, and its state is restored from a client that sends items back unchanged', () => {
    const chunks = [
      ...thinking(0, ...signed),
      ...calling(1, 0, 'a', '{}'),
      { ...STOP, finish_reason: 'tool_calls' as const },
    ];
    const { output } = decoded(chunks);
    expect(output[0]).toMatchObject({
      type: 'reasoning',
      summary: [],
      content: [{ type: 'reasoning_text', text: 'Let me see' }],
      format: 'anthropic-claude-v1',
      signature: 'sig',
      encrypted_content: expect.stringMatching(/^gw1\./),
    });
    const details = [
      { type: 'reasoning.text', text: 'Let me see', signature: 'sig', format: 'anthropic-claude-v1', id: null },
      { type: 'reasoning.encrypted', data: 'opaque', format: 'anthropic-claude-v1', id: null },
    ];
    expect(replayed(output).reasoning_details).toMatchObject(details);
    // Some clients send back the encrypted content alone.
    const { content: _, ...kept } = output[0]!;
    expect(replayed([kept, output[1]!]).reasoning_details).toMatchObject(details);
  });

  test('of this wire has its own encrypted content, and no format', () => {
    const format = 'openai-responses-v1';
    const chunks = [
      chunk(
        0,
        { reasoning_details: [{ type: 'reasoning.summary', summary: 'So', format, index: 0 }] },
        {
          open: { kind: 'reasoning', ext: own({ id: 'rs_1' }) },
        },
      ),
      chunk(0, { reasoning_details: [{ type: 'reasoning.encrypted', data: 'enc', format, id: 'rs_1', index: 1 }] }),
      chunk(0, {}, { close: { ext: own({ id: 'rs_1' }) } }),
      ...text(1, 'A'),
      STOP,
    ];
    const { output } = decoded(chunks);
    expect(output[0]).toEqual({
      id: 'rs_1',
      type: 'reasoning',
      summary: [{ type: 'summary_text', text: 'So' }],
      encrypted_content: 'enc',
    });
  });

  test('is hidden from a client that excludes it', () => {
    const context = () => contextOf({}, { hide_reasoning: true });
    const chunks = [...thinking(0, ...signed), ...text(1, 'A'), { delta: { reasoning: 'Hm' } }, STOP];
    const { output, response } = decoded(chunks, context());
    expect(output.map(({ type }) => type)).toEqual(['message']);
    expect(whole(chunks, context())).toEqual(response);
  });

  test('a seal is an item of its own at the end, and is restored unchanged', () => {
    const seal: ReasoningDetail = {
      type: 'reasoning.encrypted',
      data: 'gw1.x.y',
      id: `seal_${generationId}`,
      format: 'unknown',
    };
    const { output, response } = decoded([
      ...text(0, 'A'),
      { delta: { reasoning_details: [{ ...seal, index: 0 }] } },
      STOP,
    ]);
    expect(output.map(({ type }) => type)).toEqual(['message', 'reasoning']);
    expect(replayed(output).reasoning_details).toMatchObject([seal]);
    const completion = accumulate([...text(0, 'A'), STOP], 0);
    completion.choices[0].message.reasoning_details = [{ ...seal, index: 0 }];
    expect(encoded(completion)).toEqual(response);
  });
});

describe('calls of custom tools', () => {
  const tools = [
    { type: 'custom', name: 'shell' },
    { type: 'namespace', name: 'crm', tools: [{ type: 'function', name: 'find' }] },
  ];
  const pieces = (of: string, size: number) => of.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];

  test.each([
    ['plain', 'ls -l'],
    ['with all escaped characters', 'a "b" \\ \n\t é 🎉 \u0001 </script>'],
    ['empty', ''],
  ])('return their input as text: %s', (_what, input) => {
    for (const size of [1, 2, 3, 7, 100]) {
      for (const spelling of [JSON.stringify({ input }), `{ "input" :  ${JSON.stringify(input)} }`]) {
        const escaped = spelling.replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
        for (const all of [spelling, escaped]) {
          const chunks = [
            ...calling(0, 0, 'shell', ...pieces(all, size)),
            { ...STOP, finish_reason: 'tool_calls' as const },
          ];
          const { output, response } = decoded(chunks, contextOf({ tools }));
          expect(output).toMatchObject([{ type: 'custom_tool_call', call_id: 'call_0', name: 'shell', input }]);
          expect(whole(chunks, contextOf({ tools }))).toEqual(response);
        }
      }
    }
  });

  test.each(['{"command":"ls"}', 'ls', '{"input":{"a":1}}'])(
    'with arguments of another form return them whole: %s',
    (all) => {
      const { output } = decoded([...calling(0, 0, 'shell', ...pieces(all, 2)), STOP], contextOf({ tools }));
      expect(output[0]!['input']).toBe(all);
    },
  );

  test('a function of a namespace has its name inside the namespace', () => {
    const { output } = decoded([...calling(0, 0, 'crm__find', '{}'), STOP], contextOf({ tools }));
    expect(output).toMatchObject([{ type: 'function_call', namespace: 'crm', name: 'find', arguments: '{}' }]);
  });
});

describe('a stream that breaks', () => {
  const broken = new GatewayError(502, 'A returned an error: gone', { metadata: { provider_name: 'A' } });

  test('after its start closes open items and fails, with its usage', () => {
    const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
    const body = streamed([text(0, 'A').slice(0, 2)], contextOf(), {
      error: broken,
      usage: usageOf(usage),
    });
    const { response } = checkResponsesStream(body);
    expect(response).toMatchObject({
      status: 'failed',
      error: { code: 'server_error', message: 'A returned an error: gone' },
      error_type: 'provider_unavailable',
      usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
      output: [{ status: 'incomplete', content: [{ text: 'A' }] }],
    });
  });

  test('before its start is created, and fails', () => {
    const { events, response } = checkResponsesStream(createResponseStream(contextOf()).failed(broken, null));
    expect(events.map(({ type }) => type)).toEqual(['response.created', 'response.in_progress', 'response.failed']);
    expect(response).toMatchObject({ status: 'failed', model: 'asked', output: [] });
  });

  test('that is continued at another endpoint stays in the same part', () => {
    const encoder = createResponseStream(contextOf());
    // Each upstream numbers its blocks independently.
    const first = encoder.open({ model: 'a/b', provider: 'A' }) + encoder.chunks(text(1, 'One ').slice(0, 2));
    const second = encoder.open({ model: 'a/b', provider: 'B' }) + encoder.chunks([...text(0, 'two'), STOP]);
    const end = encoder.end({ type: 'end', usage: usageOf({}), classes: null, metadata: undefined, error: undefined });
    const { response } = checkResponsesStream(first + second + end, { continued: true });
    expect(response['output']).toMatchObject([{ content: [{ text: 'One two' }], status: 'completed' }]);
  });
});

function usageOf(counts: object): Parameters<ReturnType<typeof createResponseStream>['end']>[0]['usage'] {
  return {
    prompt_tokens: 0,
    completion_tokens: 0,
    total_tokens: 0,
    prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0, audio_tokens: 0, video_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0, image_tokens: 0 },
    is_byok: false,
    ...counts,
  };
}

test('the probabilities and the text of a long answer are in no event as one string', () => {
  const { json_piece_chars } = limits;
  Object.assign(limits, { json_piece_chars: 100 });
  try {
    const encoder = createResponseStream({ ...contextOf(), shows_logprobs: true });
    const token = { token: 'abc', logprob: -0.5, bytes: [97, 98, 99] };
    const noBytes = { ...token, bytes: null };
    const texts: string[] = [encoder.open(served)];
    const count = 200;
    for (let at = 0; at < count; at += 1) {
      const logprobs = { content: [{ ...(at < count / 2 ? token : noBytes), top_logprobs: [token] }] };
      texts.push(...[encoder.chunks([{ delta: { content: 'abc' }, logprobs }])].flat());
    }
    const ended = [encoder.chunks([{ delta: {}, finish_reason: 'stop', native_finish_reason: null }])].flat();
    const last = [encoder.end(END)].flat();
    const { events, response } = checkResponsesStream([...texts, ...ended, ...last].join(''));
    const shown = (bytes: number[] | undefined) => ({ token: 'abc', logprob: -0.5, ...(bytes && { bytes }) });
    const entry = (bytes: number[] | undefined) => ({ ...shown(bytes), top_logprobs: [shown([97, 98, 99])] });
    const entries = (late: number[] | undefined) => [
      ...Array.from({ length: count / 2 }, () => entry([97, 98, 99])),
      ...Array.from({ length: count / 2 }, () => entry(late)),
    ];
    expect(events.find(({ type }) => type === 'response.output_text.done')!['logprobs']).toEqual(entries(undefined));
    expect(response).toMatchObject({
      output: [{ content: [{ logprobs: entries([97, 98, 99]), text: 'abc'.repeat(count) }] }],
    });
    expect(Math.max(...[...ended, ...last].map(({ length }) => length))).toBeLessThan(2_000);
  } finally {
    Object.assign(limits, { json_piece_chars });
  }
});
