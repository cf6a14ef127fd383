import type { GatewayError } from '../../errors.ts';
import type { Served, StreamEnd } from '../../inference/events.ts';
import { NO_USAGE } from '../../inference/money/settlement.ts';
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
  let finish_reason: FinishReason | null = null;
  let error: ChoiceError | undefined;
  let service_tier: string | null = null;
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
    const ending = endingOf(finish_reason, error, failure);
    if (failure === undefined) items.end(itemStatusOf(ending));
    else items.breakOff();
    const { output } = items;
    const completed_at = context.now();
    const told = { served, output, ending, usage, service_tier, remainder, metadata, completed_at };
    events.send(`response.${ending.status}`, `,"response":${response.finished(told)}`);
    return events.take() + DONE;
  }

  return {
    open(answering) {
      const is_first = served === undefined;
      served = answering;
      if (is_first) begin();
      else items.resume();
      return events.take();
    },
    debug({ body: echo_upstream_body }) {
      events.send('response.debug', `,"debug":${JSON.stringify({ echo_upstream_body })}`);
      return events.take();
    },
    chunks(chunks) {
      for (const chunk of chunks) {
        const told = chunk.ext?.response;
        if (told?.rest !== undefined && told.wire !== undefined) remainder = { wire: told.wire, rest: told.rest };
        service_tier = chunk.service_tier ?? service_tier;
        error = chunk.error ?? error;
        items.take(chunk);
        if (chunk.finish_reason == null) continue;
        finish_reason = chunk.finish_reason;
        // Nothing of the output is still to come, though its bill may be.
        items.end(itemStatusOf(endingOf(finish_reason, error, undefined)));
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
