import type { GatewayError } from '../../errors.ts';
import { NO_USAGE } from '../../inference/money/settlement.ts';
import type { Served, StreamEnd } from '../../inference/stream-answer.ts';
import type { ChoiceError, Ext, FinishReason } from '../../schemas/inner.ts';
import type { StreamEncoder } from '../shared/answer-call.ts';
import { itemsOf, type ResponseContext } from './encode.ts';
import { createEvents } from './events.ts';
import { endingOf, itemStatusOf } from './response-object.ts';

const DONE = 'data: [DONE]\n\n';

/** Makes the stream of one answer (https://platform.openai.com/docs/api-reference/responses-streaming). */
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
    const begun = `,"response":${response.begun(served)}`;
    events.send('response.created', begun);
    events.send('response.in_progress', begun);
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
    const told = {
      served,
      output,
      ending,
      usage,
      service_tier: serviceTier,
      remainder,
      metadata,
      completed_at: completedAt,
    };
    events.send(`response.${ending.status}`, `,"response":${response.finished(told)}`);
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
        const told = chunk.ext?.response;
        if (told?.rest !== undefined && told.wire !== undefined) remainder = { wire: told.wire, rest: told.rest };
        serviceTier = chunk.service_tier ?? serviceTier;
        error = chunk.error ?? error;
        items.take(chunk);
        if (chunk.finish_reason == null) continue;
        finishReason = chunk.finish_reason;
        // Nothing of the output is still to come, though its bill may be.
        items.end(itemStatusOf(endingOf(finishReason, error, undefined)));
      }
      return events.take();
    },
    end: (told) => finish(told, told.error),
    failed(failure) {
      begin();
      return finish({ usage: NO_USAGE, metadata: failure.gateway_metadata }, failure);
    },
  };
}
