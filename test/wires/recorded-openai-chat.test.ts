/**
 * Recorded answers of real providers, read by the dialect and, independently of its code, by this test. Recorded
 * requests are unchanged after the encoder, except for a closed list of changes.
 */
import { describe, expect, test } from 'vitest';
import type { Frame } from '../../src/providers/dialect.ts';
import { openaiChat } from '../../src/providers/openai-chat/index.ts';
import { createFramer } from '../../src/providers/transport/frames.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatCompletion, ChatRequest, TokenClasses } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { CHANGED_BY_DIALECT, differences, reasonFor } from '../readings/differences.ts';
import { type ChatReading, chatBytes, FINISH, readChat } from '../readings/openai-chat.ts';
import { atLeast, isComplete, recordingsOf, whySkipped } from '../readings/recordings.ts';

const recordings = recordingsOf('openai-chat');
const isPresent = recordings.length > 0;
const why = whySkipped(recordings, 'openai-chat');

function framesOf(reads: Iterable<Uint8Array>): Frame[] {
  const framer = createFramer('sse');
  const frames: Frame[] = [];
  for (const read of reads) frames.push(...framer.push(read));
  frames.push(...framer.end());
  return frames;
}

function decodeFrames(frames: Frame[], state: JsonObject = {}): ChatCompletion {
  const decoder = openaiChat.createStreamDecoder({ generation_id: 'gen-test', ...state });
  const chunks = frames.flatMap((frame) => decoder.push(frame));
  chunks.push(...decoder.end());
  return accumulate(chunks, 7);
}

function textOf(answer: ChatCompletion): string {
  const { content } = answer.choices[0].message;
  if (!Array.isArray(content)) return content ?? '';
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

function reasoningOf(answer: ChatCompletion): string {
  const details = answer.choices[0].message.reasoning_details ?? [];
  return details.map((detail) => (detail.type === 'reasoning.text' ? (detail.text ?? '') : '')).join('');
}

const sum = (...counts: (number | undefined)[]): number | undefined =>
  counts.every((count) => count === undefined)
    ? undefined
    : counts.reduce<number>((all, count) => all + (count ?? 0), 0);

const promptOf = (usage: TokenClasses) =>
  sum(usage.in_uncached, usage.in_cache_read, usage.in_cache_write_5m, usage.in_audio, usage.in_image);
const completionOf = (usage: TokenClasses) =>
  sum(usage.out_text, usage.out_reasoning, usage.out_audio, usage.out_image);

function expectReading(answer: ChatCompletion, raw: ChatReading): void {
  const choice = answer.choices[0];
  const usage = answer.ext.usage;
  expect(textOf(answer)).toBe(raw.text);
  expect(reasoningOf(answer)).toBe(raw.reasoning);
  expect(choice.message.refusal ?? '').toBe(raw.refusal);
  expect(choice.finish_reason).toBe(raw.calls.length > 0 ? 'tool_calls' : FINISH[raw.finish]);
  expect(choice.native_finish_reason ?? '').toBe(raw.finish);
  expect(usage && promptOf(usage)).toBe(raw.prompt);
  expect(usage && completionOf(usage)).toBe(raw.completion);
  expect(usage?.in_cache_read).toBe(raw.cached);
  expect(choice.message.tool_calls?.length ?? 0).toBe(raw.calls.length);
  raw.calls.forEach((call, i) => {
    const decoded = choice.message.tool_calls![i]!;
    expect(decoded.function).toEqual({ name: call.name, arguments: call.arguments || '{}' });
    if (call.id !== '') expect(decoded.id).toBe(call.id);
    else expect(decoded.id).toMatch(/^call_[0-9A-Za-z]{24}$/);
  });
}

// ---------------------------------------------------------------- answers

const failed = recordings.filter(({ recording }) => recording.response.status >= 400);
const whole = recordings.filter(({ recording }) => recording.response.status < 400 && recording.response.json);
const streamed = recordings.filter(({ recording }) => !recording.response.json);

test.skipIf(!isPresent)(`recordings of every kind exist${why}`, () => {
  expect(recordings.length).toBe(failed.length + whole.length + streamed.length);
  expect(Math.min(failed.length, whole.length, streamed.length)).toBeGreaterThan(0);
});

describe.skipIf(!isPresent)(`recorded whole answers${why}`, () => {
  test.each(whole)('$name', ({ recording }) => {
    const answer = accumulate(openaiChat.decodeResponse(recording.response.json!, { generation_id: 'gen-test' }), 7);
    expectReading(answer, readChat(recording));
  });
});

/** Runs of whole events of about this number of bytes: cutting each run everywhere cuts the stream everywhere. */
const RUN_BYTES = 1_500;

function runsOf(bytes: Uint8Array): Uint8Array[] {
  const runs: Uint8Array[] = [];
  let from = 0;
  for (let i = 1; i < bytes.length; i += 1) {
    const isEventEnd = bytes[i - 1] === 10 && bytes[i] === 10;
    if (isEventEnd && i + 1 - from >= RUN_BYTES) {
      runs.push(bytes.subarray(from, i + 1));
      from = i + 1;
    }
  }
  if (from < bytes.length) runs.push(bytes.subarray(from));
  return runs;
}

// A stream of 80 KB is cut 80,000 times: seconds on a slow machine.
describe.skipIf(!isPresent)(`recorded streams${why}`, { timeout: 120_000 }, () => {
  test.each(streamed)('$name', ({ recording }) => {
    const bytes = chatBytes(recording);
    const frames = framesOf([bytes]);
    const answer = decodeFrames(frames);
    expectReading(answer, readChat(recording));
    expect(framesOf(Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(frames);
    if (bytes.length < 5_000) {
      for (let cut = 0; cut <= bytes.length; cut += 1) {
        expect(decodeFrames(framesOf([bytes.subarray(0, cut), bytes.subarray(cut)]))).toEqual(answer);
      }
      return;
    }
    const cuts: Frame[] = [];
    for (const run of runsOf(bytes)) {
      const expected = framesOf([run]);
      cuts.push(...expected);
      const text = JSON.stringify(expected);
      for (let cut = 0; cut <= run.length; cut += 1) {
        const got = JSON.stringify(framesOf([run.subarray(0, cut), run.subarray(cut)]));
        if (got !== text) expect(got, `cut at ${cut} of a run`).toBe(text);
      }
    }
    expect(cuts).toEqual(frames);
  });
});

describe.skipIf(!isPresent)(`recorded answers with think tags${why}`, () => {
  test('tagged content is reasoning', () => {
    const { recording } = recordings.find(({ name }) =>
      name.startsWith('groq--test-groq-test-groq-model-thinking-part-0'),
    )!;
    const state = { generation_id: 'gen-test', think_tags: true };
    const answer = accumulate(openaiChat.decodeResponse(recording.response.json!, state), 7);
    const raw = readChat(recording).text;
    const end = raw.indexOf('</think>');
    expect(raw.startsWith('<think>')).toBe(true);
    expect(reasoningOf(answer)).toBe(raw.slice('<think>'.length, end));
    expect(textOf(answer)).toBe(raw.slice(end + '</think>'.length));
  });

  test.runIf(isComplete)(
    'tags inside a reasoning field are removed, and a search is a block of its own with its sources',
    () => {
      const { recording } = recordings.find(({ name }) => name.includes('groq-model-web-search-tool-stream'))!;
      const answer = decodeFrames(framesOf([chatBytes(recording)]), { think_in_reasoning: true });
      const raw = readChat(recording);
      expect(reasoningOf(answer)).toBe(raw.reasoning.replaceAll('<think>', '').replaceAll('</think>', ''));
      expect(raw.reasoning).toContain('<think>');
      const { ext, annotations } = answer.choices[0].message;
      expect(ext?.natives).toHaveLength(1);
      expect(JSON.stringify(ext?.natives)).toContain('Weather in San Francisco');
      expect(ext?.order?.map((slot) => slot.kind)).toEqual(['reasoning', 'native', 'reasoning', 'text']);
      expect(annotations!.length).toBeGreaterThan(0);
    },
  );
});

describe.skipIf(!isPresent)(`recorded errors${why}`, () => {
  test.each(failed)('$name', ({ recording }) => {
    const body = recording.response.json as { error: { message: string; code: string } };
    const { status } = recording.response;
    const error = openaiChat.decodeError(status, {}, JSON.stringify(body));
    expect(error.message).toBe(body.error.message);
    expect(error.native_code).toBe(body.error.code);
    expect(error.status).toBe(status);
    expect(error.failure).toBe(status === 404 ? 'not_found' : 'invalid_request');
  });
});

// ---------------------------------------------------------------- requests

describe.skipIf(!isPresent)(`recorded requests${why}`, () => {
  const requests = recordings.filter(({ recording }) => recording.request?.body);
  const seen = new Set<string>();

  test.each(requests)('$name', ({ recording }) => {
    const body = recording.request!.body!;
    const request = structuredClone(body) as unknown as ChatRequest;
    const endpoint = {
      model: 'author/model',
      provider: recording.provider,
      upstream_model: String(body['model']),
      max_completion_tokens: undefined,
      context_length: undefined,
      input_modalities: ['text'],
      quirks: {},
    };
    const encoded = openaiChat.encodeRequest(request, endpoint, { media: new Map(), strip_state: false });
    expect(request, 'the request itself is unchanged').toEqual(body);
    for (const difference of differences(body, encoded.body)) {
      const reason = reasonFor(difference, CHANGED_BY_DIALECT);
      expect(reason, JSON.stringify(difference)).toBeDefined();
      seen.add(String(reason));
    }
  });

  test.each(['reasoning_content', 'reasoning'] as const)('reasoning goes back as %s by quirk, unchanged', (field) => {
    const replayed = requests.filter(({ recording }) =>
      JSON.stringify(recording.request!.body).includes(`"${field}":`),
    );
    expect(replayed.length).toBeGreaterThanOrEqual(atLeast(1, 0));
    for (const { recording } of replayed) {
      const body = recording.request!.body!;
      const endpoint = {
        model: 'author/model',
        provider: recording.provider,
        upstream_model: String(body['model']),
        max_completion_tokens: undefined,
        context_length: undefined,
        input_modalities: ['text'],
        quirks: { replay_reasoning: field },
      };
      const request = body as unknown as ChatRequest;
      const encoded = openaiChat.encodeRequest(request, endpoint, { media: new Map(), strip_state: false });
      expect(differences(body, encoded.body)).toEqual([]);
    }
  });

  test.runIf(isComplete)('every allowed change was seen', () => {
    expect([...seen].sort()).toEqual(CHANGED_BY_DIALECT.map(({ reason }) => reason).sort());
  });
});
