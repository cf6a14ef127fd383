import { describe, expect, test } from 'vitest';
import { type AttemptState, UpstreamError } from '../../src/providers/dialect.ts';
import { geminiGenerateContent } from '../../src/providers/gemini-generate-content/index.ts';
import { createFramer } from '../../src/providers/transport/frames.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatCompletion, TextPart } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { inputTokens, outputTokens } from '../../src/schemas/usage.ts';
import {
  type GeminiReading,
  geminiBytes,
  isGeminiStream,
  LIVE,
  readGemini,
} from '../readings/gemini-generate-content.ts';
import { decodeRequest } from '../readings/gemini-requests.ts';
import { array, atLeast, object, recordingsOf } from '../readings/recordings.ts';

const recordings = recordingsOf('gemini-generate-content');
const isThere = recordings.length > 0;
const STATE: AttemptState = { generation_id: 'gen-recorded' };

/** Up to this size an answer is cut at every byte; above it, at this many evenly spread places and once into single bytes. */
const CUT_EVERYWHERE_BYTES_MAX = 6_000;
const CUTS = 400;

describe.runIf(isThere)('recorded answers', () => {
  test('all recordings are there', () => expect(recordings.length).toBeGreaterThanOrEqual(atLeast(49)));

  for (const { name, recording } of recordings) {
    const { response } = recording;
    if (response.status !== 200) {
      test(`${name}: the error is classified`, () => {
        const error = geminiGenerateContent.decodeError(response.status, {}, JSON.stringify(response.json));
        const recordedError = object(object(response.json)['error']);
        const failure = response.status === 404 ? 'not_found' : 'invalid_request';
        expect([error.message, error.native_code, error.failure, error.status]).toEqual([
          recordedError['message'],
          recordedError['status'],
          failure,
          response.status,
        ]);
      });
      continue;
    }
    const bytes = geminiBytes(recording);
    if (LIVE.has(name)) {
      test(`${name}: messages of a live session are not answers of this wire`, () => {
        expect(() => decode(bytes, [])).toThrow(UpstreamError);
      });
      continue;
    }
    if (!isGeminiStream(recording)) {
      const body = object(JSON.parse(new TextDecoder().decode(bytes)));
      test(`${name}: is read like the raw body`, () => {
        const completion = accumulate(geminiGenerateContent.decodeResponse(body, STATE), 0);
        expect(essence(completion)).toEqual(readGemini(recording));
      });
      test(`${name}: streamed, the same answer accumulates to the same completion`, () => {
        const whole = accumulate(geminiGenerateContent.decodeResponse(body, STATE), 0);
        expect(decode(streamOf(body), [])).toEqual(whole);
      });
      continue;
    }
    test(`${name}: is read like the raw stream, wherever it is cut`, () => {
      expect(essence(decode(bytes, []))).toEqual(readGemini(recording));
      const whole = JSON.stringify(decode(bytes, []));
      const step = bytes.length <= CUT_EVERYWHERE_BYTES_MAX ? 1 : Math.ceil(bytes.length / CUTS);
      for (let at = 1; at < bytes.length; at += step) {
        if (JSON.stringify(decode(bytes, [at])) !== whole) expect.fail(`differs when cut at byte ${at}`);
      }
      const everywhere = Array.from({ length: bytes.length - 1 }, (_, i) => i + 1);
      expect(JSON.stringify(decode(bytes, everywhere))).toBe(whole);
    });
    test(`${name}: a stream that is cut short is an error`, () => {
      const text = new TextDecoder().decode(bytes);
      const end = text.trimEnd().lastIndexOf('data:');
      expect(() => decode(new TextEncoder().encode(text.slice(0, end)), [])).toThrow(UpstreamError);
    });
  }
});

describe.runIf(isThere)('recorded requests are unchanged, up to the normal forms', () => {
  for (const { name, recording } of recordings) {
    const { body, path } = recording.request ?? {};
    // The body of one request was not kept as its JSON.
    if (!body || body['contents'] === undefined) continue;
    test(name, () => {
      const upstreamModel = /models\/([^:]+):/.exec(path ?? '')?.[1] ?? '';
      const { request, normal } = decodeRequest(body);
      const endpoint = {
        model: 'google/gemini',
        provider: 'google',
        upstream_model: upstreamModel,
        max_completion_tokens: undefined,
        context_length: undefined,
        input_modalities: ['text', 'image', 'file', 'audio', 'video'],
        quirks: { google_cloud: recording.provider === 'google-vertex' },
      };
      const { body: sent, path: target } = geminiGenerateContent.encodeRequest(
        { ...request, stream: recording.stream },
        endpoint,
        { media: new Map(), strip_state: false },
      );
      expect(decodeRequest(sent).normal).toEqual(normal);
      expect((path ?? '').endsWith(target.split('?')[0]!)).toBe(true);
    });
  }
});

// ---- The parts that the tests compare.

function essence({ choices: [choice], ext }: ChatCompletion): GeminiReading {
  const { message } = choice;
  const { content } = message;
  const parts =
    typeof content === 'string' ? [{ type: 'text' as const, text: content }] : ((content ?? []) as TextPart[]);
  const text = parts.map((part) => part.text).join('');
  const points = [...text];
  const details = message.reasoning_details ?? [];
  const usage = ext.usage;
  return {
    text,
    thoughts: message.reasoning ?? '',
    signatures: details.flatMap((detail) => {
      if (detail.type === 'reasoning.encrypted') return [detail.data];
      return detail.type === 'reasoning.text' && detail.signature ? [detail.signature] : [];
    }),
    calls: (message.tool_calls ?? []).map(({ id, function: { name, arguments: text } }) => ({
      id: /^call_[0-9A-Za-z]{24}$/.test(id) ? '' : id,
      name,
      args: JSON.parse(text),
    })),
    natives: message.ext?.natives?.length ?? 0,
    finish: String(choice.finish_reason),
    native_finish: String(choice.native_finish_reason),
    citations: (message.annotations ?? []).map((annotation) => {
      const { url, start_index, end_index } = object(object({ ...annotation })['url_citation']);
      return { url: String(url), text: points.slice(Number(start_index), Number(end_index)).join('') };
    }),
    tokens:
      usage === undefined
        ? undefined
        : {
            prompt: inputTokens(usage),
            cached: usage.in_cache_read ?? 0,
            completion: outputTokens(usage),
            thoughts: usage.out_reasoning ?? 0,
          },
  };
}

function decode(bytes: Uint8Array, cuts: number[]): ChatCompletion {
  const framer = createFramer(geminiGenerateContent.frames);
  const decoder = geminiGenerateContent.createStreamDecoder({ ...STATE });
  const chunks = [];
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    for (const frame of framer.push(bytes.subarray(from, to))) chunks.push(...decoder.push(frame));
    from = to;
  }
  for (const frame of framer.end()) chunks.push(...decoder.push(frame));
  chunks.push(...decoder.end());
  return accumulate(chunks, 0);
}

/** A whole answer as a stream of its parts: the usage grows, and the members of the candidate arrive last. */
function streamOf(body: JsonObject): Uint8Array {
  const [candidate, ...others] = array(body['candidates']).map(object);
  const frame = (event: JsonObject) => `data: ${JSON.stringify(event)}\n\n`;
  if (candidate === undefined || others.length > 0) return new TextEncoder().encode(frame(body));
  const { content, ...rest } = candidate;
  const { candidates: _, usageMetadata, ...head } = body;
  const parts = array(object(content)['parts']);
  const reason = candidate['finishReason'];
  // A call that is not to be run arrives in the event that says so.
  const isHidden = reason === 'UNEXPECTED_TOOL_CALL';
  const events = (isHidden ? [] : parts).map((part) => ({
    ...head,
    candidates: [{ content: { parts: [part], role: 'model' } }],
  }));
  const last = { ...head, usageMetadata: usageMetadata ?? {}, candidates: [isHidden ? candidate : rest] };
  return new TextEncoder().encode([...events, last].map(frame).join(''));
}
