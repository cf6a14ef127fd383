/**
 * A turn of a recorded answer returns through a client of the Messages or Responses API to its provider, on any wire,
 * as if there had been no client between: through the API's own form, whole and streamed, the parser, and the
 * restoration from seal and vault.
 */
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { messagesClient as messagesProfile } from '../../src/api/messages/client.ts';
import { encodeMessage } from '../../src/api/messages/encode.ts';
import { type MessagesRequestBody, messagesRequest } from '../../src/api/messages/parse-request.ts';
import { createMessagesStream } from '../../src/api/messages/stream.ts';
import { responsesClient as responsesProfile } from '../../src/api/responses/client.ts';
import { declaredTools } from '../../src/api/responses/declared-tools.ts';
import { type ResponseContext, responseParts } from '../../src/api/responses/encode.ts';
import { type ResponsesRequestBody, responsesRequest } from '../../src/api/responses/parse-request.ts';
import { createResponseObject } from '../../src/api/responses/response-object.ts';
import { createResponseStream } from '../../src/api/responses/stream.ts';
import { joinParts } from '../../src/api/shared/json-parts.ts';
import { type Call, CallCancellation } from '../../src/inference/call.ts';
import type { Served, StreamEnd, WholeAnswer } from '../../src/inference/events.ts';
import { NO_USAGE } from '../../src/inference/money/answer-usage.ts';
import { createEnvelopes } from '../../src/inference/reasoning/envelope.ts';
import { isSeal } from '../../src/inference/reasoning/seal.ts';
import type { ChatDialect, DialectEndpoint } from '../../src/providers/dialect.ts';
import { dialects } from '../../src/providers/dialects.ts';
import type { Candidate } from '../../src/routing/plan.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatChunk, ChatRequest, Message, RequestExt, Wire } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { checkMessagesStream } from '../grammar/messages.ts';
import { array, atLeast, object, recordingsOf, whySkipped } from '../readings/recordings.ts';
import { chunksOf, GENERATION, SECRET, STATE_WIRES, statesOf, TOO_LARGE, wholeOf } from './returning-turns.ts';

const envelope = createEnvelopes(SECRET)('o');
/** Citations without title and positions, which their API requires: clients receive empty ones, and send them back. */
const FILLED = new Set(['xai--events-xai-web-search-tool-1.json']);

/** A client of one API: the answer that it receives, and its form in the next request. */
interface Client {
  own: Wire;
  ext: RequestExt;
  whole(answer: WholeAnswer): JsonObject;
  streamed(chunks: readonly ChatChunk[]): JsonObject;
  /** The further conversation, through the parser. */
  next(answer: JsonObject): ChatRequest;
  /** With only text and calls. */
  bare(answer: JsonObject): JsonObject;
}

const served = { model: 'm', provider: 'p' } as unknown as Served;
const end = { usage: NO_USAGE, classes: null, metadata: undefined } as unknown as StreamEnd;

const messagesShown = { id: GENERATION, envelope, reasoning: 'shown' } as const;
const messagesClient: Client = {
  own: 'anthropic-messages',
  ext: { wire: 'anthropic-messages', client: messagesProfile, rest: {} },
  whole: (answer) => JSON.parse(encodeMessage(answer, messagesShown)) as JsonObject,
  streamed(chunks) {
    const stream = createMessagesStream(messagesShown);
    const text = stream.open(served) + chunks.map((chunk) => stream.chunks([chunk])).join('') + stream.end(end);
    return checkMessagesStream(text).message!;
  },
  next(answer) {
    const messages = [
      { role: 'user', content: 'Q' },
      { role: 'assistant', content: answer['content'] },
      { role: 'user', content: [...resultsIn(answer['content'], 'tool_use', 'id'), { type: 'text', text: 'And?' }] },
    ];
    const body = { model: 'a/b', max_tokens: 8000, messages } as unknown as MessagesRequestBody;
    return messagesRequest(body, { envelope, betas: [] });
  },
  bare: (answer) => ({
    ...answer,
    content: array(answer['content']).filter((block) => ['text', 'tool_use'].includes(String(object(block)['type']))),
  }),
};

function resultsIn(blocks: JsonObject[string] | undefined, type: string, id: string): JsonObject[] {
  return array(blocks)
    .map(object)
    .filter((block) => block['type'] === type)
    .map((block) => ({ type: 'tool_result', tool_use_id: block[id]!, content: 'done' }));
}

function responseContext(): ResponseContext {
  return {
    generation_id: GENERATION,
    response: createResponseObject({ id: GENERATION, created_at: 0, model: 'm' }, {}),
    tools: declaredTools([]),
    envelope,
    hide_reasoning: false,
    wants_summary: false,
    shows_logprobs: false,
    now: () => 0,
  };
}

const OUTPUTS: Record<string, string> = {
  function_call: 'function_call_output',
  custom_tool_call: 'custom_tool_call_output',
};

const responsesClient: Client = {
  own: 'openai-responses',
  ext: { wire: 'openai-responses', client: responsesProfile, rest: {} },
  whole: (answer) => JSON.parse(joinParts(responseParts(answer, responseContext()))) as JsonObject,
  streamed(chunks) {
    const stream = createResponseStream(responseContext());
    const text = stream.open(served) + chunks.map((chunk) => stream.chunks([chunk])).join('') + stream.end(end);
    const events = text.split('\n\n').filter((event) => event.startsWith('data: {'));
    return object((JSON.parse(events.at(-1)!.slice(6)) as JsonObject)['response']);
  },
  next(answer) {
    const output = array(answer['output']).map(object);
    const results = output.flatMap(({ type, call_id }) => {
      const made = OUTPUTS[String(type)];
      return made === undefined ? [] : [{ type: made, call_id, output: 'done' }];
    });
    const input = [{ role: 'user', content: 'Q' }, ...output, ...results, { role: 'user', content: 'And?' }];
    return responsesRequest({ model: 'a/b', input } as unknown as ResponsesRequestBody, { envelope });
  },
  bare: (answer) => ({
    ...answer,
    output: array(answer['output']).filter((item) =>
      ['message', 'function_call', 'custom_tool_call'].includes(String(object(item)['type'])),
    ),
  }),
};

const clients = { Messages: messagesClient, Responses: responsesClient };

function callOf(request: ChatRequest): Call {
  return {
    request,
    generation_id: GENERATION,
    principal: { workspace_id: 'w', organization_id: 'o' },
    cancellation: new CallCancellation(),
  } as unknown as Call;
}

/** The assistant turns of this conversation in the provider's request. */
function turnsOf(dialect: ChatDialect, upstreamModel: string, request: ChatRequest): JsonObject[] {
  const facts: DialectEndpoint = {
    model: 'a/b',
    provider: 'p',
    upstream_model: upstreamModel,
    max_completion_tokens: 32_000,
    context_length: undefined,
    input_modalities: ['text'],
    quirks: {},
  };
  const { body } = dialect.encodeRequest(request, facts, { media: new Map(), strip_state: false });
  const all = array(body['messages'] ?? body['contents'] ?? body['input']).map(object);
  return all
    .filter(({ role, output }) => role !== 'user' && output !== 'done')
    .map(normal)
    .filter(hasContent);
}

/** A text as its equivalent block, without blank ones; arguments without white space. */
function normal({ content, arguments: value, ...turn }: JsonObject): JsonObject {
  if (typeof value === 'string' && value !== '') return { ...turn, arguments: JSON.parse(value) as JsonObject };
  if (value !== undefined) return { ...turn, arguments: value };
  if (content === undefined) return turn;
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : array(content);
  // Without translation nothing is removed either.
  return { ...turn, content: blocks.filter((block) => String(object(block)['text'] ?? 'x').trim() !== '') };
}

const hasContent = ({ content }: JsonObject) => !Array.isArray(content) || content.length > 0;

const OPAQUE = /"(?:signature|data|thoughtSignature|encrypted_content|redactedContent)":"([^"]*)"/g;

/** The data that only the provider can read, in order. */
function opaqueIn(turns: readonly JsonObject[]): string[] {
  return [...JSON.stringify(turns).matchAll(OPAQUE)].map(([, token = '']) => token);
}

/** Whether an answer carries a seal. */
function isSealed(shown: JsonObject): boolean {
  const texts = JSON.stringify(shown).match(/gw1\.[\w-]+\.[\w-]+/g) ?? [];
  return texts.some((text) => envelope.unwrap(text)?.some(isSeal));
}

/** The answer to a client of the Responses API, in the form of the Messages API. */
function asBlocks({ output }: JsonObject): JsonObject[] {
  return array(output)
    .map(object)
    .flatMap((item): JsonObject[] => {
      if (item['type'] === 'reasoning') return [{ type: 'redacted_thinking', data: item['encrypted_content']! }];
      if (item['type'] === 'message')
        return array(item['content']).map((part) => ({ type: 'text', text: object(part)['text']! }));
      if (item['type'] !== 'function_call') return [];
      const input = JSON.parse(String(item['arguments'])) as JsonObject;
      return [{ type: 'tool_use', id: item['call_id']!, name: item['name']!, input }];
    });
}

/** The same without a client between. */
function conversationWith(message: Message): ChatRequest {
  const results = (message.tool_calls ?? []).map(
    ({ id }): Message => ({ role: 'tool', tool_call_id: id, content: 'done' }),
  );
  return { messages: [{ role: 'user', content: 'Q' }, message, ...results, { role: 'user', content: 'And?' }] };
}

const candidate = (dialect: Wire): Candidate =>
  ({ endpoint: { quirks: {} }, provider: { slug: 'p', dialect } }) as unknown as Candidate;

describe.each(STATE_WIRES)('recorded turns of %s', (wire, upstreamModel) => {
  const recordings = recordingsOf(wire);
  const dialect = dialects.get(wire)!;

  async function passAll(client: Client, options: { keeps: boolean }, habit = (answer: JsonObject) => answer) {
    const wrong: string[] = [];
    let compared = 0;
    for (const { name, recording } of recordings) {
      const states = statesOf(options);
      const request: ChatRequest = { messages: [{ role: 'user', content: 'Q' }], ext: client.ext };
      const keeper = states.recorder(callOf(request), candidate(wire), wire)!;
      const chunks = chunksOf(dialect, recording);
      const completion = chunks === undefined ? wholeOf(dialect, recording) : accumulate(chunks, 0);
      if (completion === undefined || completion.choices[0].finish_reason === 'error') continue;
      const { message } = completion.choices[0];
      const shown =
        chunks === undefined
          ? client.whole({
              completion: keeper.whole(completion),
              served,
              classes: null,
              usage: NO_USAGE,
              metadata: undefined,
            } as unknown as WholeAnswer)
          : client.streamed(keeper.add(chunks));
      const sent = habit(shown);
      const isOwn = client.own === wire;
      // Without vault and seal, ids and remainders cannot be restored; reasoning is restored in any case.
      const isWhole = options.keeps || isOwn || isSealed(shown);
      if (options.keeps && !message.tool_calls?.length) continue;
      compared += 1;
      const { call } = await states.restore(callOf(client.next(sent)), () => true);
      const there = turnsOf(dialect, upstreamModel, call.request);
      const wanted = turnsOf(dialect, upstreamModel, conversationWith(message));
      const isEqual = isWhole ? isDeepStrictEqual(there, wanted) : isDeepStrictEqual(opaqueIn(there), opaqueIn(wanted));
      if (!isEqual) wrong.push(name);
    }
    return { compared, wrong };
  }

  describe.each(Object.entries(clients))('through a client of the %s API', (_name, client) => {
    test.skipIf(recordings.length === 0)(
      `are restored from the client’s data alone${whySkipped(recordings, wire)}`,
      async () => {
        const distinguished = await passAll(client, { keeps: false });
        const known = client.own === wire ? FILLED : TOO_LARGE;
        expect(distinguished.wrong).toEqual(recordings.map(({ name }) => name).filter((name) => known.has(name)));
        expect(distinguished.compared).toBeGreaterThan(atLeast(30, 0));
      },
    );
    // A client of the same wire omits parts on purpose.
    test.skipIf(recordings.length === 0 || client.own === wire)(
      `are restored by their calls for a client that drops all else${whySkipped(recordings, wire)}`,
      async () => {
        const distinguished = await passAll(client, { keeps: true }, client.bare);
        expect(distinguished.wrong).toEqual([]);
        expect(distinguished.compared).toBeGreaterThanOrEqual(atLeast(10, 0));
      },
    );
  });

  test.skipIf(recordings.length === 0 || wire === 'openai-responses' || wire === 'bedrock-converse')(
    `are restored as well if the client continues in another API${whySkipped(recordings, wire)}`,
    async () => {
      let compared = 0;
      for (const { recording } of recordings) {
        const completion = wholeOf(dialect, recording);
        if (completion === undefined) continue;
        const { message } = completion.choices[0];
        if (opaqueIn(turnsOf(dialect, upstreamModel, conversationWith(message))).length === 0) continue;
        const states = statesOf({ keeps: false });
        const request: ChatRequest = { messages: [{ role: 'user', content: 'Q' }], ext: responsesClient.ext };
        const answer = {
          completion: states.recorder(callOf(request), candidate(wire), wire)!.whole(completion),
          served,
          classes: null,
          usage: NO_USAGE,
          metadata: undefined,
        } as unknown as WholeAnswer;
        const content = asBlocks(responsesClient.whole(answer));
        const { call } = await states.restore(callOf(messagesClient.next({ content })), () => true);
        const there = opaqueIn(turnsOf(dialect, upstreamModel, call.request));
        expect(there).toEqual(opaqueIn(turnsOf(dialect, upstreamModel, conversationWith(message))));
        compared += 1;
      }
      expect(compared).toBeGreaterThanOrEqual(atLeast(4, 0));
    },
  );
});
