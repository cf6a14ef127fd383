import type { GatewayError } from '../../errors.ts';
import type { Served, StreamEnd } from '../../inference/events.ts';
import { NO_USAGE } from '../../inference/money/answer-usage.ts';
import type { ChoiceError, Ext, FinishReason } from '../../schemas/inner.ts';
import type { StreamEncoder } from '../shared/answer-call.ts';
import { itemsOf, type ResponseContext } from './encode.ts';
import { createEvents } from './events.ts';
import { endingOf, itemStatusOf } from './response-object.ts';

const DONE = 'data: [DONE]\n\n';

/** Makes the encoder of one stream (https://platform.openai.com/docs/api-reference/responses-streaming). */
export function createResponseStream(context: ResponseContext): StreamEncoder {
  const { response } = context;
  const events = createEvents();
  const items = itemsOf(context, events);
  let served: Served | undefined;
  let finishReason: FinishReason | null = null;
  let error: ChoiceError | undefined;
  let serviceTier: string | null = null;
  let remainder: Ext | undefined;

  function begin(): void {
    const started = `,"response":${response.started(served)}`;
    events.send('response.created', started);
    events.send('response.in_progress', started);
  }

  function finish(
    { usage, metadata }: Pick<StreamEnd, 'usage' | 'metadata'>,
    failure: GatewayError | undefined,
  ): string {
    const ending = endingOf(finishReason, error, failure);
    if (failure === undefined) items.end(itemStatusOf(ending));
    else items.breakOff();
    const { output } = items;
    const completedAt = context.now();
    const facts = {
      served,
      output,
      ending,
      usage,
      service_tier: serviceTier,
      remainder,
      metadata,
      completed_at: completedAt,
    };
    events.send(`response.${ending.status}`, `,"response":${response.finished(facts)}`);
    return events.take() + DONE;
  }

  return {
    open(answering) {
      const isFirst = served === undefined;
      served = answering;
      if (isFirst) begin();
      else items.resume();
      return events.take();
    },
    debug({ body: echoUpstreamBody }) {
      events.send('response.debug', `,"debug":${JSON.stringify({ echo_upstream_body: echoUpstreamBody })}`);
      return events.take();
    },
    chunks(chunks) {
      for (const chunk of chunks) {
        const facts = chunk.ext?.response;
        if (facts?.rest !== undefined && facts.wire !== undefined) remainder = { wire: facts.wire, rest: facts.rest };
        serviceTier = chunk.service_tier ?? serviceTier;
        error = chunk.error ?? error;
        items.take(chunk);
        if (chunk.finish_reason == null) continue;
        finishReason = chunk.finish_reason;
        // All output has arrived, though usage may follow.
        items.end(itemStatusOf(endingOf(finishReason, error, undefined)));
      }
      return events.takeEach();
    },
    end: (end) => finish(end, end.error),
    failed(failure) {
      begin();
      return finish({ usage: NO_USAGE, metadata: failure.gateway_metadata }, failure);
    },
  };
}
