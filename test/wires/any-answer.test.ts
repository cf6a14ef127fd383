/**
 * Any answer that a decoder may make, for clients of each API: a stream accumulates to the whole answer, wherever it is
 * cut and however its blocks alternate; a turn that is sent back equals the original; and no internal data gets out.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ChatStreamEncoder, encodeCompletion } from '../../src/api/chat/encode.ts';
import { encodeMessage } from '../../src/api/messages/encode.ts';
import { type MessagesRequestBody, messagesRequest } from '../../src/api/messages/parse-request.ts';
import { createMessagesStream } from '../../src/api/messages/stream.ts';
import { declaredTools } from '../../src/api/responses/declared-tools.ts';
import { type ResponseContext, responseParts } from '../../src/api/responses/encode.ts';
import { type ResponsesRequestBody, responsesRequest } from '../../src/api/responses/parse-request.ts';
import { createResponseObject } from '../../src/api/responses/response-object.ts';
import { createResponseStream } from '../../src/api/responses/stream.ts';
import { joinParts } from '../../src/api/shared/json-parts.ts';
import type { Served, StreamEnd, WholeAnswer } from '../../src/inference/events.ts';
import { NO_USAGE } from '../../src/inference/money/answer-usage.ts';
import { createEnvelopes } from '../../src/inference/reasoning/envelope.ts';
import { isOpaque } from '../../src/inference/reasoning/turn-state.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatChunk, Message, ReasoningDetail, Slot, TokenClasses, Wire } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { checkChatStream } from '../grammar/chat.ts';
import { checkMessagesStream } from '../grammar/messages.ts';
import { checkResponsesStream } from '../grammar/responses.ts';
import { readAnswer, readStream } from '../readings/client.ts';
import { array, object } from '../readings/recordings.ts';
import { inTier } from '../tier.ts';

const GENERATION = `gen-1700000000-${'a'.repeat(20)}`;
const envelope = createEnvelopes('secret')('org');
const served = { model: 'maker/model', provider: 'p' } as unknown as Served;
const classes: TokenClasses = { in_uncached: 3, out_text: 5 };
const end = { usage: NO_USAGE, classes, metadata: undefined } as unknown as StreamEnd;
/** A text that no client may ever see. */
const INSIDE = 'this is inside';

// ---------------------------------------------------------------- any turn

interface Block {
  kind: Slot['kind'];
  chunks: ChatChunk[];
}

const WIRES: readonly Wire[] = [
  'anthropic-messages',
  'openai-responses',
  'gemini-generate-content',
  'bedrock-converse',
];
const piece = fc.constantFrom('', 'A', ' b', '\n\n', '👋', '"', '</think>', 'é\\');
const pieces = fc.array(piece, { maxLength: 4 });
const FORMATS = ['anthropic-claude-v1', 'google-gemini-v1', 'openai-responses-v1', 'xai-responses-v1', 'unknown'];
const chunkOf = (text: string, kind: Slot['kind']): ChatChunk => {
  if (kind === 'refusal') return { delta: { refusal: text } };
  return { delta: { content: text } };
};

const text = fc
  .record({ kind: fc.constantFrom<Slot['kind'][]>('text', 'text', 'refusal'), pieces })
  .map(({ kind, pieces }): Block => ({ kind, chunks: pieces.map((one) => chunkOf(one, kind)) }));
/** A detail: its pieces, then its opaque data. `index` is set when the turn is assembled. */
const detail = fc.record({
  type: fc.constantFrom('text', 'summary', 'encrypted'),
  format: fc.constantFrom(...FORMATS),
  pieces,
  opaque: fc.option(fc.constantFrom('c2lnbmF0dXJl', 'gw1.notours'), { nil: undefined }),
});
const reasoning = fc.array(detail, { minLength: 1, maxLength: 3 }).map(
  (details): Block => ({
    kind: 'reasoning',
    chunks: details.flatMap(({ type, format, pieces, opaque }, index): ChatChunk[] => {
      const of = (one: object): ChatChunk => ({
        delta: { reasoning_details: [{ ...one, format, index } as ReasoningDetail] },
      });
      if (type === 'encrypted') return [of({ type: 'reasoning.encrypted', data: opaque ?? 'ZGF0YQ==', id: null })];
      if (type === 'summary') return pieces.map((summary) => of({ type: 'reasoning.summary', summary }));
      const signed =
        opaque === undefined || format.endsWith('responses-v1')
          ? []
          : [of({ type: 'reasoning.text', signature: opaque })];
      return [...pieces.map((one) => of({ type: 'reasoning.text', text: one })), ...signed];
    }),
  }),
);
const call = fc
  .record({
    name: fc.constantFrom('f', 'g-h'),
    cuts: fc.array(fc.nat(12), { maxLength: 3 }),
    value: fc.constantFrom({}, { a: '👋"' }, { b: [1, 2] }),
  })
  .map(({ name, cuts, value }): Block => {
    const json = JSON.stringify(value);
    const places = [0, ...cuts.filter((cut) => cut < json.length).sort((a, b) => a - b), json.length];
    const fragments = places.slice(1).map((to, at) => json.slice(places[at], to));
    return {
      kind: 'call',
      chunks: [
        { delta: { tool_calls: [{ index: 0, id: '', type: 'function', function: { name, arguments: '' } }] } },
        ...fragments.map(
          (part): ChatChunk => ({ delta: { tool_calls: [{ index: 0, function: { arguments: part } }] } }),
        ),
      ],
    };
  });
const native = fc.constant<Block>({ kind: 'native', chunks: [{ delta: {} }] });
const block = fc.oneof(
  { weight: 4, arbitrary: text },
  { weight: 3, arbitrary: reasoning },
  { weight: 3, arbitrary: call },
  { weight: 1, arbitrary: native },
);

/** The types of a wire's own blocks that its clients receive. */
const NATIVES: Partial<Record<Wire, JsonObject>> = {
  'anthropic-messages': { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
  'openai-responses': {
    type: 'web_search_call',
    id: 'ws_1',
    status: 'completed',
    action: { type: 'search', query: 'q' },
  },
};

const FOREIGN = { wire: 'cohere-chat' as const, rest: { secret: INSIDE } };

/** The blocks' chunks with numbered slots, calls and details, interleaved by `picks`; opened in order. */
function turn(wire: Wire, blocks: readonly Block[], picks: readonly number[]): ChatChunk[] {
  let calls = 0;
  let details = 0;
  const queues = blocks.map(({ kind, chunks }, n): ChatChunk[] => {
    const firstDetail = details;
    if (kind === 'reasoning') details += 3;
    const at = calls;
    if (kind === 'call') calls += 1;
    const block = { ...(NATIVES[wire] ?? { type: 'other' }), id: `native_${n}` };
    const open = {
      kind,
      ext: FOREIGN,
      ...(kind === 'native' ? { native: { type: 'native' as const, wire, block } } : {}),
    };
    const numbered = chunks.map(({ delta }): ChatChunk => {
      const { reasoning_details, tool_calls } = delta;
      if (reasoning_details !== undefined) {
        const moved = reasoning_details.map((one) => ({ ...one, index: firstDetail + (one.index ?? 0) }));
        return { delta: { reasoning_details: moved } };
      }
      if (tool_calls === undefined) return { delta };
      return {
        delta: {
          tool_calls: tool_calls.map((one) => ({ ...one, index: at, ...(one.id === '' ? { id: `call_${at}` } : {}) })),
        },
      };
    });
    const all = numbered.length === 0 ? [{ delta: {} }] : numbered;
    const last = { delta: {}, ext: { slot: { n, close: kind === 'native' ? { native: open.native! } : {} } } };
    return [
      ...all.map((chunk, i): ChatChunk => ({ ...chunk, ext: { slot: { n, ...(i === 0 ? { open } : {}) } } })),
      last,
    ];
  });
  const out: ChatChunk[] = [];
  let opened = 0;
  for (let step = 0; queues.some((queue) => queue.length > 0); step += 1) {
    const growing = queues.flatMap((queue, n) => (n <= opened && queue.length > 0 ? [n] : []));
    const n = growing[(picks[step % Math.max(picks.length, 1)] ?? 0) % growing.length]!;
    out.push(queues[n]!.shift()!);
    if (n === opened) opened += 1;
  }
  return out;
}

const answers = (picks: fc.Arbitrary<number[]>) =>
  fc
    .record({
      wire: fc.constantFrom(...WIRES),
      // A turn has one refusal at most.
      blocks: fc
        .array(block, { maxLength: 6 })
        .map((all) =>
          all.filter(({ kind }, n) => kind !== 'refusal' || all.findIndex((one) => one.kind === kind) === n),
        ),
      picks,
      cuts: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 5 }),
    })
    .map(({ wire, blocks, picks, cuts }) => {
      // Additions of a client API's own wire to an answer are shown to that API's clients.
      const response = { wire, rest: wire in NATIVES ? {} : { id: INSIDE, model: INSIDE, container: INSIDE } };
      const hasCall = blocks.some(({ kind }) => kind === 'call');
      const chunks: ChatChunk[] = [
        { delta: { role: 'assistant' }, ext: { response } },
        ...turn(wire, blocks, picks),
        {
          delta: {},
          finish_reason: hasCall ? 'tool_calls' : 'stop',
          native_finish_reason: hasCall ? 'tool_use' : 'end_turn',
        },
        { delta: {}, ext: { response: { usage: classes } } },
      ];
      return { wire, chunks, cuts };
    });

/** Blocks one after the other: the content for a client of chat in the order of its arrival. */
const inOrder = answers(fc.constant<number[]>([0]));
/** Interleaved blocks as well. */
const anything = answers(fc.oneof(fc.constant<number[]>([0]), fc.array(fc.nat(5), { minLength: 1, maxLength: 12 })));

/** In groups as they may arrive from a socket. */
function grouped(chunks: readonly ChatChunk[], cuts: readonly number[]): ChatChunk[][] {
  const groups: ChatChunk[][] = [];
  for (let at = 0, nth = 0; at < chunks.length; nth += 1) {
    const size = cuts[nth % cuts.length]!;
    groups.push(chunks.slice(at, at + size));
    at += size;
  }
  return groups;
}

// ---------------------------------------------------------------- answers for clients

const whole = (chunks: readonly ChatChunk[]) =>
  ({
    completion: accumulate(chunks, 1),
    served,
    classes,
    usage: NO_USAGE,
    metadata: undefined,
  }) as unknown as WholeAnswer;

const chatShown = { id: GENERATION, created: 1, model: 'a/b', text_form: false, hide_reasoning: false };
const messagesShown = { id: GENERATION, envelope, reasoning: 'shown' } as const;
function responseShown(): ResponseContext {
  return {
    generation_id: GENERATION,
    response: createResponseObject({ id: GENERATION, created_at: 1, model: 'a/b' }, {}),
    tools: declaredTools([]),
    envelope,
    hide_reasoning: false,
    wants_summary: false,
    shows_logprobs: false,
    now: () => 2,
  };
}

function streamed(
  encoder: {
    open(to: Served): string;
    chunks(group: ChatChunk[]): string | readonly string[];
    end(outcome: StreamEnd): string | readonly string[];
  },
  groups: readonly ChatChunk[][],
): string {
  return [encoder.open(served), ...groups.flatMap((group) => encoder.chunks(group)), encoder.end(end)].flat().join('');
}

const saysSomething = ({ text, summary, signature, data }: JsonObject) => Boolean(text || summary || signature || data);

/** A stream has no blank lines between details, and no empty details. */
const apart = (details: readonly JsonObject[]) => ({
  reasoning: '',
  details: details.filter(saysSomething).map((one) => (one['text'] === '' ? { ...one, text: undefined } : one)),
});

/** Envelopes by their content. */
function opened(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_name, member: unknown) => {
    if (typeof member !== 'string' || !member.startsWith('gw1.')) return member;
    return envelope
      .unwrap(member)!
      .map((one) => (one.type === 'reasoning.text' && !one.text ? { ...one, text: '' } : one));
  });
}

const RUNS = { numRuns: inTier(100, 400) };

test('a chat stream accumulates to the whole completion', () => {
  fc.assert(
    fc.property(inOrder, ({ chunks, cuts }) => {
      const text = streamed(new ChatStreamEncoder(chatShown), grouped(chunks, cuts));
      checkChatStream(text);
      const answer = encodeCompletion(whole(chunks), chatShown);
      const { usage: _, ...read } = readStream(text);
      const { usage: __, ...expected } = readAnswer(JSON.parse(answer) as JsonObject);
      expect({ ...read, ...apart(read.details) }).toEqual({ ...expected, ...apart(expected.details) });
      expect(text + answer).not.toContain(INSIDE);
    }),
    RUNS,
  );
});

test('a stream of the Messages API accumulates to the whole message', () => {
  fc.assert(
    fc.property(anything, ({ chunks, cuts }) => {
      const text = streamed(createMessagesStream(messagesShown), grouped(chunks, cuts));
      const answer = encodeMessage(whole(chunks), messagesShown);
      expect(opened(checkMessagesStream(text).message)).toEqual(opened(JSON.parse(answer)));
      expect(text + answer).not.toContain(INSIDE);
    }),
    RUNS,
  );
});

test('a stream of the Responses API accumulates to the whole response', () => {
  fc.assert(
    fc.property(anything, ({ chunks, cuts }) => {
      const text = streamed(createResponseStream(responseShown()), grouped(chunks, cuts));
      const answer = joinParts(responseParts(whole(chunks), responseShown()));
      const last = [...text.matchAll(/^data: (\{.*)$/gm)].at(-1)![1]!;
      checkResponsesStream(text);
      expect(opened((JSON.parse(last) as JsonObject)['response'])).toEqual(opened(JSON.parse(answer)));
      expect(text + answer).not.toContain(INSIDE);
    }),
    RUNS,
  );
});

// ---------------------------------------------------------------- turns that are sent back

const textOf = ({ content }: Message) =>
  typeof content === 'string'
    ? content
    : (content ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('');

/** The parts of a turn that must return through any client: text, calls, and data that only its maker can read. */
function kept(message: Message) {
  return {
    text: textOf(message),
    calls: (message.tool_calls ?? []).map(({ id, function: { name, arguments: json } }) => [
      id,
      name,
      JSON.parse(json),
    ]),
    opaque: (message.reasoning_details ?? []).filter(isOpaque).map((one) => [
      one.type,
      // Items of the Responses API do not name their provider.
      one.format?.endsWith('responses-v1') ? 'responses-v1' : one.format,
      one.type === 'reasoning.encrypted' ? one.data : one.type === 'reasoning.text' ? one.signature : '',
    ]),
  };
}

const withoutRefusals = anything.filter(({ chunks }) => chunks.every(({ delta }) => delta.refusal === undefined));

test('a turn can be sent back through a client of the Messages API', () => {
  fc.assert(
    fc.property(withoutRefusals, ({ chunks }) => {
      const { message } = whole(chunks).completion.choices[0];
      const answer = JSON.parse(encodeMessage(whole(chunks), messagesShown)) as JsonObject;
      const messages = [
        { role: 'user', content: 'Q' },
        { role: 'assistant', content: answer['content'] },
      ];
      const body = { model: 'a/b', max_tokens: 1, messages } as unknown as MessagesRequestBody;
      const back = messagesRequest(body, { envelope, betas: [] }).messages[1] ?? { role: 'assistant' };
      expect(kept(back)).toEqual(kept(message));
    }),
    RUNS,
  );
});

test('a turn can be sent back through a client of the Responses API', () => {
  fc.assert(
    fc.property(withoutRefusals, ({ chunks }) => {
      const { message } = whole(chunks).completion.choices[0];
      const answer = JSON.parse(joinParts(responseParts(whole(chunks), responseShown()))) as JsonObject;
      const input = [{ role: 'user', content: 'Q' }, ...array(answer['output']).map(object)];
      const request = responsesRequest({ model: 'a/b', input } as unknown as ResponsesRequestBody, { envelope });
      const back = request.messages[1] ?? { role: 'assistant' };
      expect(kept(back)).toEqual(kept(message));
    }),
    RUNS,
  );
});
