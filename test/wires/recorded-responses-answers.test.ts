/**
 * Every recorded answer of every wire, as a client of the Responses API receives it: its stream follows the grammar
 * wherever it was cut, and equals the whole answer. Answers of the same wire are unchanged.
 */

import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AttemptState } from '../../src/providers/dialect.ts';
import { dialects } from '../../src/providers/dialects.ts';
import { createFramer } from '../../src/providers/transport/frames.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatChunk, Wire } from '../../src/schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json.ts';
import { checkResponse, checkResponsesStream } from '../grammar/responses.ts';
import { responsesEvents } from '../readings/openai-responses.ts';
import { isComplete, whySkipped } from '../readings/recordings.ts';
import {
  type RecordedAnswer,
  type RecordedGateway,
  recordedAnswers,
  startRecordedGateway,
} from './recorded-upstream.ts';
import { encoded, generationId, streamed, whole } from './responses-encoder.ts';

/** Integers from 0 up to a bound, the same for one seed. */
function chance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return Math.floor((state / 0x8000_0000) * below);
  };
}

/** The chunks of a recorded stream whose bytes arrived in parts of any length. */
function chunksOf(wire: Wire, bytes: Uint8Array, below: (bound: number) => number): ChatChunk[][] {
  const dialect = dialects.get(wire)!;
  const state: AttemptState = { generation_id: generationId };
  const framer = createFramer(dialect.frames);
  const decoder = dialect.createStreamDecoder(state);
  const groups: ChatChunk[][] = [];
  for (let from = 0; from < bytes.length; ) {
    const to = Math.min(bytes.length, from + 1 + below(4_000));
    const frames = framer.push(bytes.subarray(from, to));
    groups.push(frames.flatMap((frame) => decoder.push(frame)));
    from = to;
  }
  groups.push([...framer.end().flatMap((frame) => decoder.push(frame)), ...decoder.end()]);
  return groups;
}

for (const wire of dialects.keys()) {
  const answers = recordedAnswers(wire);
  describe.skipIf(answers.length === 0)(`streams over ${wire}${whySkipped(answers, wire)}`, () => {
    const streams = answers.filter(({ kind }) => kind === 'stream');

    test.each(streams)('$name', ({ bytes, name }: RecordedAnswer) => {
      const groups = chunksOf(wire, bytes, chance(name.length));
      const text = streamed(groups);
      const { response } = checkResponsesStream(text);
      expect(streamed(chunksOf(wire, bytes, chance(name.length + 1)))).toBe(text);
      expect(response).toEqual(whole(groups.flat()));
    });
  });

  describe.skipIf(answers.length === 0)(`whole answers over ${wire}${whySkipped(answers, wire)}`, () => {
    const wholes = answers.filter(({ kind }) => kind === 'whole');

    test.each(wholes)('$name', ({ bytes }) => {
      const body = JSON.parse(Buffer.from(bytes).toString()) as JsonObject;
      const completion = accumulate(dialects.get(wire)!.decodeResponse(body, { generation_id: generationId }), 0);
      checkResponse(encoded(completion));
    });
  });
}

// ---- Answers of the same wire, through a running gateway.

/**
 * Allowed differences between an answer through the gateway and the recorded one, with reasons; each must occur. A
 * field belongs to the response, or to the event whose name precedes it.
 */
const DIFFERENCES: readonly (readonly [RegExp, string])[] = [
  [/^(?:id|created_at|completed_at|model)$/, 'generation id, clock and model name are the gateway’s'],
  [/^store$/, 'nothing is stored upstream'],
  [/^usage\.(?:cost|is_byok|cost_details|server_tool_use)$/, 'the gateway reports the cost'],
  [/^usage\.input_tokens_details\.cache_write_tokens$/, 'older answers do not report cache writes'],
  [/^usage\.num_/, "xAI's further counts have no public name"],
  [
    /^(?:moderation|content_filters|prompt_cache_retention|text\.verbosity|text\.format\.description|reasoning\.generate_summary)$/,
    'null, and the gateway omits it',
  ],
  [/^conversation$/, 'the gateway has no conversations of the provider'],
  [
    /^(?:error|instructions|temperature|top_p|truncation|reasoning\.summary|service_tier|background|max_tool_calls|prompt_cache_key|safety_identifier|top_logprobs|frequency_penalty|presence_penalty)$/,
    'some servers omit required members, or send null',
  ],
  [/^tool_choice$/, 'the request is not recorded'],
  [/^tools\b/, 'tools are as declared; OpenAI adds its defaults, and those that a search found'],
  [
    /\bannotations\[\]\.(?:title|start_index|end_index)$|annotation\.(?:title|start_index|end_index)$/,
    'xAI omits them',
  ],
  [/\blogprobs$/, 'some servers omit empty ones'],
  [/\bobfuscation$/, 'the padding belongs to the upstream connection'],
  [/^response\.function_call_arguments\.done name$/, 'older streams do not repeat the name'],
  [/^response\.shell_call_command\.\w+ item_id$/, 'every event of an item has its id'],
  [/ sequence_number$/, 'one server does not number its events'],
  [/^response\.output_item\.added item\.(?:encrypted_content|status|content)$/, 'an item opens without a placeholder'],
  [/^output\[\]\.encrypted_content$/, 'it is encrypted anew for the last event; that of its item is equivalent'],
  [/^output\[\]\.content$/, 'an empty list without readable content'],
  [
    /(?:^output\[\]\.content\[\]\.text|^response\.output_text\.done text|^response\.\w+\.done (?:part|item\.content\[\])\.text)$/,
    'the whole text of one recording has more than its deltas',
  ],
];

/** Events that only one side has, with reasons. */
const UNPAIRED: Readonly<Record<string, string>> = {
  'response.queued': 'the gateway does not answer in the background',
  'response.custom_tool_call_input.done': 'one server omits it',
};

/** Fields of recorded requests that a gateway without storage refuses; the rest is requested unchanged. */
const REFUSED = ['store', 'background', 'conversation', 'previous_response_id', 'prompt'];

function bodyOf({ recording, model, kind }: RecordedAnswer): JsonObject {
  const requestBody = { ...(recording.request?.body ?? { input: 'Go on.' }) };
  for (const name of REFUSED) delete requestBody[name];
  return { ...requestBody, model, stream: kind === 'stream' };
}

/** Every place at which two values differ. */
function differences(ours: JsonValue | undefined, recorded: JsonValue | undefined, path = ''): string[] {
  if (isDeepStrictEqual(ours, recorded)) return [];
  if (Array.isArray(ours) && Array.isArray(recorded) && ours.length === recorded.length) {
    return ours.flatMap((one, at) => differences(one, recorded[at], `${path}[]`));
  }
  if (!isObject(ours) || !isObject(recorded)) return [path];
  const names = new Set([...Object.keys(ours), ...Object.keys(recorded)]);
  return [...names].flatMap((name) =>
    differences(ours[name], recorded[name], path === '' || path.endsWith(' ') ? `${path}${name}` : `${path}.${name}`),
  );
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const own = recordedAnswers('openai-responses').filter(({ kind }) => kind === 'stream' || kind === 'whole');

describe.skipIf(own.length === 0)(`answers of the same wire${whySkipped(own, 'openai-responses')}`, () => {
  const seen = new Set<string>();
  let site: RecordedGateway;
  beforeAll(async () => {
    site = await startRecordedGateway(own);
  });
  afterAll(() => site.stop());

  function expectKnown(differences: readonly string[]): void {
    for (const field of differences) {
      const reason = DIFFERENCES.find(([pattern]) => pattern.test(field))?.[1];
      expect.soft(reason, `${field} differs`).toBeDefined();
      if (reason !== undefined) seen.add(reason);
    }
  }

  function expectEvents(ours: readonly JsonObject[], recorded: readonly JsonObject[]): void {
    const types = new Set(recorded.map(({ type }) => type));
    const ofOurs = new Set(ours.map(({ type }) => type));
    const paired = (events: readonly JsonObject[], others: ReadonlySet<JsonValue | undefined>) =>
      events.filter(({ type }) => {
        const reason = others.has(type) ? undefined : UNPAIRED[String(type)];
        if (reason !== undefined) seen.add(reason);
        return reason === undefined;
      });
    const [left, right] = [paired(ours, types), paired(recorded, ofOurs)];
    expect(left.map(({ type }) => type)).toEqual(right.map(({ type }) => type));
    const counted = left.length === ours.length && right.length === recorded.length;
    left.forEach((event, at) => {
      const { response, sequence_number, ...fields } = event;
      if (response !== undefined) return;
      const { sequence_number: recordedNumber, ...other } = right[at]!;
      const numbers = counted
        ? { ours: { sequence_number: sequence_number! }, recorded: { sequence_number: recordedNumber ?? null } }
        : undefined;
      expectKnown(differences(fields, other, `${event['type']} `));
      if (numbers !== undefined) expectKnown(differences(numbers.ours, numbers.recorded, `${event['type']} `));
    });
  }

  test.each(own)(
    '$name is unchanged',
    async (one) => {
      const answer = await site.gateway.call('POST', '/responses', bodyOf(one));
      const text = await answer.text();
      expect(answer.status, text.slice(0, 500)).toBe(200);
      if (one.kind === 'whole') {
        const response = JSON.parse(text) as JsonObject;
        checkResponse(response);
        expectKnown(differences(response, one.recording.response.json));
        return;
      }
      const { events, response } = checkResponsesStream(text);
      const recorded = responsesEvents(one.recording);
      expectKnown(differences(response, recorded.at(-1)!['response']));
      expectEvents(events, recorded);
    },
    30_000,
  );

  test.runIf(isComplete)('every listed difference still exists', () => {
    const reasons = [...DIFFERENCES.map(([, reason]) => reason), ...Object.values(UNPAIRED)];
    expect([...seen].sort()).toEqual(reasons.sort());
  });
});
