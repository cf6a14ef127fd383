import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { inTier } from '../../../test/tier.ts';
import { accumulate } from '../../schemas/accumulate.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { type AttemptState, UpstreamError } from '../dialect.ts';
import { createFramer } from '../transport/frames.ts';
import { geminiGenerateContent } from './index.ts';

const STATE: AttemptState = { generation_id: 'gen-1' };
const stop = { finishReason: 'STOP' };

function event(parts: JsonValue[], more: JsonObject = {}, beside: JsonObject = {}): JsonObject {
  return { candidates: [{ content: { parts, role: 'model' }, ...more }], responseId: 'r1', ...beside };
}

describe('arbitrary input', () => {
  const part = fc.oneof(
    fc.record({ text: fc.string(), thought: fc.boolean(), thoughtSignature: fc.string() }, { requiredKeys: [] }),
    fc.record({
      functionCall: fc.record(
        {
          name: fc.string(),
          args: fc.object(),
          id: fc.string(),
          willContinue: fc.boolean(),
          partialArgs: fc.array(fc.record({ jsonPath: fc.string(), stringValue: fc.string() })),
        },
        { requiredKeys: [] },
      ),
    }),
    fc.record({
      inlineData: fc.record({ mimeType: fc.constantFrom('image/png', 'audio/pcm', 'x'), data: fc.string() }),
    }),
    fc.object(),
  );
  const anything = fc.oneof(
    fc.record(
      {
        candidates: fc.array(
          fc.record(
            {
              content: fc.record({ parts: fc.array(part) }),
              finishReason: fc.constantFrom('STOP', '', 'SAFETY'),
              groundingMetadata: fc.object(),
              logprobsResult: fc.anything(),
            },
            { requiredKeys: [] },
          ),
        ),
        usageMetadata: fc.object(),
        promptFeedback: fc.object(),
      },
      { requiredKeys: [] },
    ),
    fc.anything(),
  );

  test('an event is decoded or refused with an UpstreamError', () => {
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 6 }), (events) => {
        const decoder = geminiGenerateContent.createStreamDecoder({ ...STATE });
        expectRefusal(() => {
          const chunks = events.flatMap((one) => decoder.push({ event: undefined, data: JSON.stringify(one) ?? '' }));
          accumulate([...chunks, ...decoder.end()], 0);
        });
      }),
      { seed: 20261121, numRuns: inTier(200, 2_000) },
    );
  });

  const stream = [
    event([{ text: 'Think', thought: true }], {}, { usageMetadata: { promptTokenCount: 3, totalTokenCount: 9 } }),
    event([{ text: 'Žluť 🌍' }]),
    event([{ functionCall: { name: 'a', args: { b: [1] } }, thoughtSignature: 'c2ln' }]),
    event([], stop, { usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 9 } }),
  ].map((one) => `data: ${JSON.stringify(one)}\r\n\r\n`);
  const bytesOf = (texts: string[]) => new TextEncoder().encode(texts.join(''));
  const read = (bytes: Uint8Array) => {
    const framer = createFramer('sse');
    const decoder = geminiGenerateContent.createStreamDecoder({ ...STATE });
    const frames = [...framer.push(bytes), ...framer.end()];
    return accumulate([...frames.flatMap((frame) => decoder.push(frame)), ...decoder.end()], 0);
  };

  test('truncated, changed, doubled or reordered bytes are an answer or an error', () => {
    const whole = bytesOf(stream);
    fc.assert(
      fc.property(
        fc.nat(whole.length),
        fc.nat(255),
        fc.shuffledSubarray([...stream, ...stream]),
        (at, byte, shuffled) => {
          const changed = whole.slice();
          changed[at % whole.length] = byte;
          expectRefusal(() => read(whole.subarray(0, at)));
          expectRefusal(() => read(changed));
          expectRefusal(() => read(bytesOf(shuffled)));
        },
      ),
      { seed: 20261121, numRuns: inTier(125, 500) },
    );
  });

  test('a stream without its end is an error', () => {
    const whole = bytesOf(stream);
    for (let at = 0; at < bytesOf(stream.slice(0, 3)).length; at += 1)
      expect(() => read(whole.subarray(0, at))).toThrow(UpstreamError);
  });

  function expectRefusal(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
    }
  }
});
