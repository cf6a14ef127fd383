import type { WholeAnswer } from '../../inference/events.ts';
import type { ClientAnswer, ClientStream } from '../shared/answer-call.ts';
import { encodeResponse, type ResponseContext } from './encode.ts';
import type { OutputItem } from './items.ts';
import type { ResponseObject, Told } from './response-object.ts';
import type { FinishedResponse } from './stored-responses.ts';
import { createResponseStream } from './stream.ts';

/** What becomes of an answer that is to be kept. */
export interface Keeping {
  /** The Response object of an answer that could not be kept: it says so. `response` is that of one that was. */
  unstored: ResponseObject;
  /** Keeps the finished response; whether it did. */
  keep(finished: FinishedResponse): Promise<boolean>;
}

/** A Response object that remembers how it was finished. */
function remembering(response: ResponseObject): ResponseObject & { told?: Told; json?: string } {
  const kept: ResponseObject & { told?: Told; json?: string } = {
    repeatedBytes: response.repeatedBytes,
    begun: response.begun,
    finishedParts: response.finishedParts,
    finished(told) {
      kept.told = told;
      kept.json = response.finished(told);
      return kept.json;
    },
  };
  return kept;
}

type Remembering = ReturnType<typeof remembering>;

/** The text once what it tells is kept, or with a Response object that says that it is not. */
async function settled(
  text: string,
  { told, json }: Remembering,
  output: readonly OutputItem[],
  { keep, unstored }: Keeping,
): Promise<string> {
  if (told === undefined || json === undefined) return text;
  const finished = { response: json, output: output.map((item) => item.json) };
  if (told.ending.status !== 'failed' && (await keep(finished))) return text;
  const at = text.lastIndexOf(json);
  return text.slice(0, at) + unstored.finished(told) + text.slice(at + json.length);
}

/** The answer with the reasoning that the client is not shown, which a request that goes on from it needs. */
function whole(context: ResponseContext): { context: ResponseContext; response: Remembering } {
  const response = remembering(context.response);
  return { context: { ...context, hide_reasoning: false, response }, response };
}

/** How an answer is told that is kept before its client hears of its end. A failed one is not kept. */
export function storedAnswer(context: ResponseContext, keeping: Keeping): Pick<ClientAnswer, 'whole' | 'stream'> {
  return {
    whole: (answer) => encodeStored(answer, context, keeping),
    stream: () => createStoredStream(context, keeping),
  };
}

async function encodeStored(answer: WholeAnswer, context: ResponseContext, keeping: Keeping): Promise<string> {
  const response = remembering(context.response);
  const text = encodeResponse(answer, { ...context, response });
  if (!context.hide_reasoning) return settled(text, response, response.told?.output ?? [], keeping);
  const unhidden = whole(context);
  encodeResponse(answer, unhidden.context);
  return settled(text, response, unhidden.response.told?.output ?? [], keeping);
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
    end(told) {
      hidden?.end(told);
      const text = encoder.end(told);
      const { told: finished } = unhidden?.response ?? response;
      return settled(text, response, finished?.output ?? [], keeping);
    },
    failed(error, user_id) {
      const text = encoder.failed(error, user_id);
      const { told, json = '' } = response;
      return told === undefined ? text : text.replace(json, () => keeping.unstored.finished(told));
    },
  };
}
