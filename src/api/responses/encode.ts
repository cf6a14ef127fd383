import type { WholeAnswer } from '../../inference/events.ts';
import type { Envelope } from '../../inference/reasoning/envelope.ts';
import type { JsonPart } from '../shared/json-parts.ts';
import { turnChunks } from '../shared/turn-chunks.ts';
import type { DeclaredTools } from './declared-tools.ts';
import { type Events, NO_EVENTS } from './events.ts';
import { createItems, type Items } from './items.ts';
import { endingOf, itemStatusOf, type ResponseObject, type Told } from './response-object.ts';

/** What tells an answer in this API. */
export interface ResponseContext {
  generation_id: string;
  response: ResponseObject;
  tools: DeclaredTools;
  envelope: Envelope;
  /** The client wants no reasoning shown. */
  hide_reasoning: boolean;
  /** The client asked for a summary of the reasoning. */
  wants_summary: boolean;
  shows_logprobs: boolean;
  /** Unix seconds. */
  now(): number;
}

/** The output of one answer, with events that somebody reads or nobody. */
export function itemsOf(context: ResponseContext, events: Events): Items {
  return createItems({ ...context, events });
}

/** The whole answer as a Response object: what the last event of its stream would tell. */
export function encodeResponse(answer: WholeAnswer, context: ResponseContext): string {
  return context.response.finished(toldOf(answer, context));
}

/** The same as the parts of its JSON. */
export function responseParts(answer: WholeAnswer, context: ResponseContext): JsonPart[] {
  return context.response.finishedParts(toldOf(answer, context));
}

function toldOf({ completion, served, usage, metadata }: WholeAnswer, context: ResponseContext): Told {
  const [{ finish_reason, error }] = completion.choices;
  const items = itemsOf(context, NO_EVENTS);
  for (const chunk of turnChunks(completion)) items.take(chunk);
  const ending = endingOf(finish_reason, error, undefined);
  items.end(itemStatusOf(ending));
  return {
    served,
    output: items.output,
    ending,
    usage,
    service_tier: completion.service_tier ?? null,
    remainder: completion.ext,
    metadata,
    completed_at: context.now(),
  };
}
