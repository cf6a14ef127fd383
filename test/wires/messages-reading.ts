/** Messages answers made without a gateway: recorded bytes through a dialect into the Messages encoder. */
import { BetaMessageStream } from '@anthropic-ai/sdk/lib/BetaMessageStream';
import { MessageStream } from '@anthropic-ai/sdk/lib/MessageStream';
import { encodeMessage } from '../../src/api/messages/encode.ts';
import { createMessagesStream } from '../../src/api/messages/stream.ts';
import type { ReasoningShown } from '../../src/api/messages/thinking.ts';
import { createEnvelopes } from '../../src/inference/reasoning/envelope.ts';
import type { AttemptState } from '../../src/providers/dialect.ts';
import { dialects } from '../../src/providers/dialects.ts';
import { createFramer } from '../../src/providers/transport/frames.ts';
import { accumulate } from '../../src/schemas/accumulate.ts';
import type { ChatChunk, ChatCompletion, Wire } from '../../src/schemas/inner.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { publicUsage } from '../../src/schemas/usage.ts';

export const STATE: AttemptState = { generation_id: `gen-1700000000-${'r'.repeat(20)}` };
export const SERVED = { model: 'recorded/model', provider: 'Recorded' };
export const envelope = createEnvelopes('a secret of at least thirty-two characters')('organization');

const costs = {
  cost: 0.5,
  is_byok: false,
  cost_details: {
    upstream_inference_cost: null,
    upstream_inference_prompt_cost: 0.2,
    upstream_inference_completions_cost: 0.3,
  },
};

/** The chunks of recorded bytes that arrive in parts with these boundaries. */
export function chunksOf(wire: Wire, bytes: Uint8Array, cuts: readonly number[] = []): ChatChunk[][] {
  const dialect = dialects.get(wire)!;
  const framer = createFramer(dialect.frames);
  const decoder = dialect.createStreamDecoder({ ...STATE });
  const batches: ChatChunk[][] = [];
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    batches.push(framer.push(bytes.subarray(from, to)).flatMap((frame) => decoder.push(frame)));
    from = to;
  }
  batches.push([...framer.end().flatMap((frame) => decoder.push(frame)), ...decoder.end()]);
  return batches;
}

/** The text of a stream of these chunks. */
export function streamText(batches: readonly ChatChunk[][], reasoning: ReasoningShown = 'shown'): string {
  const encoder = createMessagesStream({ id: STATE.generation_id, envelope, reasoning });
  const { usage } = accumulate(batches.flat(), 0).ext;
  return [
    encoder.open(SERVED),
    ...batches.map((chunks) => encoder.chunks(chunks)),
    encoder.end({
      type: 'end',
      usage: { ...publicUsage(usage ?? {}), ...costs },
      classes: usage ?? null,
      metadata: undefined,
      error: undefined,
    }),
  ].join('');
}

/** A whole answer as its client receives it. */
export function wholeMessage(completion: ChatCompletion, reasoning: ReasoningShown = 'shown'): JsonObject {
  return JSON.parse(wholeText(completion, reasoning)) as JsonObject;
}

/** The same in its serialized form. */
export function wholeText(completion: ChatCompletion, reasoning: ReasoningShown = 'shown'): string {
  const { usage } = completion.ext;
  return encodeMessage(
    {
      completion,
      served: SERVED,
      usage: { ...publicUsage(usage ?? {}), ...costs },
      classes: usage ?? null,
      metadata: undefined,
    },
    { id: STATE.generation_id, envelope, reasoning },
  );
}

/**
 * The message that the official client builds from a stream's events; only its beta part knows the newer types of
 * blocks.
 */
export async function accumulatedBySdk(events: readonly JsonObject[], side: 'stable' | 'beta'): Promise<JsonObject> {
  const lines = events.filter(({ type }) => type !== 'ping').map((event) => `${JSON.stringify(event)}\n`);
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const line of lines) controller.enqueue(new TextEncoder().encode(line));
      controller.close();
    },
  });
  const stream =
    side === 'stable' ? MessageStream.fromReadableStream(body) : BetaMessageStream.fromReadableStream(body);
  // The client computes inputs of tools lazily.
  return JSON.parse(JSON.stringify(await stream.finalMessage())) as JsonObject;
}
