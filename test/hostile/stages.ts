/** The stages of an answer on its way from a decoder to a client. */
import { ChatStreamEncoder, encodeCompletion } from '../../src/api/chat/encode.ts';
import { createCompletionStream } from '../../src/api/completions/encode.ts';
import { encodeMessage } from '../../src/api/messages/encode.ts';
import { createMessagesStream } from '../../src/api/messages/stream.ts';
import { declaredTools } from '../../src/api/responses/declared-tools.ts';
import { type ResponseContext, responseParts } from '../../src/api/responses/encode.ts';
import { createResponseObject } from '../../src/api/responses/response-object.ts';
import { createResponseStream } from '../../src/api/responses/stream.ts';
import { joinParts } from '../../src/api/shared/json-parts.ts';
import { createAnswerFilter } from '../../src/guardrails/streams/answer-filter.ts';
import type { Finder } from '../../src/guardrails/streams/stream-filter.ts';
import { ShownText } from '../../src/inference/attempt/continuation.ts';
import type { Served, StreamEnd, WholeAnswer } from '../../src/inference/events.ts';
import { NO_USAGE } from '../../src/inference/money/answer-usage.ts';
import { AnswerMeter } from '../../src/inference/money/meter.ts';
import { OutputText } from '../../src/inference/observe/content.ts';
import { createEnvelopes } from '../../src/inference/reasoning/envelope.ts';
import { createCitationExtractor } from '../../src/inference/tools/citation-extractor.ts';
import type { DeclaredTools } from '../../src/inference/tools/declared-tools.ts';
import { ToolTurn } from '../../src/inference/tools/tool-turn.ts';
import { transformWhole } from '../../src/inference/transform.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import { chunksOf } from '../../src/schemas/chunks.ts';
import type { ChatChunk, ChatCompletion } from '../../src/schemas/inner.ts';

const GENERATION = `gen-1700000000-${'a'.repeat(20)}`;
const envelope = createEnvelopes('secret')('org');
const served: Served = { model: 'maker/model', provider: 'p' };
const end: StreamEnd = {
  type: 'end',
  usage: NO_USAGE,
  classes: { in_uncached: 3 },
  metadata: undefined,
  error: undefined,
};
const chatShown = { id: GENERATION, created: 1, model: 'a/b', text_form: false, hide_reasoning: false };
const messagesShown = { id: GENERATION, envelope, reasoning: 'shown' } as const;
const completionShown = {
  id: GENERATION,
  created: 1,
  model: 'a/b',
  hide_reasoning: false,
  has_logprobs: true,
  prompts: [{ generation_id: GENERATION, echo: '' }],
};
const responseShown = (): ResponseContext => ({
  generation_id: GENERATION,
  response: createResponseObject({ id: GENERATION, created_at: 1, model: 'a/b' }, {}),
  tools: declaredTools([]),
  envelope,
  hide_reasoning: false,
  wants_summary: true,
  shows_logprobs: true,
  now: () => 1,
});
const whole = (completion: ChatCompletion): WholeAnswer => ({
  completion,
  served,
  usage: NO_USAGE,
  classes: { in_uncached: 3 },
  metadata: undefined,
});

/** Replaces every accented letter, so that many replacements must be remembered. */
const finder: Finder = {
  context_chars: 16,
  find: (text) => [...text.matchAll(/é/g)].map(({ index }) => ({ start: index, end: index + 1, text: '[X]' })),
  heldFrom: (text) => text.length,
  settled() {},
};
const filterOptions = { finder, content_is_json: false, keeps_signatures: false, isOfTurn: () => false };

interface Encoder {
  open(served: Served): string;
  chunks(chunks: readonly ChatChunk[]): unknown;
  end(end: StreamEnd): string | readonly string[];
}

/** Each chunk by itself, as if each had been a read of its own. */
function streamed(encoder: Encoder, chunks: readonly ChatChunk[]): void {
  encoder.open(served);
  for (const chunk of chunks) encoder.chunks([chunk]);
  void encoder.end(end);
}

/** The stages that read a stream's chunks. */
export const streamStages: Readonly<Record<string, (chunks: readonly ChatChunk[]) => void>> = {
  accumulator: (chunks) => void accumulate(chunks, 0),
  meter(chunks) {
    const meter = new AnswerMeter();
    for (const chunk of chunks) {
      meter.chunk(chunk);
      meter.outputTokens();
    }
    meter.calledTools?.count(meter.finish_reason);
    meter.usage({ messages: [] });
  },
  log(chunks) {
    const output = new OutputText();
    for (const chunk of chunks) output.chunks([chunk]);
    output.result();
  },
  continuation(chunks) {
    const shown = new ShownText();
    for (const chunk of chunks) shown.add([chunk]);
  },
  filter(chunks) {
    const filter = createAnswerFilter(filterOptions);
    for (const chunk of chunks) filter.take([chunk]);
    filter.end();
  },
  citations(chunks) {
    const extractor = createCitationExtractor([{ url: 'https://a.example/0', title: 't', content: 'c' }]);
    for (const chunk of chunks) extractor.add([chunk]);
  },
  'tool loop'(chunks) {
    const turn = new ToolTurn({ byName: new Map() } as unknown as DeclaredTools);
    for (const chunk of chunks) turn.add([chunk]);
    turn.stepEnd();
    turn.finish(true);
    turn.withState(accumulate(chunks, 0));
  },
  'chat stream': (chunks) => streamed(new ChatStreamEncoder(chatShown), chunks),
  'completions stream'(chunks) {
    const stream = createCompletionStream(completionShown);
    stream.open(0, served);
    for (const chunk of chunks) stream.chunks(0, [chunk]);
    stream.end(0, end);
    stream.close();
  },
  'Responses stream': (chunks) => streamed(createResponseStream(responseShown()), chunks),
  'Messages stream': (chunks) => streamed(createMessagesStream(messagesShown), chunks),
};

/** The stages that read a whole answer. */
export const wholeStages: Readonly<Record<string, (completion: ChatCompletion) => void>> = {
  chunks: (completion) => void accumulate(chunksOf(completion), 0),
  meter(completion) {
    const meter = new AnswerMeter();
    for (const chunk of chunksOf(completion)) meter.chunk(chunk);
    meter.usage({ messages: [] });
  },
  log: (completion) => new OutputText().whole(completion),
  filter: (completion) => void transformWhole(completion, createAnswerFilter(filterOptions)),
  chat: (completion) => void encodeCompletion(whole(completion), chatShown),
  Responses: (completion) => void joinParts(responseParts(whole(completion), responseShown())),
  Messages: (completion) => void encodeMessage(whole(completion), messagesShown),
};
