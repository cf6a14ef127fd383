/**
 * Recorded answers for clients of the Messages API: those of the same wire are returned as the provider sent them,
 * those of all others follow its grammar, and the official client accumulates them to the whole answer.
 */
import { afterAll, describe, expect, test } from 'vitest';
import { dialects } from '../../src/providers/dialects.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { Wire } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { checkMessagesStream } from '../grammar/messages.ts';
import { messagesBytes, SPLICED } from '../readings/anthropic-messages.ts';
import { converseBytes } from '../readings/bedrock-converse.ts';
import { cohereBytes } from '../readings/cohere-chat.ts';
import { type Allowed, differences, reasonFor } from '../readings/differences.ts';
import { geminiBytes } from '../readings/gemini-generate-content.ts';
import { leaksOf } from '../readings/leaks.ts';
import { chatBytes } from '../readings/openai-chat.ts';
import { responsesBytes } from '../readings/openai-responses.ts';
import {
  atLeast,
  isComplete,
  type NamedRecording,
  object,
  type Recording,
  recordingsOf,
  whySkipped,
} from '../readings/recordings.ts';
import { accumulatedBySdk, chunksOf, STATE, streamText, wholeMessage } from './messages-reading.ts';
import { CHANGED_FOR_CLIENTS, isNull, recordedMessage } from './messages-recorded.ts';

const bytesOf: Record<Wire, (recording: Recording) => Uint8Array> = {
  'anthropic-messages': messagesBytes,
  'openai-chat': chatBytes,
  'openai-responses': responsesBytes,
  'gemini-generate-content': geminiBytes,
  'bedrock-converse': converseBytes,
  'cohere-chat': cohereBytes,
};
const wires = Object.keys(bytesOf) as Wire[];

/** Recordings without an answer of a model, or without a complete one. */
const NO_ANSWERS: ReadonlySet<string> = new Set([
  ...SPLICED,
  'google-ai-studio--events-google-live-speech-translation.json',
  'openai--test-openai-responses-test-background-mode-reasoning-vcr-0.json',
  'openai--events-openai-error-1.json',
]);

interface Answers {
  wire: Wire;
  all: NamedRecording[];
  whole: NamedRecording[];
  streams: NamedRecording[];
}

const answers = wires.map((wire): Answers => {
  const all = recordingsOf(wire).filter(
    ({ name, recording }) => recording.response.status === 200 && !NO_ANSWERS.has(name),
  );
  const isWhole = ({ recording: { response } }: NamedRecording) =>
    response.json !== undefined && !Array.isArray(response.json);
  return { wire, all, whole: all.filter(isWhole), streams: all.filter((one) => !isWhole(one)) };
});

const CUTS = 40;

/** Positions of cuts: different for each name, the same in every run. */
function cutsOf(name: string, length: number): number[] {
  let seed = [...name].reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) >>> 0, 7);
  const next = () => {
    seed = (seed * 1_664_525 + 1_013_904_223) >>> 0;
    return seed / 2 ** 32;
  };
  return [...new Set(Array.from({ length: CUTS }, () => Math.floor(next() * length)))].sort((a, b) => a - b);
}

// ---------------------------------------------------------------- the same wire

const [own, ...others] = answers as [Answers, ...Answers[]];

describe.skipIf(own.all.length === 0)(`answers of Anthropic's wire${whySkipped(own.all, own.wire)}`, () => {
  const dialect = dialects.get(own.wire)!;
  const used = new Set<string>();
  const expectSame = (before: JsonObject, after: JsonObject) => {
    const faults = differences(before, after).filter((difference) => {
      const reason = reasonFor(difference, CHANGED_FOR_CLIENTS);
      if (reason !== undefined) used.add(reason);
      return reason === undefined;
    });
    expect(faults).toEqual([]);
  };
  afterAll(() => {
    if (!isComplete) return;
    const missing = CHANGED_FOR_CLIENTS.filter(({ reason }) => !used.has(reason));
    expect(missing, 'differences that never occur').toEqual([]);
  });

  test('all recordings are there', () =>
    expect(own.whole.length + own.streams.length).toBeGreaterThanOrEqual(atLeast(65)));

  test.each(own.whole)('whole: $name', ({ recording }) => {
    const body = object(recording.response.json);
    expectSame(body, wholeMessage(accumulate(dialect.decodeResponse(body, { ...STATE }), 0)));
  });

  test.each(own.streams)('streamed: $name', async ({ recording }) => {
    const bytes = messagesBytes(recording);
    const { message } = checkMessagesStream(streamText(chunksOf(own.wire, bytes)));
    expectSame(await recordedMessage(bytes), message!);
  });
});

// ---------------------------------------------------------------- every wire

/** Members that the official client removes from a message, or reads only from its beginning. */
const BY_SDK: readonly Allowed[] = [
  { place: /^\.parsed_output added$/, reason: 'parsed by the client itself', holds: isNull },
  { place: /^\.usage\.(cost|cost_details|is_byok) removed$/, reason: 'the client has no costs' },
  { place: /^\.usage\.cache_creation/, reason: 'the client reads the split only at the beginning' },
  {
    place: /^\.usage\.(service_tier changed|iterations removed)$/,
    reason: 'the stable part reads only five counts of the end',
  },
  { place: /^\.context_management removed$/, reason: 'only the beta part has it' },
  {
    place: /^\.content\[\d+\]\.(content changed|input\.\w+ removed)$/,
    reason: 'only the beta part has compactions and tools of MCP servers',
  },
  { place: /^\.model changed$/, reason: 'the beta part reads the model of a fallback' },
];

describe.each([own, ...others])('answers of $wire', ({ wire, all, whole, streams }) => {
  const why = whySkipped(all, wire);
  const isAbsent = all.length === 0;

  test.skipIf(isAbsent)(`streams and whole answers exist${why}`, () => {
    expect(Math.min(whole.length, streams.length)).toBeGreaterThan(0);
  });

  describe.skipIf(isAbsent)(`a whole answer shows nothing internal${why}`, () => {
    test.each(whole)('$name', ({ recording }) => {
      const completion = accumulate(dialects.get(wire)!.decodeResponse(recording.response.json!, { ...STATE }), 0);
      if (completion.choices[0].finish_reason === 'error') expect(() => wholeMessage(completion)).toThrow();
      else expect(leaksOf(wholeMessage(completion))).toEqual([]);
    });
  });

  describe.skipIf(isAbsent)(`a stream accumulates to its whole answer, wherever it is cut${why}`, () => {
    test.each(streams)('$name', async ({ name, recording }) => {
      const bytes = bytesOf[wire](recording);
      const batches = chunksOf(wire, bytes, cutsOf(name, bytes.length));
      const { message, events, error } = checkMessagesStream(streamText(batches));
      const completion = accumulate(batches.flat(), 0);
      if (completion.choices[0].finish_reason === 'error') {
        expect(error).toBeDefined();
        return;
      }
      expect(message).toEqual(wholeMessage(completion));
      for (const side of ['stable', 'beta'] as const) {
        const read = await accumulatedBySdk(events, side);
        const faults = differences(message, read).filter((difference) => reasonFor(difference, BY_SDK) === undefined);
        expect(faults).toEqual([]);
      }
    });

    test.each(streams)('without reasoning: $name', ({ name, recording }) => {
      const bytes = bytesOf[wire](recording);
      const batches = chunksOf(wire, bytes, cutsOf(name, bytes.length));
      for (const reasoning of ['omitted', 'hidden'] as const) {
        const { message, error } = checkMessagesStream(streamText(batches, reasoning));
        if (error !== undefined) continue;
        expect(message).toEqual(wholeMessage(accumulate(batches.flat(), 0), reasoning));
        const blocks = (message!['content'] as JsonObject[]).filter(({ type }) => String(type).endsWith('thinking'));
        if (reasoning === 'hidden') expect(blocks).toEqual([]);
        else expect(blocks.filter(({ thinking }) => thinking)).toEqual([]);
      }
    });
  });
});
