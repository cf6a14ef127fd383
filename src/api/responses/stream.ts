import type { GatewayError } from '../../errors.ts';
import type { Served, StreamEnd } from '../../inference/events.ts';
import { NO_USAGE } from '../../inference/money/answer-usage.ts';
import type { ChoiceError, Ext, FinishReason } from '../../schemas/inner.ts';
import type { StreamEncoder } from '../shared/answer-call.ts';
import { partTexts } from '../shared/json-parts.ts';
import { itemsOf, type ResponseContext } from './encode.ts';
import { createEvents } from './events.ts';
import { endingOf, type FinishedFacts, itemStatusOf, type ResponseObject } from './response-object.ts';

const DONE = 'data: [DONE]\n\n';

/** The encoder of one stream, whose end can be made in two steps. */
export interface ResponseStream extends StreamEncoder {
  /** Ends the items. Returns the facts for the last event. */
  finish(end: StreamEnd): FinishedFacts;
  /** The remaining events, of which the last shows this Response object. */
  last(facts: FinishedFacts, shown: ResponseObject): string | readonly string[];
  /** `shown`: the Response object of the last event, if it is not that of the others. */
  failed(failure: GatewayError, userId: string | null, shown?: ResponseObject): string;
}

/** Makes the encoder of one stream (https://platform.openai.com/docs/api-reference/responses-streaming). */
export function createResponseStream(context: ResponseContext): ResponseStream {
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
  ): FinishedFacts {
    const ending = endingOf(finishReason, error, failure);
    if (failure === undefined) items.end(itemStatusOf(ending));
    else items.breakOff();
    const { output } = items;
    const completedAt = context.now();
    return {
      served,
      output,
      ending,
      usage,
      service_tier: serviceTier,
      remainder,
      metadata,
      completed_at: completedAt,
    };
  }

  function last(facts: FinishedFacts, shown: ResponseObject): string | readonly string[] {
    events.send(`response.${facts.ending.status}`, [',"response":', ...partTexts(shown.finished(facts))]);
    const texts = events.takeEach();
    return typeof texts === 'string' ? texts + DONE : [...texts, DONE];
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
    finish: (end) => finish(end, end.error),
    last,
    end: (end) => last(finish(end, end.error), response),
    failed(failure, _userId, shown = response) {
      begin();
      const texts = last(finish({ usage: NO_USAGE, metadata: failure.gateway_metadata }, failure), shown);
      return typeof texts === 'string' ? texts : texts.join('');
    },
  };
}
