/**
 * Answers of a hostile or broken upstream: `n` parts of one kind, for each wire as the events of its stream or as one
 * whole body.
 */
import type { Frame } from '../../src/providers/dialect.ts';
import type { Wire } from '../../src/schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';

export interface Flood {
  wire: Wire;
  /** The kind of the many parts. */
  parts: string;
  stream?(n: number): Frame[];
  whole?(n: number): JsonObject;
}

/** One event of a stream: its name, if the wire has names, and its payload. */
type FloodEvent = JsonObject | [event: string, payload: JsonObject];

function frames(events: readonly FloodEvent[]): Frame[] {
  return events.map((one) =>
    Array.isArray(one)
      ? { event: one[0] as string, data: JSON.stringify(one[1]) }
      : { event: undefined, data: JSON.stringify(one) },
  );
}

function times<T>(n: number, make: (i: number) => T): T[] {
  return Array.from({ length: n }, (_, i) => make(i));
}

const URL = 'https://a.example/';

// ---------------------------------------------------------------- openai-chat

const chatUsage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 };
const chatDelta = (delta: JsonObject, more: JsonObject = {}): JsonObject => ({
  id: 'c',
  choices: [{ index: 0, delta, ...more }],
});
const chatEnd: JsonObject = { id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: chatUsage };

function chat(parts: string, each: (i: number, n: number) => JsonObject, message?: (n: number) => JsonObject): Flood {
  return {
    wire: 'openai-chat',
    parts,
    stream: (n) => frames([chatDelta({ role: 'assistant', content: 'A' }), ...times(n, (i) => each(i, n)), chatEnd]),
    ...(message === undefined
      ? {}
      : {
          whole: (n) => ({
            id: 'c',
            choices: [{ index: 0, message: { role: 'assistant', ...message(n) }, finish_reason: 'stop' }],
            usage: chatUsage,
          }),
        }),
  };
}

const chatCall = (i: number): JsonObject => ({
  index: i,
  id: `call_${i}`,
  type: 'function',
  function: { name: 'f', arguments: '{}' },
});
const chatCitation = (i: number): JsonObject => ({
  type: 'url_citation',
  url_citation: { url: `${URL}${i}`, title: 't', start_index: i, end_index: i + 1 },
});
const chatFloods: Flood[] = [
  chat(
    'calls',
    (i) => chatDelta({ tool_calls: [chatCall(i)] }),
    (n) => ({ tool_calls: times(n, chatCall) }),
  ),
  chat('calls without an index', (i) =>
    chatDelta({ tool_calls: [{ id: `call_${i}`, function: { name: 'f', arguments: '{}' } }] }),
  ),
  chat('calls that are never named', (i) => chatDelta({ tool_calls: [{ index: i, function: { arguments: '{' } }] })),
  chat('calls at places far apart', (i) =>
    chatDelta({ tool_calls: [{ ...chatCall(i), index: i % 2 === 0 ? i * 1_000_003 : -i }] }),
  ),
  chat('pieces of one call', (i) =>
    chatDelta({ tool_calls: [{ index: 0, id: `call_${i}`, function: { arguments: i === 0 ? '{"a":"}' : '}' } }] }),
  ),
  chat('pieces of one named call', (i) =>
    chatDelta({ tool_calls: [{ index: 0, function: { name: 'f', arguments: i === 0 ? '{"a":"}' : '}' } }] }),
  ),
  chat('pieces of two calls in turn', (i) =>
    chatDelta({
      tool_calls: [
        {
          index: i % 2,
          ...(i < 2 ? { id: `call_${i}` } : {}),
          function: { ...(i < 2 ? { name: 'f' } : {}), arguments: i < 2 ? '{"a":"}' : '}' },
        },
      ],
    }),
  ),
  chat(
    'citations',
    (i) => chatDelta({ content: i % 2 === 0 ? 'é' : '', annotations: [chatCitation(i)] }),
    (n) => ({ content: 'a'.repeat(n), annotations: times(n, chatCitation) }),
  ),
  chat('citations of a text that comes after them', (i, n) =>
    i < n / 2
      ? chatDelta({ annotations: [chatCitation(i)] })
      : chatDelta({ content: 'a', annotations: [chatCitation(0)] }),
  ),
  chat(
    'parts of content, each cited',
    (i) =>
      chatDelta({
        content: [
          { type: 'text', text: 'a' },
          { type: 'thinking', thinking: [{ text: 'b' }] },
        ],
        annotations: [chatCitation(i)],
      }),
    (n) => ({
      content: times(n, (i) => (i % 2 === 0 ? { type: 'text', text: 'a' } : { type: 'thinking', thinking: 'b' })),
      annotations: times(n, chatCitation),
    }),
  ),
  chat(
    'reasoning details',
    (i) => chatDelta({ reasoning_details: [{ type: 'reasoning.text', text: 'a', index: i }] }),
    (n) => ({ content: 'a', reasoning_details: times(n, (i) => ({ type: 'reasoning.text', text: 'a', index: i })) }),
  ),
  chat('sealed reasoning between texts', (i) =>
    chatDelta(
      i % 2 === 0 ? { content: 'a' } : { reasoning_details: [{ type: 'reasoning.encrypted', data: 'QQ==', index: i }] },
    ),
  ),
  chat(
    'images',
    (i) => chatDelta({ images: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${i}` } }] }),
    (n) => ({ content: 'a', images: times(n, (i) => ({ type: 'image_url', image_url: { url: `data:,${i}` } })) }),
  ),
  chat(
    'runs of tools of its own',
    (i) =>
      chatDelta({
        executed_tools: [{ index: i, type: 'search', arguments: '{}', search_results: { results: [{ url: URL }] } }],
      }),
    (n) => ({ content: 'a', executed_tools: times(n, (i) => ({ index: i, type: 'search' })) }),
  ),
  chat('token probabilities', (i) =>
    chatDelta(
      { content: 'a' },
      { logprobs: { content: [{ token: 'a', logprob: -i, bytes: [97], top_logprobs: [] }] } },
    ),
  ),
  chat('choices', (i) => ({ id: 'c', choices: times(3, (j) => ({ index: i * j, delta: { content: 'a' } })) })),
  chat('counts of usage', (i) => ({
    ...chatDelta({ content: 'a' }),
    usage: { ...chatUsage, completion_tokens: i + 1 },
  })),
  chat('sources beside the answer', (i) => ({
    ...chatDelta({ content: 'a' }),
    ...(i === 0 ? { citations: times(50, (j) => `${URL}${j}`) } : {}),
  })),
];

// ---------------------------------------------------------------- anthropic-messages

const messagesStart: JsonObject = {
  type: 'message_start',
  message: { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], usage: { input_tokens: 3 } },
};
const messagesEnd: JsonObject[] = [
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } },
  { type: 'message_stop' },
];

function messages(parts: string, events: (n: number) => JsonObject[], content?: (n: number) => JsonValue[]): Flood {
  return {
    wire: 'anthropic-messages',
    parts,
    stream: (n) => frames([messagesStart, ...events(n), ...messagesEnd]),
    ...(content === undefined
      ? {}
      : {
          whole: (n) => ({
            id: 'm',
            type: 'message',
            role: 'assistant',
            model: 'm',
            content: content(n),
            stop_reason: 'end_turn',
            usage: { input_tokens: 3, output_tokens: 5 },
          }),
        }),
  };
}

/** Each block opens, grows and closes. */
function messagesBlocks(
  parts: string,
  block: (i: number) => JsonObject,
  deltas: (i: number) => JsonObject[] = () => [],
): Flood {
  return messages(
    parts,
    (n) =>
      times(n, (index): JsonObject[] => [
        { type: 'content_block_start', index, content_block: block(index) },
        ...deltas(index).map((delta) => ({ type: 'content_block_delta', index, delta })),
        { type: 'content_block_stop', index },
      ]).flat(),
    (n) => times(n, block),
  );
}

/** One block grows. */
function messagesDeltas(parts: string, contentBlock: JsonObject, delta: (i: number) => JsonObject): Flood {
  return messages(parts, (n) => [
    { type: 'content_block_start', index: 0, content_block: contentBlock },
    ...times(n, (i) => ({ type: 'content_block_delta', index: 0, delta: delta(i) })),
    { type: 'content_block_stop', index: 0 },
  ]);
}

const messagesCitation = (i: number): JsonObject => ({
  type: 'web_search_result_location',
  url: `${URL}${i}`,
  title: 't',
  cited_text: 'c',
  encrypted_index: 'e',
});
const messagesFloods: Flood[] = [
  messagesBlocks('calls', (i) => ({ type: 'tool_use', id: `toolu_${i}`, name: 'f', input: {} })),
  messagesBlocks('texts', () => ({ type: 'text', text: 'a' })),
  messagesBlocks('cited texts', (i) => ({ type: 'text', text: 'a', citations: [messagesCitation(i)] })),
  messages(
    'citations of one text',
    (n) => [
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '', citations: [] } },
      ...times(n, (i) => ({
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'citations_delta', citation: messagesCitation(i) },
      })),
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'a' } },
      { type: 'content_block_stop', index: 0 },
    ],
    (n) => [{ type: 'text', text: 'a', citations: times(n, messagesCitation) }],
  ),
  messagesBlocks('thoughts', (i) => ({ type: 'thinking', thinking: 'a', signature: `c2ln${i}` })),
  messagesBlocks('sealed thoughts', (i) => ({ type: 'redacted_thinking', data: `QQ${i}` })),
  messagesBlocks('blocks of its own', (i) => ({ type: 'server_tool_use', id: `s${i}`, name: 'web_search', input: {} })),
  messagesDeltas('fields of a block of its own', { type: 'server_tool_use', id: 's' }, (i) => ({
    type: 'x_delta',
    [`field_${i}`]: i,
  })),
  messagesDeltas('pieces of a call', { type: 'tool_use', id: 't', name: 'f', input: {} }, (i) => ({
    type: 'input_json_delta',
    partial_json: i === 0 ? '{"a":"}' : '}',
  })),
  messages('fields of the message', (n) =>
    times(n, (i) => ({ type: 'message_delta', delta: { [`field_${i}`]: i }, usage: { output_tokens: i } })),
  ),
  messages('counts of usage with fields', (n) => [
    {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn' },
      usage: {
        output_tokens: 1,
        iterations: times(10, () => ({ type: 'compaction', input_tokens: 1 })),
        ...Object.fromEntries(times(n, (i) => [`u${i}`, i])),
      },
    },
    ...times(n, (i) => ({ type: 'message_delta', delta: {}, usage: { output_tokens: i } })),
  ]),
  messages('blocks that are open at once', (n) => [
    ...times(n, (index) => ({
      type: 'content_block_start',
      index,
      content_block: { type: 'tool_use', id: `t${index}`, name: 'f', input: {} },
    })),
    ...times(n, (index) => ({
      type: 'content_block_delta',
      index,
      delta: { type: 'input_json_delta', partial_json: '{}' },
    })),
  ]),
];

// ---------------------------------------------------------------- openai-responses

const responsesUsage = { input_tokens: 3, output_tokens: 5, total_tokens: 8 };
const responseOf = (output: JsonValue[]): JsonObject => ({
  id: 'resp',
  object: 'response',
  status: 'completed',
  model: 'm',
  output,
  usage: responsesUsage,
});

function responses(parts: string, events: (n: number) => JsonObject[], output?: (n: number) => JsonValue[]): Flood {
  return {
    wire: 'openai-responses',
    parts,
    stream: (n) =>
      frames([
        { type: 'response.created', response: { id: 'resp', status: 'in_progress', output: [] } },
        ...events(n),
        { type: 'response.completed', response: responseOf(output?.(n) ?? []) },
      ]),
    ...(output === undefined ? {} : { whole: (n) => responseOf(output(n)) }),
  };
}

function responsesItems(parts: string, item: (i: number) => JsonObject): Flood {
  return responses(
    parts,
    (n) =>
      times(n, (outputIndex): JsonObject[] => [
        { type: 'response.output_item.added', output_index: outputIndex, item: item(outputIndex) },
        { type: 'response.output_item.done', output_index: outputIndex, item: item(outputIndex) },
      ]).flat(),
    (n) => times(n, item),
  );
}

const responsesAnnotation = (i: number): JsonObject => ({
  type: 'url_citation',
  url: `${URL}${i}`,
  title: 't',
  start_index: 0,
  end_index: 1,
});
const responsesText = (i: number, annotations: JsonValue[] = []): JsonObject => ({
  type: 'message',
  id: `msg_${i}`,
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'a', annotations }],
});
const responsesFloods: Flood[] = [
  responsesItems('calls', (i) => ({
    type: 'function_call',
    id: `fc_${i}`,
    call_id: `call_${i}`,
    name: 'f',
    arguments: '{}',
  })),
  responsesItems('messages', (i) => responsesText(i)),
  responsesItems('messages without ids', () => ({
    type: 'message',
    role: 'assistant',
    content: [{ type: 'output_text', text: 'a' }],
  })),
  responsesItems('cited messages', (i) => responsesText(i, [responsesAnnotation(i)])),
  responsesItems('reasoning', (i) => ({
    type: 'reasoning',
    id: `rs_${i}`,
    summary: [{ type: 'summary_text', text: 'a' }],
    encrypted_content: 'e',
  })),
  responsesItems('reasoning without ids', (i) => ({
    type: 'reasoning',
    [`field_${i}`]: i,
    summary: [{ type: 'summary_text', text: 'a' }],
  })),
  responsesItems('items of its own', (i) => ({
    type: 'web_search_call',
    id: `ws_${i}`,
    status: 'completed',
    action: { type: 'search', query: 'q' },
  })),
  responsesItems('pictures', (i) => ({
    type: 'image_generation_call',
    id: `ig_${i}`,
    status: 'completed',
    result: 'QQ==',
  })),
  responses(
    'annotations of one text',
    (n) => [
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { type: 'message', id: 'msg', role: 'assistant', content: [] },
      },
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'a' },
      ...times(n, (i) => ({
        type: 'response.output_text.annotation.added',
        output_index: 0,
        content_index: 0,
        annotation_index: i,
        annotation: responsesAnnotation(i),
      })),
    ],
    (n) => [responsesText(0, times(n, responsesAnnotation))],
  ),
  responses(
    'parts of one message with many fields',
    () => [],
    (n) => [
      {
        ...responsesText(0),
        ...Object.fromEntries(times(n, (i) => [`field_${i}`, i])),
        content: times(n, (i) => ({ type: 'output_text', text: 'a', annotations: [], [`own_${i}`]: i })),
      },
    ],
  ),
  responses(
    'parts of one summary',
    (n) => [
      { type: 'response.output_item.added', output_index: 0, item: { type: 'reasoning', id: 'rs', summary: [] } },
      ...times(n, (i) => ({
        type: 'response.reasoning_summary_text.delta',
        output_index: 0,
        summary_index: i,
        delta: 'a',
      })),
    ],
    (n) => [{ type: 'reasoning', id: 'rs', summary: times(n, () => ({ type: 'summary_text', text: 'a' })) }],
  ),
  responses('calls that are open at once', (n) => [
    ...times(n, (outputIndex) => ({
      type: 'response.output_item.added',
      output_index: outputIndex,
      item: {
        type: 'function_call',
        id: `fc_${outputIndex}`,
        call_id: `call_${outputIndex}`,
        name: 'f',
        arguments: '',
      },
    })),
    ...times(n, (outputIndex) => ({
      type: 'response.function_call_arguments.delta',
      output_index: outputIndex,
      delta: '{}',
    })),
    ...times(n, (outputIndex) => ({
      type: 'response.output_item.done',
      output_index: outputIndex,
      item: {
        type: 'function_call',
        id: `fc_${outputIndex}`,
        call_id: `call_${outputIndex}`,
        name: 'f',
        arguments: '{}',
      },
    })),
  ]),
];

// ---------------------------------------------------------------- gemini-generate-content

const geminiUsage = (i: number): JsonObject => ({
  promptTokenCount: 3,
  candidatesTokenCount: i + 1,
  totalTokenCount: i + 4,
});
const geminiEvent = (parts: JsonValue[], more: JsonObject = {}, i = 0): JsonObject => ({
  responseId: 'r',
  candidates: [{ content: { role: 'model', parts }, ...more }],
  usageMetadata: geminiUsage(i),
});
const geminiEnd = (more: JsonObject = {}): JsonObject => geminiEvent([], { finishReason: 'STOP', ...more });

function gemini(parts: string, events: (n: number) => JsonObject[], whole?: (n: number) => JsonObject): Flood {
  return {
    wire: 'gemini-generate-content',
    parts,
    stream: (n) => frames(events(n)),
    ...(whole === undefined ? {} : { whole }),
  };
}

function geminiParts(parts: string, part: (i: number) => JsonObject): Flood {
  return gemini(
    parts,
    (n) => [...times(n, (i) => geminiEvent([part(i)], {}, i)), geminiEnd()],
    (n) => geminiEvent(times(n, part), { finishReason: 'STOP' }),
  );
}

const grounded = (n: number): JsonObject => ({
  groundingMetadata: {
    groundingChunks: times(n, (i) => ({ web: { uri: `${URL}${i}`, title: 't' } })),
    groundingSupports: times(n, (i) => ({
      segment: { startIndex: i, endIndex: 2 * n, ...(i % 2 === 0 ? {} : { text: 'éé' }) },
      groundingChunkIndices: [i, 1e9, -1, 0.5],
    })),
    webSearchQueries: times(n, (i) => `q${i}`),
  },
});
const geminiFloods: Flood[] = [
  geminiParts('calls', (i) => ({ functionCall: { id: `c${i}`, name: 'f', args: {} } })),
  geminiParts('thoughts with signatures', (i) => ({ text: 'a', thought: true, thoughtSignature: `c2ln${i}` })),
  geminiParts('texts with signatures', (i) => ({ text: 'a', thoughtSignature: `c2ln${i}` })),
  geminiParts('pictures', () => ({ inlineData: { mimeType: 'image/png', data: 'QQ==' } })),
  geminiParts('sounds', () => ({ inlineData: { mimeType: 'audio/L16', data: 'QQ==' } })),
  geminiParts('blocks of its own', (i) => ({ executableCode: { language: 'PYTHON', code: `${i}` } })),
  gemini(
    'grounds',
    (n) => [geminiEvent([{ text: 'é'.repeat(n) }]), geminiEnd(grounded(n))],
    (n) => geminiEvent([{ text: 'é'.repeat(n) }], { finishReason: 'STOP', ...grounded(n) }),
  ),
  gemini('queries, a few in each event', (n) => [
    ...times(n, (i) =>
      geminiEvent([{ text: 'a' }], { groundingMetadata: { webSearchQueries: [`q${i}`], [`g${i}`]: i } }, i),
    ),
    geminiEnd(),
  ]),
  gemini('fields of the answer', (n) => [
    ...times(n, (i) => ({ ...geminiEvent([{ text: 'a' }], { [`c${i}`]: i }, i), [`r${i}`]: i })),
    geminiEnd(),
  ]),
  gemini('pieces of arguments', (n) => [
    geminiEvent([{ functionCall: { name: 'f', willContinue: true } }]),
    ...times(n, (i) =>
      geminiEvent(
        [
          {
            functionCall: {
              willContinue: true,
              partialArgs: [
                { jsonPath: `$.a[${i}]`, stringValue: 'a' },
                { jsonPath: '$.b', stringValue: 'a' },
              ],
            },
          },
        ],
        {},
        i,
      ),
    ),
    geminiEvent([{ functionCall: {} }]),
    geminiEnd(),
  ]),
  gemini('token probabilities', (n) => [
    ...times(n, (i) =>
      geminiEvent([{ text: 'a' }], { logprobsResult: { chosenCandidates: [{ token: 'a', logProbability: -1 }] } }, i),
    ),
    geminiEnd(),
  ]),
];

// ---------------------------------------------------------------- bedrock-converse

const converseEnd: FloodEvent[] = [
  ['messageStop', { stopReason: 'end_turn' }],
  ['metadata', { usage: { inputTokens: 3, outputTokens: 5, totalTokens: 8 } }],
];

function converse(parts: string, events: (n: number) => FloodEvent[], content?: (n: number) => JsonValue[]): Flood {
  return {
    wire: 'bedrock-converse',
    parts,
    stream: (n) => frames([['messageStart', { role: 'assistant' }], ...events(n), ...converseEnd]),
    ...(content === undefined
      ? {}
      : {
          whole: (n) => ({
            output: { message: { role: 'assistant', content: content(n) } },
            stopReason: 'end_turn',
            usage: { inputTokens: 3, outputTokens: 5, totalTokens: 8 },
          }),
        }),
  };
}

const converseDelta = (contentBlockIndex: number, delta: JsonObject): FloodEvent => [
  'contentBlockDelta',
  { contentBlockIndex, delta },
];
const converseStop = (contentBlockIndex: number): FloodEvent => ['contentBlockStop', { contentBlockIndex }];
const converseCitation = (i: number): JsonObject => ({
  title: 't',
  location: { web: { url: `${URL}${i}` } },
  sourceContent: [{ text: 'c' }],
});
const converseFloods: Flood[] = [
  converse(
    'calls',
    (n) =>
      times(n, (i): FloodEvent[] => [
        ['contentBlockStart', { contentBlockIndex: i, start: { toolUse: { toolUseId: `t${i}`, name: 'f' } } }],
        converseStop(i),
      ]).flat(),
    (n) => times(n, (i) => ({ toolUse: { toolUseId: `t${i}`, name: 'f', input: {} } })),
  ),
  converse(
    'texts',
    (n) => times(n, (i): FloodEvent[] => [converseDelta(i, { text: 'a' }), converseStop(i)]).flat(),
    (n) => times(n, () => ({ text: 'a' })),
  ),
  converse(
    'citations of one text',
    (n) => [
      converseDelta(0, { text: 'a' }),
      ...times(n, (i) => converseDelta(0, { citation: converseCitation(i) })),
      converseStop(0),
    ],
    (n) => [{ citationsContent: { content: [{ text: 'a' }], citations: times(n, converseCitation) } }],
  ),
  converse(
    'cited texts',
    (n) =>
      times(n, (i): FloodEvent[] => [
        converseDelta(i, { text: 'a', citation: converseCitation(i) }),
        converseStop(i),
      ]).flat(),
    (n) => times(n, (i) => ({ citationsContent: { content: [{ text: 'a' }], citations: [converseCitation(i)] } })),
  ),
  converse(
    'thoughts',
    (n) =>
      times(n, (i): FloodEvent[] => [
        converseDelta(i, { reasoningContent: { text: 'a' } }),
        converseDelta(i, { reasoningContent: { signature: 'c2ln' } }),
        converseStop(i),
      ]).flat(),
    (n) => times(n, () => ({ reasoningContent: { reasoningText: { text: 'a', signature: 'c2ln' } } })),
  ),
  converse(
    'pieces of a picture',
    (n) => [
      ['contentBlockStart', { contentBlockIndex: 0, start: { image: { format: 'png' } } }],
      ...times(n, () => converseDelta(0, { image: { source: { bytes: 'QQ==' } } })),
      converseStop(0),
    ],
    (n) => times(n, () => ({ image: { format: 'png', source: { bytes: 'QQ==' } } })),
  ),
  converse('blocks that are open at once', (n) => [
    ...times(
      n,
      (i): FloodEvent => [
        'contentBlockStart',
        { contentBlockIndex: i, start: { toolUse: { toolUseId: `t${i}`, name: 'f' } } },
      ],
    ),
    ...times(n, (i) => converseDelta(i, { toolUse: { input: '{}' } })),
  ]),
];

// ---------------------------------------------------------------- cohere-chat

const cohereEnd: JsonObject = {
  type: 'message-end',
  delta: { finish_reason: 'COMPLETE', usage: { tokens: { input_tokens: 3, output_tokens: 5 } } },
};

function cohere(parts: string, events: (n: number) => JsonObject[], message?: (n: number) => JsonObject): Flood {
  return {
    wire: 'cohere-chat',
    parts,
    stream: (n) => frames([{ type: 'message-start', id: 'c' }, ...events(n), cohereEnd]),
    ...(message === undefined
      ? {}
      : {
          whole: (n) => ({
            id: 'c',
            finish_reason: 'COMPLETE',
            message: { role: 'assistant', ...message(n) },
            usage: { tokens: { input_tokens: 3, output_tokens: 5 } },
          }),
        }),
  };
}

const cohereCitation = (i: number, contentIndex = 0): JsonObject => ({
  start: 0,
  end: 1,
  text: 'a',
  type: 'TEXT_CONTENT',
  content_index: contentIndex,
  sources: [{ type: 'document', document: { url: `${URL}${i}`, title: 't' } }],
});
const cohereText = (index: number, content: JsonObject): JsonObject => ({
  type: 'content-delta',
  index,
  delta: { message: { content } },
});
const cohereFloods: Flood[] = [
  cohere(
    'calls',
    (n) =>
      times(n, (index): JsonObject[] => [
        {
          type: 'tool-call-start',
          index,
          delta: {
            message: { tool_calls: { id: `t${index}`, type: 'function', function: { name: 'f', arguments: '{}' } } },
          },
        },
        { type: 'tool-call-end', index },
      ]).flat(),
    (n) => ({
      tool_calls: times(n, (i) => ({ id: `t${i}`, type: 'function', function: { name: 'f', arguments: '{}' } })),
    }),
  ),
  cohere(
    'texts, each cited',
    (n) =>
      times(n, (i) => [
        cohereText(i, { text: 'a' }),
        { type: 'citation-start', index: i, delta: { message: { citations: cohereCitation(i, i) } } },
      ]).flat(),
    (n) => ({
      content: times(n, () => ({ type: 'text', text: 'a' })),
      citations: times(n, (i) => cohereCitation(i, i)),
    }),
  ),
  cohere(
    'citations of one text',
    (n) => [
      cohereText(0, { text: 'a' }),
      ...times(n, (i) => ({ type: 'citation-start', index: i, delta: { message: { citations: cohereCitation(i) } } })),
    ],
    (n) => ({ content: [{ type: 'text', text: 'a' }], citations: times(n, (i) => cohereCitation(i)) }),
  ),
  cohere(
    'thoughts between texts',
    (n) => times(n, (i) => cohereText(i, i % 2 === 0 ? { text: 'a' } : { thinking: 'a' })),
    (n) => ({
      content: times(n, (i) => (i % 2 === 0 ? { type: 'text', text: 'a' } : { type: 'thinking', thinking: 'a' })),
    }),
  ),
];

/** Every kind of part of every wire. */
export const floods: readonly Flood[] = [
  ...chatFloods,
  ...messagesFloods,
  ...responsesFloods,
  ...geminiFloods,
  ...converseFloods,
  ...cohereFloods,
];
