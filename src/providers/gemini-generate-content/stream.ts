import { limits } from '../../limits.ts';
import { append } from '../../schemas/append.ts';
import type { ChatChunk, ChoiceError, ResponseExt } from '../../schemas/inner.ts';
import { type JsonObject, type JsonValue, parseJson } from '../../schemas/json.ts';
import { type AttemptState, type Frame, type StreamDecoder, UpstreamError } from '../dialect.ts';
import { asArray, asObject, asText, remainder } from '../shared/json-shape.ts';
import { errorInside } from './errors.ts';
import { finishReason, hidesCalls } from './finish.ts';
import { annotationsOf, createGrounding } from './grounding.ts';
import { createTurn, type DecoderState, logprobsOf } from './turn.ts';
import { createUsageReader } from './usage.ts';
import { WIRE } from './wire.ts';

/** Turns the wire's events, each a whole `GenerateContentResponse`, into chunks. A whole answer is one event. */
export interface EventDecoder {
  push(event: JsonObject): ChatChunk[];
  /** A body that came whole has ended also where it tells no reason to stop: in an error, where nothing is in it. */
  end(isBody?: boolean): ChatChunk[];
  /** The reason to stop was told: only counts may still come. */
  isWhole(): boolean;
}

/** Reads one stream of `streamGenerateContent?alt=sse` (https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent). */
export function createStreamDecoder(state: AttemptState): StreamDecoder {
  const decoder = createEventDecoder(state);
  return {
    push(frame) {
      const event = parseFrame(frame);
      return event === undefined ? [] : decoder.push(event);
    },
    isWhole: decoder.isWhole,
    end: () => decoder.end(),
  };
}

function parseFrame({ data, event }: Frame): JsonObject | undefined {
  // Some proxies close the stream the way OpenAI does.
  if (data === '' || data === '[DONE]') return undefined;
  let value: JsonValue;
  try {
    value = parseJson(data);
  } catch {
    throw invalid('The provider sent an event that is not JSON.', data);
  }
  const told = asObject(Array.isArray(value) ? value[0] : value);
  if (told === undefined) throw invalid('The provider sent an event that is not an object.', data);
  if (event === 'error' || told['error'] != null) throw errorInside(told);
  return told;
}

/** What a candidate tells beside its content, kept as the last one said. */
const SPOKEN = ['content', 'finishReason', 'index', 'logprobsResult', 'tokenCount', 'groundingMetadata'];
/** What makes an object an answer of this wire; any other is none (a live session's message, a demonstration server's page). */
const MARKS = ['candidates', 'promptFeedback', 'usageMetadata', 'modelVersion', 'responseId'];

/** Makes the decoder of one answer. */
export function createEventDecoder(state: DecoderState): EventDecoder {
  const turn = createTurn(state);
  const usage = createUsageReader();
  let isStarted = false;
  let isEnded = false;
  let requestId: string | undefined;
  let tier: string | undefined;
  const grounding = createGrounding();
  /** What was told last, field by field. */
  const candidate: JsonObject = {};
  const rest: JsonObject = {};
  let reason: string | undefined;
  let blocked: JsonObject | undefined;

  function response(isFinal: boolean): ResponseExt {
    const classes = usage.classes(isFinal);
    const searches = grounding.searches(state.generation);
    const counted = classes !== undefined && searches > 0 ? { ...classes, counts: { web_search: searches } } : classes;
    return {
      wire: WIRE,
      rest: isFinal ? { ...rest, ...candidate, ...grounded() } : {},
      ...(requestId === undefined ? {} : { requestId }),
      ...(counted === undefined ? {} : { usage: counted }),
    };
  }

  function grounded(): { groundingMetadata?: JsonObject } {
    const groundingMetadata = grounding.metadata();
    return groundingMetadata === undefined ? {} : { groundingMetadata };
  }

  function takeCandidate(told: JsonObject): ChatChunk[] {
    // The gateway asks for one candidate; what a server adds of its own accord is not mixed into it.
    if (typeof told['index'] === 'number' && told['index'] > 0) return [];
    const stated = asText(told['finishReason']);
    grounding.take(asObject(told['groundingMetadata']));
    Object.assign(candidate, remainder(told, SPOKEN));
    const chunks: ChatChunk[] = [];
    for (const value of asArray(asObject(told['content'])?.['parts'])) {
      const part = asObject(value);
      if (part === undefined || (part['functionCall'] !== undefined && hidesCalls(stated))) continue;
      const read = turn.take(part);
      if (read === undefined) throw invalid('The provider sent a part that cannot be read.', part);
      append(chunks, read);
    }
    const logprobs = logprobsOf(told['logprobsResult']);
    if (logprobs !== undefined) {
      const said = chunks.findLast(({ delta }) => delta.content !== undefined);
      // The probabilities belong to the text they come with.
      if (said !== undefined) said.logprobs = logprobs;
      else chunks.push({ delta: {}, logprobs });
    }
    if (stated !== '' && stated !== 'FINISH_REASON_UNSPECIFIED') reason = stated;
    return chunks;
  }

  function push(event: JsonObject): ChatChunk[] {
    if (isEnded) return [];
    if (event['error'] != null) throw errorInside(event);
    if (!MARKS.some((mark) => event[mark] !== undefined)) {
      // Within an answer it is no reason to lose the answer.
      if (isStarted) return [];
      throw invalid('The provider sent an event that is no part of an answer.', event);
    }
    requestId ??= asText(event['responseId']) || undefined;
    const counted = asObject(event['usageMetadata']);
    if (counted !== undefined) {
      usage.take(counted);
      tier = tierOf(counted) ?? tier;
    }
    Object.assign(rest, remainder(event, ['candidates', 'usageMetadata', 'promptFeedback', 'responseId']));
    const feedback = asObject(event['promptFeedback']);
    if (asText(feedback?.['blockReason']) !== '') blocked = feedback;
    const chunks = asArray(event['candidates']).flatMap((value) => takeCandidate(asObject(value) ?? {}));
    if (!isStarted) {
      isStarted = true;
      chunks.unshift({ delta: { role: 'assistant' }, ext: { response: response(false) } });
    } else if (counted !== undefined) {
      // If the stream breaks off, this is what was billed so far.
      chunks.push({ delta: {}, ext: { response: response(false) } });
    }
    return chunks;
  }

  function finish(): ChatChunk[] {
    isEnded = true;
    const chunks = turn.closeAll();
    const annotations = annotationsOf({ ...candidate, ...grounded() }, turn.text());
    if (annotations.length > 0) chunks.push({ delta: { annotations } });
    // After them: clients of other APIs have one block open at a time, and a text that is over is not cited any more.
    append(chunks, turn.endSignature());
    const native = reason ?? (blocked === undefined ? null : asText(blocked['blockReason']));
    const finish_reason = reason === undefined && blocked !== undefined ? 'content_filter' : finishReason(native, turn);
    const error = errorOf(finish_reason, native ?? 'no reason was reported');
    chunks.push({
      delta: {},
      finish_reason,
      native_finish_reason: native,
      ...(error === undefined ? {} : { error }),
    });
    chunks.push({
      delta: {},
      ext: { response: response(true) },
      ...(tier === undefined ? {} : { service_tier: tier }),
    });
    return chunks;
  }

  function errorOf(finishReason: string, native: string): ChoiceError | undefined {
    if (blocked !== undefined && reason === undefined) {
      const raw = asText(blocked['blockReasonMessage']);
      const message = `The provider refused the prompt: ${native}`;
      return { code: 403, message, metadata: { provider_code: native, ...(raw === '' ? {} : { raw }) } };
    }
    if (finishReason !== 'error') return undefined;
    const told = asText(candidate['finishMessage']);
    return { code: 502, message: told === '' ? `The model's answer failed: ${native}` : told };
  }

  return {
    push,
    isWhole: () => reason !== undefined || blocked !== undefined,
    end(isBody = false) {
      if (isEnded) return [];
      if (reason !== undefined || blocked !== undefined || (isBody && isStarted)) return finish();
      if (!isStarted) throw invalid('The provider sent no answer.', undefined);
      throw new UpstreamError('unavailable', "The provider's stream ended before its answer did.");
    },
  };
}

/** https://ai.google.dev/api/generate-content#UsageMetadata and, on Vertex AI, `trafficType`. */
function tierOf({ serviceTier, trafficType }: JsonObject): string | undefined {
  const told =
    asText(serviceTier).toLowerCase() ||
    asText(trafficType)
      .toLowerCase()
      .replace(/^on_demand_?/, '');
  if (told === '' && asText(trafficType) === '') return undefined;
  return told === '' || told === 'standard' ? 'default' : told;
}

function invalid(message: string, raw: JsonValue | undefined): UpstreamError {
  const text = typeof raw === 'string' ? raw : raw === undefined ? undefined : JSON.stringify(raw);
  return new UpstreamError('invalid_response', message, {
    status: 200,
    raw: text?.slice(0, limits.upstream_raw_chars_max),
  });
}
