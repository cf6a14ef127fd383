import type { WholeAnswer } from '../../inference/events.ts';
import type { ClientAnswer, ClientStream } from '../shared/answer-call.ts';
import { writeParts } from '../shared/json-parts.ts';
import { factsOf, type ResponseContext } from './encode.ts';
import type { FinishedFacts, ResponseObject } from './response-object.ts';
import type { FinishedResponse } from './stored-responses.ts';
import { createResponseStream } from './stream.ts';

/** How an answer is stored. */
export interface Keeping {
  /** The Response object for an answer that could not be stored, which states `store: false`. */
  unstored: ResponseObject;
  /** Stores the finished response. Resolves to whether it was stored. */
  keep(finished: FinishedResponse): Promise<boolean>;
}

/** The Response object that the client receives, after the answer was stored if it can be. */
async function shownAfterStoring(
  facts: FinishedFacts,
  { output }: Pick<FinishedFacts, 'output'>,
  { response }: ResponseContext,
  { keep, unstored }: Keeping,
): Promise<ResponseObject> {
  if (facts.ending.status === 'failed') return unstored;
  return (await keep({ response: response.finished(facts), output })) ? response : unstored;
}

/** The context for the stored answer, which includes hidden reasoning, since a request that continues it needs that. */
function unhidden(context: ResponseContext): ResponseContext {
  return { ...context, hide_reasoning: false };
}

/** Encodes an answer that is stored before its client receives the end. A failed answer is not stored. */
export function storedAnswer(context: ResponseContext, keeping: Keeping): Pick<ClientAnswer, 'whole' | 'stream'> {
  return {
    whole: (answer) => encodeStored(answer, context, keeping),
    stream: () => createStoredStream(context, keeping),
  };
}

async function encodeStored(answer: WholeAnswer, context: ResponseContext, keeping: Keeping): Promise<string | Buffer> {
  const facts = factsOf(answer, context);
  const stored = context.hide_reasoning ? factsOf(answer, unhidden(context)) : facts;
  const shown = await shownAfterStoring(facts, stored, context, keeping);
  return writeParts(shown.finished(facts));
}

function createStoredStream(context: ResponseContext, keeping: Keeping): ClientStream {
  const encoder = createResponseStream(context);
  const hidden = context.hide_reasoning ? createResponseStream(unhidden(context)) : undefined;
  return {
    open(served) {
      hidden?.open(served);
      return encoder.open(served);
    },
    debug: encoder.debug,
    chunks(chunks) {
      hidden?.chunks(chunks);
      return encoder.chunks(chunks);
    },
    async end(end) {
      const facts = encoder.finish(end);
      const stored = hidden?.finish(end) ?? facts;
      return encoder.last(facts, await shownAfterStoring(facts, stored, context, keeping));
    },
    failed: (error, userId) => encoder.failed(error, userId, keeping.unstored),
  };
}
