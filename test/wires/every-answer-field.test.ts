/**
 * The origin of every field, event and block of answers. The compiler ensures that the lists in `fields/answers.ts`
 * have exactly the names of the official types; here each row is tested: members of answers of any wire, only of the
 * API's own wire, or of none.
 */
import { describe, expect, test } from 'vitest';
import { ChatStreamEncoder, encodeCompletion } from '../../src/api/chat/encode.ts';
import { createMessagesStream } from '../../src/api/messages/stream.ts';
import { declaredTools } from '../../src/api/responses/declared-tools.ts';
import { createResponseObject } from '../../src/api/responses/response-object.ts';
import { createResponseStream } from '../../src/api/responses/stream.ts';
import type { Served, StreamEnd, WholeAnswer } from '../../src/inference/events.ts';
import { NO_USAGE } from '../../src/inference/money/answer-usage.ts';
import { createEnvelopes } from '../../src/inference/reasoning/envelope.ts';
import { decodeTools } from '../../src/providers/openai-responses/declared.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatChunk, Slot, TokenClasses, Wire } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import * as lists from '../fields/answers.ts';
import { checkChatStream } from '../grammar/chat.ts';
import { checkMessagesStream } from '../grammar/messages.ts';
import { array, object } from '../readings/recordings.ts';

const GENERATION = `gen-1700000000-${'a'.repeat(20)}`;
const envelope = createEnvelopes('secret')('org');
const served = { model: 'a/b', provider: 'p' } as unknown as Served;
const classes: TokenClasses = {
  in_uncached: 1,
  in_cache_read: 1,
  in_cache_write_5m: 1,
  out_text: 1,
  out_reasoning: 1,
  counts: { web_search: 1 },
};
const end = { usage: NO_USAGE, classes, metadata: undefined } as unknown as StreamEnd;

/** An answer with one block after the other. */
function answer(
  wire: Wire,
  blocks: readonly ChatChunk[],
  ending: Partial<ChatChunk>,
  rest: JsonObject = {},
): ChatChunk[] {
  return [
    {
      delta: { role: 'assistant' },
      service_tier: 'default',
      system_fingerprint: 'fp',
      ext: { response: { wire, rest } },
    },
    ...blocks,
    { delta: {}, finish_reason: 'stop', native_finish_reason: 'x', ...ending },
    { delta: {}, ext: { response: { wire, rest, usage: classes } } },
  ];
}

function block(n: number, kind: Slot['kind'], chunk: ChatChunk, opening: object = {}): ChatChunk {
  return { ...chunk, ext: { slot: { n, open: { kind, ...opening }, ...chunk.ext?.slot, close: {} } } };
}

const FORMAT = 'google-gemini-v1';
const call = (name: string, index: number) => ({
  delta: {
    tool_calls: [
      { index, id: `call_${index}`, type: 'function' as const, function: { name, arguments: '{"input":"x"}' } },
    ],
  },
});
const citation = {
  type: 'url_citation' as const,
  url_citation: { url: 'https://a.example', title: 't', content: 'c', start_index: 0, end_index: 1 },
};
const ANYWHERE: Wire = 'gemini-generate-content';

/** Answers of a wire that is no client API's own. */
const turns: readonly ChatChunk[][] = [
  answer(
    ANYWHERE,
    [
      block(0, 'reasoning', {
        delta: { reasoning_details: [{ type: 'reasoning.text', text: 'T', signature: 'S', format: FORMAT, index: 0 }] },
      }),
      block(1, 'text', {
        delta: { content: 'A', annotations: [citation] },
        logprobs: { content: [{ token: 'A', logprob: -1, bytes: null, top_logprobs: [] }] },
      }),
      block(2, 'call', call('f', 0)),
      block(3, 'call', call('custom', 1)),
    ],
    { finish_reason: 'tool_calls' },
  ),
  answer(
    ANYWHERE,
    [
      block(0, 'reasoning', {
        delta: {
          reasoning_details: [
            { type: 'reasoning.summary', summary: 'T', format: 'openai-responses-v1', index: 0 },
            { type: 'reasoning.encrypted', data: 'E', format: 'openai-responses-v1', index: 1 },
          ],
        },
      }),
      block(1, 'reasoning', {
        delta: { reasoning_details: [{ type: 'reasoning.encrypted', data: 'E', format: FORMAT, index: 2 }] },
      }),
      block(2, 'refusal', { delta: { refusal: 'No.' } }),
    ],
    { finish_reason: 'content_filter' },
  ),
  answer(
    ANYWHERE,
    [
      block(0, 'image', {
        delta: { images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }] },
      }),
      block(1, 'audio', { delta: { audio: { id: 'audio_1', data: 'AA==' } } }),
      block(2, 'text', { delta: { content: 'A' } }),
    ],
    { finish_reason: 'length' },
  ),
  answer(ANYWHERE, [block(0, 'text', { delta: { content: 'A' } })], {
    ext: { response: { wire: ANYWHERE, stopSequence: 'END' } },
  }),
  answer(ANYWHERE, [block(0, 'text', { delta: { content: 'A' } })], {}),
  answer(ANYWHERE, [block(0, 'text', { delta: { content: 'A' } })], {
    finish_reason: 'error',
    error: { code: 502, message: 'It broke off' },
  }),
];

const namesOf = (rows: Record<string, lists.AnswerRow>, wanted: lists.AnswerRow) =>
  Object.entries(rows).flatMap(([name, row]) => (row === wanted ? [name] : []));

/** Blocks of the provider's own, each with all members that its wire may send. */
function natives(wire: Wire, types: readonly string[], raws: readonly JsonObject[]): ChatChunk[] {
  return types.flatMap((type, n): ChatChunk[] => {
    const native = { type: 'native' as const, wire, block: { type, id: `item_${n}` } };
    return [
      { delta: {}, ext: { slot: { n, open: { kind: 'native', native } } } },
      ...raws.map((raw): ChatChunk => ({ delta: {}, ext: { slot: { n, raw } } })),
      { delta: {}, ext: { slot: { n, close: { native } } } },
    ];
  });
}

const filled = (names: readonly string[]): JsonObject =>
  Object.fromEntries(names.map((name) => [name, { filled: true }]));

const ownEvents = namesOf(lists.responseEvents, 'own').map((type) => ({ type }));
const pictureEvents = ownEvents.filter(({ type }) => type.startsWith('response.image_generation_call.'));
const picture = { kind: 'image' as const, ext: { wire: 'openai-responses' as const, rest: { id: 'ig_1' } } };
/** An answer of each client API's own wire. */
const own = {
  responses: [
    answer(
      'openai-responses',
      [
        ...natives(
          'openai-responses',
          namesOf(lists.responseItems, 'own'),
          ownEvents.filter((one) => !pictureEvents.includes(one)),
        ),
        { delta: {}, ext: { slot: { n: 90, open: picture } } },
        ...pictureEvents.map((raw): ChatChunk => ({ delta: {}, ext: { slot: { n: 90, raw } } })),
        { delta: { images: turns[2]![1]!.delta.images! }, ext: { slot: { n: 90, close: {} } } },
      ],
      {},
      filled(namesOf(lists.responseFields, 'own')),
    ),
  ],
  messages: ['pause_turn', 'compaction', 'model_context_window_exceeded'].map((nativeFinishReason) =>
    answer(
      'anthropic-messages',
      natives('anthropic-messages', namesOf(lists.messageBlocks, 'own'), [{ type: 'compaction_delta', content: 'x' }]),
      { native_finish_reason: nativeFinishReason },
      { ...filled(namesOf(lists.messageFields, 'own')), usage: filled(namesOf(lists.messageUsage, 'own')) },
    ),
  ),
};

function eventsOf(text: string): JsonObject[] {
  return [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json]) => JSON.parse(json!) as JsonObject);
}

function responseEventsOf(chunks: readonly ChatChunk[], body: JsonObject = {}): JsonObject[] {
  const stream = createResponseStream({
    generation_id: GENERATION,
    response: createResponseObject({ id: GENERATION, created_at: 1, model: 'a/b' }, body),
    tools: declaredTools(decodeTools([{ type: 'custom', name: 'custom' }])),
    envelope,
    hide_reasoning: false,
    wants_summary: false,
    shows_logprobs: true,
    now: () => 2,
  });
  return eventsOf(stream.open(served) + stream.chunks(chunks) + stream.end(end));
}

function messagesOf(chunks: readonly ChatChunk[]) {
  const stream = createMessagesStream({ id: GENERATION, envelope, reasoning: 'shown' });
  return checkMessagesStream(stream.open(served) + stream.chunks(chunks) + stream.end(end));
}

const chatEnvelope = { id: GENERATION, created: 1, model: 'a/b', text_form: false, hide_reasoning: false };
function chatChunksOf(chunks: readonly ChatChunk[]): JsonObject[] {
  const stream = new ChatStreamEncoder(chatEnvelope);
  return checkChatStream(stream.open(served) + stream.chunks(chunks) + stream.end(end));
}
function completionOf(chunks: readonly ChatChunk[]): JsonObject {
  const outcome = { completion: accumulate(chunks, 1), served, classes, usage: NO_USAGE, metadata: undefined };
  return JSON.parse(encodeCompletion(outcome as unknown as WholeAnswer, chatEnvelope)) as JsonObject;
}

const filledOf = (objects: readonly JsonObject[]) =>
  new Set(objects.flatMap((one) => Object.keys(one).filter((name) => one[name] !== null && one[name] !== undefined)));
const typesOf = (objects: readonly JsonObject[]) => new Set(objects.map(({ type }) => String(type)));

const responseStreams = turns.map((chunks) => responseEventsOf(chunks));
const ownResponseStreams = own.responses.map((chunks) => responseEventsOf(chunks));
const lastOf = (streams: readonly JsonObject[][]) => streams.map((events) => object(events.at(-1)!['response']));
const itemsOf = (streams: readonly JsonObject[][]) =>
  lastOf(streams).flatMap(({ output }) => array(output).map(object));

const messageStreams = turns.map(messagesOf);
const ownMessageStreams = own.messages.map(messagesOf);
type Checked = ReturnType<typeof messagesOf>;
const wholes = (streams: readonly Checked[]): JsonObject[] =>
  streams.map(({ message }) => message).filter((message) => message !== undefined);
const blocksOf = (streams: readonly Checked[]) => wholes(streams).flatMap(({ content }) => array(content).map(object));
const deltasOf = (streams: readonly Checked[]) =>
  streams.flatMap(({ events }) =>
    events.flatMap(({ type, delta }) => (type === 'content_block_delta' ? [object(delta)] : [])),
  );
const stopsOf = (streams: readonly Checked[]) => new Set(wholes(streams).map(({ stop_reason }) => String(stop_reason)));

const completions = turns.slice(0, -1).map(completionOf);
const chunks = turns.flatMap(chatChunksOf);
const choicesOf = (objects: readonly JsonObject[]) => objects.flatMap(({ choices }) => array(choices).map(object));

const cases: Record<string, [rows: Record<string, lists.AnswerRow>, any: Set<string>, own?: Set<string>]> = {
  'a response': [lists.responseFields, filledOf(lastOf(responseStreams)), filledOf(lastOf(ownResponseStreams))],
  "a response's usage": [lists.responseUsage, filledOf(lastOf(responseStreams).map(({ usage }) => object(usage)))],
  "a response's items": [lists.responseItems, typesOf(itemsOf(responseStreams)), typesOf(itemsOf(ownResponseStreams))],
  "a response's events": [lists.responseEvents, typesOf(responseStreams.flat()), typesOf(ownResponseStreams.flat())],
  'a message': [lists.messageFields, filledOf(wholes(messageStreams)), filledOf(wholes(ownMessageStreams))],
  "a message's usage": [
    lists.messageUsage,
    filledOf(wholes(messageStreams).map(({ usage }) => object(usage))),
    filledOf(wholes(ownMessageStreams).map(({ usage }) => object(usage))),
  ],
  "a message's blocks": [lists.messageBlocks, typesOf(blocksOf(messageStreams)), typesOf(blocksOf(ownMessageStreams))],
  "a message's events": [
    lists.messageEvents,
    typesOf(messageStreams.flatMap(({ events }) => events)),
    typesOf(ownMessageStreams.flatMap(({ events }) => events)),
  ],
  "a message's deltas": [lists.messageDeltas, typesOf(deltasOf(messageStreams)), typesOf(deltasOf(ownMessageStreams))],
  "a message's stop reasons": [lists.stopReasons, stopsOf(messageStreams), stopsOf(ownMessageStreams)],
  'a chat completion': [lists.chatFields, filledOf(completions)],
  "a chat completion's choice": [lists.chatChoice, filledOf(choicesOf(completions))],
  "a chat completion's message": [
    lists.chatMessage,
    filledOf(choicesOf(completions).map(({ message }) => object(message))),
  ],
  "a chat completion's usage": [lists.chatUsage, filledOf(completions.map(({ usage }) => object(usage)))],
  'a chat chunk': [lists.chatChunk, filledOf(chunks)],
  "a chat chunk's delta": [lists.chatDelta, filledOf(choicesOf(chunks).map(({ delta }) => object(delta)))],
};

describe.each(Object.entries(cases))('%s', (_name, [rows, anywhere, there = new Set<string>()]) => {
  test.each(Object.entries(rows))('%s: %s', (name, row) => {
    if (row === 'request') return;
    expect(anywhere.has(name)).toBe(row === 'any');
    if (row !== 'any') expect(there.has(name)).toBe(row === 'own');
  });
});

const textFields: JsonObject = {
  background: false,
  instructions: 'Be brief.',
  max_output_tokens: 100,
  max_tool_calls: 3,
  metadata: { a: 'b' },
  parallel_tool_calls: false,
  previous_response_id: 'gen-0',
  prompt_cache_key: 'k',
  reasoning: { effort: 'low', summary: 'auto' },
  safety_identifier: 's',
  temperature: 0.5,
  text: { format: { type: 'json_object' }, verbosity: 'low' },
  tool_choice: 'none',
  tools: [{ type: 'function', name: 'f', parameters: {}, strict: false }],
  top_logprobs: 2,
  top_p: 0.5,
  truncation: 'auto',
  user: 'u',
};

describe('repeated fields of a response', () => {
  test.each(namesOf(lists.responseFields, 'request'))('%s', (name) => {
    expect(Object.hasOwn(textFields, name)).toBe(true);
    for (const event of responseEventsOf(turns[4]!, textFields)) {
      if (event['response'] !== undefined) expect(object(event['response'])[name]).toEqual(textFields[name]);
    }
  });
});
