/** Streams of every wire with a chosen text in reasoning, text and arguments, in chosen pieces. */
import { EventStreamCodec } from '@smithy/core/event-streams';
import { dialects } from '../src/providers/dialects.ts';
import { createFramer } from '../src/providers/transport/frames.ts';
import type { ChatChunk, Wire } from '../src/schemas/inner.ts';

/** The output of a model, each text in its streamed pieces. */
export interface ModelOutput {
  reasoning: readonly string[];
  text: readonly string[];
  /** JSON. */
  args: readonly string[];
}

const sse = (events: readonly object[], isNamed = false) =>
  Buffer.from(
    events
      .map((event) => {
        const { type } = event as { type?: string };
        return `${isNamed ? `event: ${type}\n` : ''}data: ${JSON.stringify(event)}\n\n`;
      })
      .join(''),
  );

const codec = new EventStreamCodec(
  (input) => (typeof input === 'string' ? input : Buffer.from(input).toString('utf8')),
  (input) => Buffer.from(input, 'utf8'),
);
const string = (value: string) => ({ type: 'string' as const, value });
const aws = (events: readonly (readonly [string, object])[]) =>
  Buffer.concat(
    events.map(([type, payload]) =>
      codec.encode({
        headers: {
          ':event-type': string(type),
          ':content-type': string('application/json'),
          ':message-type': string('event'),
        },
        body: Buffer.from(JSON.stringify(payload)),
      }),
    ),
  );

function chat({ reasoning, text, args }: ModelOutput): Buffer {
  const chunk = (delta: object, finishReason: string | null = null) => ({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: finishReason }],
  });
  const call = (delta: object) => chunk({ tool_calls: [{ index: 0, ...delta }] });
  const events = sse([
    chunk({ role: 'assistant', content: null }),
    ...reasoning.map((piece) => chunk({ reasoning_content: piece })),
    ...text.map((content) => chunk({ content })),
    call({ id: 'call_1', type: 'function', function: { name: 'send', arguments: '' } }),
    ...args.map((piece) => call({ function: { arguments: piece } })),
    chunk({}, 'tool_calls'),
    { ...chunk({}), choices: [], usage: { prompt_tokens: 3, completion_tokens: 9, total_tokens: 12 } },
  ]);
  return Buffer.concat([events, Buffer.from('data: [DONE]\n\n')]);
}

function messages({ reasoning, text, args }: ModelOutput): Buffer {
  const block = (index: number, contentBlock: object, deltas: readonly object[]) => [
    { type: 'content_block_start', index, content_block: contentBlock },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
  return sse(
    [
      { type: 'message_start', message: { id: 'msg_1', model: 'm', usage: { input_tokens: 3, output_tokens: 1 } } },
      ...block(0, { type: 'thinking', thinking: '', signature: '' }, [
        ...reasoning.map((thinking) => ({ type: 'thinking_delta', thinking })),
        { type: 'signature_delta', signature: 'c2lnbmVk' },
      ]),
      ...block(
        1,
        { type: 'text', text: '' },
        text.map((piece) => ({ type: 'text_delta', text: piece })),
      ),
      ...block(
        2,
        { type: 'tool_use', id: 'toolu_1', name: 'send', input: {} },
        args.map((partialJson) => ({ type: 'input_json_delta', partial_json: partialJson })),
      ),
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 9 } },
      { type: 'message_stop' },
    ],
    true,
  );
}

function responses({ reasoning, text, args }: ModelOutput): Buffer {
  const summary = [{ type: 'summary_text', text: reasoning.join('') }];
  const content = [{ type: 'output_text', text: text.join(''), annotations: [] }];
  const items = [
    { id: 'rs_1', type: 'reasoning', summary, encrypted_content: 'gAAAA' },
    { id: 'msg_1', type: 'message', status: 'completed', role: 'assistant', content },
    {
      id: 'fc_1',
      type: 'function_call',
      status: 'completed',
      call_id: 'call_1',
      name: 'send',
      arguments: args.join(''),
    },
  ];
  const begun = [
    { ...items[0], summary: [] },
    { ...items[1], content: [] },
    { ...items[2], arguments: '' },
  ];
  const deltas = [
    reasoning.map((delta) => ({ type: 'response.reasoning_summary_text.delta', summary_index: 0, delta })),
    text.map((delta) => ({ type: 'response.output_text.delta', content_index: 0, delta })),
    args.map((delta) => ({ type: 'response.function_call_arguments.delta', delta })),
  ];
  const usage = { input_tokens: 3, output_tokens: 9, total_tokens: 12 };
  return sse([
    { type: 'response.created', response: { id: 'resp_1', status: 'in_progress', output: [] } },
    ...items.flatMap((item, outputIndex) => [
      { type: 'response.output_item.added', output_index: outputIndex, item: begun[outputIndex] },
      ...deltas[outputIndex]!.map((delta) => ({ ...delta, output_index: outputIndex })),
      { type: 'response.output_item.done', output_index: outputIndex, item },
    ]),
    { type: 'response.completed', response: { id: 'resp_1', status: 'completed', output: items, usage } },
  ]);
}

function gemini({ reasoning, text, args }: ModelOutput): Buffer {
  const event = (parts: readonly object[], more: object = {}) => ({
    candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 9, totalTokenCount: 12 },
    responseId: 'r-1',
  });
  return sse([
    ...reasoning.map((piece) => event([{ text: piece, thought: true }])),
    ...text.map((piece) => event([{ text: piece }])),
    event([{ functionCall: { name: 'send', args: JSON.parse(args.join('')) }, thoughtSignature: 'RXBB' }]),
    event([{ text: '' }], { finishReason: 'STOP' }),
  ]);
}

function bedrock({ reasoning, text, args }: ModelOutput): Buffer {
  const delta = (contentBlockIndex: number, value: object) =>
    ['contentBlockDelta', { contentBlockIndex, delta: value }] as const;
  const stop = (contentBlockIndex: number) => ['contentBlockStop', { contentBlockIndex }] as const;
  return aws([
    ['messageStart', { role: 'assistant' }],
    ...reasoning.map((piece) => delta(0, { reasoningContent: { text: piece } })),
    delta(0, { reasoningContent: { signature: 'c2ln' } }),
    stop(0),
    ...text.map((piece) => delta(1, { text: piece })),
    stop(1),
    ['contentBlockStart', { contentBlockIndex: 2, start: { toolUse: { toolUseId: 't_1', name: 'send' } } }],
    ...args.map((input) => delta(2, { toolUse: { input } })),
    stop(2),
    ['messageStop', { stopReason: 'tool_use' }],
    ['metadata', { usage: { inputTokens: 3, outputTokens: 9, totalTokens: 12 } }],
  ]);
}

function cohere({ reasoning, text, args }: ModelOutput): Buffer {
  const event = (type: string, index: number, message: object) => ({ type, index, delta: { message } });
  const called = (calls: object) => ({ tool_calls: calls });
  const send = { id: 'send_1', type: 'function', function: { name: 'send', arguments: '' } };
  return sse(
    [
      { type: 'message-start', id: 'c', delta: { message: { role: 'assistant', content: [] } } },
      event('content-start', 0, { content: { type: 'thinking', thinking: '' } }),
      ...reasoning.map((thinking) => event('content-delta', 0, { content: { thinking } })),
      { type: 'content-end', index: 0 },
      event('content-start', 1, { content: { type: 'text', text: '' } }),
      ...text.map((piece) => event('content-delta', 1, { content: { text: piece } })),
      { type: 'content-end', index: 1 },
      event('tool-call-start', 0, called(send)),
      ...args.map((piece) => event('tool-call-delta', 0, called({ function: { arguments: piece } }))),
      { type: 'tool-call-end', index: 0 },
      {
        type: 'message-end',
        delta: { finish_reason: 'TOOL_CALL', usage: { tokens: { input_tokens: 3, output_tokens: 9 } } },
      },
    ],
    true,
  );
}

const WRITERS: Readonly<Record<Wire, (output: ModelOutput) => Buffer>> = {
  'openai-chat': chat,
  'anthropic-messages': messages,
  'openai-responses': responses,
  'gemini-generate-content': gemini,
  'bedrock-converse': bedrock,
  'cohere-chat': cohere,
};

/** The bytes of a stream of a wire. */
export function bytesOf(wire: Wire, output: ModelOutput): Buffer {
  return WRITERS[wire](output);
}

/** The chunks of a wire's decoder for bytes that arrive in these pieces; one group for each piece. */
export function decoded(wire: Wire, pieces: readonly Uint8Array[]): ChatChunk[][] {
  const dialect = dialects.get(wire)!;
  const framer = createFramer(dialect.frames);
  const decoder = dialect.createStreamDecoder({ generation_id: 'gen-1' });
  const groups = pieces.map((piece) => framer.push(piece).flatMap((frame) => decoder.push(frame)));
  return [...groups, [...framer.end().flatMap((frame) => decoder.push(frame)), ...decoder.end()]];
}
