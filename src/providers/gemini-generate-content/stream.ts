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
import { createUsageReader, withSearches } from './usage.ts';
import { WIRE } from './wire.ts';

/** Converts the wire's events, each a whole `GenerateContentResponse`, to chunks. A whole answer is one event. */
export interface EventDecoder {
  /** Adds the chunks to `chunks`, which has those before the fault if it throws. */
  push(event: JsonObject, chunks?: ChatChunk[]): ChatChunk[];
  /** A whole body is complete even without a finish reason; if it is empty, with an error. */
  end(isBody?: boolean): ChatChunk[];
  /** True once a finish reason was received: only counts may follow. */
  isWhole(): boolean;
}

/** The decoder of one stream of `streamGenerateContent?alt=sse` (https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent). */
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
  const answer = asObject(Array.isArray(value) ? value[0] : value);
  if (answer === undefined) throw invalid('The provider sent an event that is not an object.', data);
  if (event === 'error' || answer['error'] != null) throw errorInside(answer);
  return answer;
}

/** Fields of a candidate that are not kept in the remainder; of the others the last value is kept. */
const CANDIDATE_KNOWN = ['content', 'finishReason', 'index', 'logprobsResult', 'tokenCount', 'groundingMetadata'];
/** Fields that identify an answer of this wire, unlike a live session's message or a demonstration server's page. */
const MARKS = ['candidates', 'promptFeedback', 'usageMetadata', 'modelVersion', 'responseId'];

/** The decoder of one answer. */
export function createEventDecoder(state: DecoderState): EventDecoder {
  const turn = createTurn(state);
  const usage = createUsageReader();
  let isStarted = false;
  let isEnded = false;
  let requestId: string | undefined;
  let tier: string | undefined;
  const grounding = createGrounding();
  /** The latest value of each field. */
  const candidate: JsonObject = {};
  const rest: JsonObject = {};
  let reason: string | undefined;
  let blocked: JsonObject | undefined;
  /** Something of the answer arrived after the last usage, which does not cover it. */
  let isOutrun = false;

  function response(isFinal: boolean): ResponseExt {
    const counted = withSearches(usage.classes(isFinal), grounding.searches(state.generation));
    return {
      wire: WIRE,
      rest: isFinal ? { ...rest, ...candidate, ...grounded() } : {},
      ...(requestId === undefined ? {} : { requestId }),
      ...(counted === undefined || (isFinal && isOutrun) ? {} : { usage: counted }),
    };
  }

  function grounded(): { groundingMetadata?: JsonObject } {
    const groundingMetadata = grounding.metadata();
    return groundingMetadata === undefined ? {} : { groundingMetadata };
  }

  function takeCandidate(source: JsonObject, chunks: ChatChunk[]): void {
    // The gateway requests one candidate; additional ones of a server are ignored.
    if (typeof source['index'] === 'number' && source['index'] > 0) return;
    const statedReason = asText(source['finishReason']);
    grounding.take(asObject(source['groundingMetadata']));
    Object.assign(candidate, remainder(source, CANDIDATE_KNOWN));
    const from = chunks.length;
    for (const value of asArray(asObject(source['content'])?.['parts'])) {
      const part = asObject(value);
      if (part === undefined || (part['functionCall'] !== undefined && hidesCalls(statedReason))) continue;
      const read = turn.take(part);
      if (read === undefined) throw invalid('The provider sent a part that cannot be read.', part);
      append(chunks, read);
    }
    const logprobs = logprobsOf(source['logprobsResult']);
    if (logprobs !== undefined) {
      const textChunk = chunks.findLast(({ delta }, at) => at >= from && delta.content !== undefined);
      // The probabilities belong to the text in the same event.
      if (textChunk !== undefined) textChunk.logprobs = logprobs;
      else chunks.push({ delta: {}, logprobs });
    }
    if (statedReason !== '' && statedReason !== 'FINISH_REASON_UNSPECIFIED') reason = statedReason;
  }

  function push(event: JsonObject, chunks: ChatChunk[] = []): ChatChunk[] {
    if (isEnded) return chunks;
    if (event['error'] != null) throw errorInside(event);
    if (!MARKS.some((mark) => event[mark] !== undefined)) {
      // Within an answer, unknown events are ignored.
      if (isStarted) return chunks;
      throw invalid('The provider sent an event that is not part of an answer.', event);
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
    const from = chunks.length;
    for (const value of asArray(event['candidates'])) takeCandidate(asObject(value) ?? {}, chunks);
    if (counted !== undefined) isOutrun = false;
    else if (chunks.length > from) isOutrun = true;
    if (!isStarted) {
      isStarted = true;
      chunks.unshift({ delta: { role: 'assistant' }, ext: { response: response(false) } });
    } else if (counted !== undefined) {
      // If the stream breaks off, this is the usage to be billed.
      chunks.push({ delta: {}, ext: { response: response(false) } });
    }
    return chunks;
  }

  function finish(): ChatChunk[] {
    isEnded = true;
    const chunks = turn.closeAll();
    const annotations = annotationsOf({ ...candidate, ...grounded() }, turn.text());
    if (annotations.length > 0) chunks.push({ delta: { annotations } });
    // After the annotations: clients of other APIs have one block open at a time, and a closed text cannot be cited.
    append(chunks, turn.endSignature());
    const native = reason ?? (blocked === undefined ? null : asText(blocked['blockReason']));
    const finalReason = reason === undefined && blocked !== undefined ? 'content_filter' : finishReason(native, turn);
    const error = errorOf(finalReason, native ?? 'no reason was reported');
    // Before the end, it is not taken for a report of the whole answer.
    if (isOutrun) chunks.push({ delta: {}, ext: { response: response(false) } });
    chunks.push({
      delta: {},
      finish_reason: finalReason,
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
    const finishMessage = asText(candidate['finishMessage']);
    return { code: 502, message: finishMessage === '' ? `The model's answer failed: ${native}` : finishMessage };
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
  const tier =
    asText(serviceTier).toLowerCase() ||
    asText(trafficType)
      .toLowerCase()
      .replace(/^on_demand_?/, '');
  if (tier === '' && asText(trafficType) === '') return undefined;
  return tier === '' || tier === 'standard' ? 'default' : tier;
}

function invalid(message: string, raw: JsonValue | undefined): UpstreamError {
  const text = typeof raw === 'string' ? raw : raw === undefined ? undefined : JSON.stringify(raw);
  return new UpstreamError('invalid_response', message, {
    status: 200,
    raw: text?.slice(0, limits.upstream_raw_chars_max),
  });
}
