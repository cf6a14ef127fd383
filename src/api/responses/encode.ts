import type { WholeAnswer } from '../../inference/events.ts';
import type { Envelope } from '../../inference/reasoning/envelope.ts';
import type { JsonPart } from '../shared/json-parts.ts';
import { turnChunks } from '../shared/turn-chunks.ts';
import type { DeclaredTools } from './declared-tools.ts';
import { type Events, NO_EVENTS } from './events.ts';
import { createItems, type Items } from './items.ts';
import { endingOf, type FinishedFacts, itemStatusOf, type ResponseObject } from './response-object.ts';

/** The input of the encoding of an answer. */
export interface ResponseContext {
  generation_id: string;
  response: ResponseObject;
  tools: DeclaredTools;
  envelope: Envelope;
  /** The client wants no reasoning in the answer. */
  hide_reasoning: boolean;
  /** The client requested a summary of the reasoning. */
  wants_summary: boolean;
  shows_logprobs: boolean;
  /** Unix seconds. */
  now(): number;
}

/** Makes the output items of one answer. They write to `events`, which may be discarded. */
export function itemsOf(context: ResponseContext, events: Events): Items {
  return createItems({ ...context, events });
}

/** The whole answer as a Response object in parts of JSON, equal to that in the last event of its stream. */
export function responseParts(answer: WholeAnswer, context: ResponseContext): JsonPart[] {
  return context.response.finished(factsOf(answer, context));
}

/** The facts about a whole answer. */
export function factsOf({ completion, served, usage, metadata }: WholeAnswer, context: ResponseContext): FinishedFacts {
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
