import type { WholeAnswer } from '../../inference/events.ts';
import type { ClientAnswer, ClientStream } from '../shared/answer-call.ts';
import { encodeResponse, type ResponseContext } from './encode.ts';
import type { OutputItem } from './items.ts';
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

/** A Response object that records how it was finished. */
function remembering(response: ResponseObject): ResponseObject & { facts?: FinishedFacts; json?: string } {
  const kept: ResponseObject & { facts?: FinishedFacts; json?: string } = {
    repeatedBytes: response.repeatedBytes,
    started: response.started,
    finishedParts: response.finishedParts,
    finished(facts) {
      kept.facts = facts;
      kept.json = response.finished(facts);
      return kept.json;
    },
  };
  return kept;
}

type Remembering = ReturnType<typeof remembering>;

/** The text after the response was stored, or with a Response object that says that it was not. */
async function settled(
  text: string,
  { facts, json }: Remembering,
  output: readonly OutputItem[],
  { keep, unstored }: Keeping,
): Promise<string> {
  if (facts === undefined || json === undefined) return text;
  const finished = { response: json, output: output.map((item) => item.json) };
  if (facts.ending.status !== 'failed' && (await keep(finished))) return text;
  const at = text.lastIndexOf(json);
  return text.slice(0, at) + unstored.finished(facts) + text.slice(at + json.length);
}

/** The context for the stored answer, which includes hidden reasoning, since a request that continues it needs that. */
function whole(context: ResponseContext): { context: ResponseContext; response: Remembering } {
  const response = remembering(context.response);
  return { context: { ...context, hide_reasoning: false, response }, response };
}

/** Encodes an answer that is stored before its client receives the end. A failed answer is not stored. */
export function storedAnswer(context: ResponseContext, keeping: Keeping): Pick<ClientAnswer, 'whole' | 'stream'> {
  return {
    whole: (answer) => encodeStored(answer, context, keeping),
    stream: () => createStoredStream(context, keeping),
  };
}

async function encodeStored(answer: WholeAnswer, context: ResponseContext, keeping: Keeping): Promise<string> {
  const response = remembering(context.response);
  const text = encodeResponse(answer, { ...context, response });
  if (!context.hide_reasoning) return settled(text, response, response.facts?.output ?? [], keeping);
  const unhidden = whole(context);
  encodeResponse(answer, unhidden.context);
  return settled(text, response, unhidden.response.facts?.output ?? [], keeping);
}

function createStoredStream(context: ResponseContext, keeping: Keeping): ClientStream {
  const response = remembering(context.response);
  const encoder = createResponseStream({ ...context, response });
  const unhidden = context.hide_reasoning ? whole(context) : undefined;
  const hidden = unhidden && createResponseStream(unhidden.context);
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
    end(facts) {
      hidden?.end(facts);
      const text = encoder.end(facts);
      const { facts: finished } = unhidden?.response ?? response;
      return settled(text, response, finished?.output ?? [], keeping);
    },
    failed(error, userId) {
      const text = encoder.failed(error, userId);
      const { facts, json = '' } = response;
      return facts === undefined ? text : text.replace(json, () => keeping.unstored.finished(facts));
    },
  };
}
