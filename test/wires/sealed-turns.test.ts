import { describe, expect, test } from 'vitest';
import { chatClient } from '../../src/api/chat/client.ts';
import { ChatStreamEncoder, encodeCompletion } from '../../src/api/chat/encode.ts';
import { type ChatBody, chatRequest } from '../../src/api/chat/parse-request.ts';
import { type Call, CallCancellation } from '../../src/inference/call.ts';
import type { WholeAnswer } from '../../src/inference/events.ts';
import type { TurnStates } from '../../src/inference/reasoning/states.ts';
import type { ChatDialect, DialectEndpoint } from '../../src/providers/dialect.ts';
import { dialects } from '../../src/providers/dialects.ts';
import type { Candidate } from '../../src/routing/plan.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatRequest, Message, Wire } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { atLeast, object, recordingsOf, whySkipped } from '../readings/recordings.ts';
import { chunksOf, GENERATION, STATE_WIRES, statesOf, TOO_LARGE, wholeOf } from './returning-turns.ts';

/**
 * A chat client's turn of a recorded answer returns to its provider as if there had been no client between: through the
 * public answer, the client's own habits, the parser, and the restoration from seal and vault.
 */

function callOf(request: ChatRequest): Call {
  return {
    api_type: 'completions',
    request: { ...request, ext: { wire: 'openai-chat', client: chatClient, rest: {} } },
    generation_id: GENERATION,
    request_id: 'req-1',
    principal: { workspace_id: 'w', organization_id: 'o' } as Call['principal'],
    attribution: {} as Call['attribution'],
    accepted_ms: 0,
    accepted_monotonic_ms: 0,
    cancellation: new CallCancellation(),
    wants_metadata: false,
    stages: [],
    outcome: { isSettled: false, record: undefined },
  };
}

const envelope = { id: GENERATION, created: 0, model: 'a/b', text_form: false, hide_reasoning: false };
const candidateOf = (wire: Wire, slug: string): Candidate =>
  ({ endpoint: { quirks: {} }, provider: { slug, dialect: wire } }) as unknown as Candidate;

type Sent = Record<string, unknown> & { reasoning_details?: JsonObject[]; tool_calls?: JsonObject[]; content?: string };

/**
 * Accumulates chunks as the AI SDK's provider of the public service does: it merges adjacent texts and keeps the first
 * signature.
 */
function merging(deltas: readonly Sent[]): Sent {
  const details: JsonObject[] = [];
  for (const detail of deltas.flatMap((delta) => delta.reasoning_details ?? [])) {
    const last = details.at(-1);
    if (detail['type'] === 'reasoning.text' && last?.['type'] === 'reasoning.text') {
      last['text'] = `${last['text'] ?? ''}${detail['text'] ?? ''}`;
      last['signature'] ??= detail['signature'] ?? null;
    } else details.push({ ...detail });
  }
  const calls: JsonObject[] = [];
  for (const call of deltas.flatMap((delta) => delta.tool_calls ?? [])) {
    const at = Number(call['index']);
    const { name, arguments: text } = object(call['function']);
    const known = calls[at];
    if (known === undefined)
      calls[at] = { id: call['id']!, type: 'function', function: { name: name!, arguments: text ?? '' } };
    else object(known['function'])['arguments'] = `${object(known['function'])['arguments']}${text ?? ''}`;
  }
  return {
    role: 'assistant',
    content: deltas.map(({ content }) => content ?? '').join(''),
    ...(details.length ? { reasoning_details: details } : {}),
    ...(calls.length ? { tool_calls: calls } : {}),
  };
}

function deltasOf(text: string): Sent[] {
  const events = text.split('\n\n').filter((event) => event.startsWith('data: {'));
  return events.flatMap((event) =>
    (JSON.parse(event.slice(6)) as { choices: { delta: Sent }[] }).choices.map(({ delta }) => delta),
  );
}

/** The provider's request with this message in its conversation. */
function bodyWith(dialect: ChatDialect, upstreamModel: string, message: Message): string {
  const results = (message.tool_calls ?? []).map(
    ({ id }): Message => ({ role: 'tool', tool_call_id: id, content: 'done' }),
  );
  const facts: DialectEndpoint = {
    model: 'a/b',
    provider: 'p',
    upstream_model: upstreamModel,
    max_completion_tokens: 32_000,
    context_length: undefined,
    input_modalities: ['text'],
    quirks: {},
  };
  const messages: Message[] = [{ role: 'user', content: 'Q' }, message, ...results, { role: 'user', content: 'And?' }];
  return JSON.stringify(dialect.encodeRequest({ messages }, facts, { media: new Map(), strip_state: false }).body);
}

async function recalled(states: TurnStates, sent: Sent): Promise<Message> {
  const body = { messages: [{ role: 'user', content: 'Q' }, sent, { role: 'user', content: 'And?' }] };
  const { call } = await states.restore(callOf(chatRequest(JSON.parse(JSON.stringify(body)) as ChatBody)), () => true);
  return call.request.messages[1]!;
}

describe.each(STATE_WIRES)('recorded turns of %s', (wire, upstreamModel) => {
  const recordings = recordingsOf(wire);
  const dialect = dialects.get(wire)!;
  const candidate = candidateOf(wire, 'p');
  const request: ChatRequest = { messages: [{ role: 'user', content: 'Q' }] };

  /**
   * Runs every recorded answer through a client. Returns how many were compared, and fails at the first that differs.
   */
  async function passAll(
    options: { keeps: boolean },
    habit: (honest: Sent, deltas: readonly Sent[]) => Sent | undefined,
  ) {
    const counts = { answers: 0, sealed: 0, compared: 0 };
    const wrong: string[] = [];
    for (const { name, recording } of recordings) {
      const states = statesOf(options);
      const keeper = states.recorder(callOf(request), candidate, wire)!;
      const chunks = chunksOf(dialect, recording);
      const completion = chunks === undefined ? wholeOf(dialect, recording) : accumulate(chunks, 0);
      if (completion === undefined || completion.choices[0].finish_reason === 'error') continue;
      const { message } = completion.choices[0];
      let deltas: Sent[];
      if (chunks === undefined) {
        const answer = {
          completion: keeper.whole(completion),
          served: { model: 'm', provider: 'p' },
          usage: {},
          metadata: undefined,
        };
        const shown = JSON.parse(encodeCompletion(answer as unknown as WholeAnswer, envelope)) as {
          choices: [{ message: Sent }];
        };
        deltas = [shown.choices[0].message];
      } else {
        deltas = deltasOf(new ChatStreamEncoder(envelope).chunks(keeper.add(chunks)));
      }
      counts.answers += 1;
      const honest = chunks === undefined ? deltas[0]! : merging(deltas);
      const isSealed = deltas.some(({ reasoning_details: details }) =>
        details?.some(({ id }) => String(id).startsWith('seal_')),
      );
      if (isSealed) counts.sealed += 1;
      // Without calls and without a seal, ids and citations cannot be restored.
      if (!isSealed && (!options.keeps || !message.tool_calls?.length)) continue;
      const sent = habit(honest, deltas);
      if (sent === undefined) continue;
      counts.compared += 1;
      const wanted = bodyWith(dialect, upstreamModel, message);
      if (bodyWith(dialect, upstreamModel, await recalled(states, sent)) !== wanted) wrong.push(name);
    }
    return { ...counts, wrong };
  }

  test.skipIf(recordings.length === 0)(
    `can be sent back by their seals alone, also merged${whySkipped(recordings, wire)}`,
    async () => {
      for (const merges of [false, true]) {
        const distinguished = await passAll({ keeps: false }, (honest, deltas) => (merges ? merging(deltas) : honest));
        expect(distinguished.answers).toBeGreaterThan(atLeast(30, 0));
        expect(distinguished.wrong).toEqual(
          [...TOO_LARGE].filter((name) => recordings.some((one) => one.name === name)),
        );
      }
    },
  );

  test.skipIf(recordings.length === 0)(
    `are restored completely from the vault, whatever a client merges${whySkipped(recordings, wire)}`,
    async () => {
      for (const merges of [false, true]) {
        const distinguished = await passAll({ keeps: true }, (honest, deltas) => (merges ? merging(deltas) : honest));
        expect(distinguished.wrong).toEqual([]);
        expect(distinguished.compared).toBeGreaterThanOrEqual(atLeast(10, 0));
      }
    },
  );

  test.skipIf(recordings.length === 0)(
    `are restored by their calls for a client that drops all else${whySkipped(recordings, wire)}`,
    async () => {
      const distinguished = await passAll({ keeps: true }, ({ content, tool_calls }) =>
        tool_calls?.length ? { role: 'assistant', content: content ?? '', tool_calls } : undefined,
      );
      expect(distinguished.wrong).toEqual([]);
      expect(distinguished.compared).toBeGreaterThanOrEqual(atLeast(10, 0));
    },
  );
});
