import { limits } from '../../limits.ts';
import { append } from '../../schemas/append.ts';
import type { ChatChunk, TokenClasses } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { type AttemptState, UpstreamError } from '../dialect.ts';
import { asArray, asObject, asText, remainder } from '../shared/json-shape.ts';
import { createEventDecoder } from './stream.ts';
import { readUsage } from './usage.ts';

/** The chunks of a whole answer, decoded by the code that decodes streams, so that both agree. */
export function decodeResponse(body: JsonValue, state: AttemptState, chunks: ChatChunk[] = []): ChatChunk[] {
  const answer = asObject(body);
  const message = asObject(asObject(answer?.['output'])?.['message']);
  if (answer === undefined || message === undefined) throw invalid(body);
  const decoder = createEventDecoder(state);
  append(chunks, decoder.push('messageStart', {}));
  for (const [index, value] of asArray(message['content']).entries()) {
    for (const [type, event] of eventsOf(asObject(value) ?? {})) {
      append(chunks, decoder.push(type, { ...event, contentBlockIndex: index }));
    }
    append(chunks, decoder.push('contentBlockStop', { contentBlockIndex: index }));
  }
  const { stopReason, additionalModelResponseFields } = answer;
  append(chunks, decoder.push('messageStop', asJson({ stopReason, additionalModelResponseFields })));
  const rest = remainder(answer, ['output', 'stopReason', 'additionalModelResponseFields']);
  append(chunks, decoder.push('metadata', rest));
  append(chunks, decoder.end());
  return chunks;
}

/** The usage of a whole answer; undefined if it reports none. */
export function reportedUsage(body: JsonValue): TokenClasses | undefined {
  const usage = asObject(asObject(body)?.['usage']);
  return usage && readUsage(usage);
}

type Event = [type: 'contentBlockStart' | 'contentBlockDelta', event: JsonObject];
const start = (fields: JsonObject): Event => ['contentBlockStart', { start: fields }];
const delta = (fields: JsonObject): Event => ['contentBlockDelta', { delta: fields }];

/** The events that would have streamed a whole block. */
function eventsOf(block: JsonObject): Event[] {
  const { text, toolUse, reasoningContent, citationsContent, image } = block;
  if (typeof text === 'string') return [delta({ text })];
  const call = asObject(toolUse);
  if (call !== undefined) {
    const { input, ...callFields } = call;
    return [
      start({ toolUse: callFields }),
      ...(input == null ? [] : [delta({ toolUse: { input: JSON.stringify(input) } })]),
    ];
  }
  const reasoning = asObject(reasoningContent);
  if (reasoning !== undefined) {
    const { redactedContent } = reasoning;
    const reasoningText = asObject(reasoning['reasoningText']) ?? {};
    return [
      ...(reasoningText['text'] == null ? [] : [delta({ reasoningContent: { text: reasoningText['text'] } })]),
      ...(reasoningText['signature'] == null
        ? []
        : [delta({ reasoningContent: { signature: reasoningText['signature'] } })]),
      ...(redactedContent == null ? [] : [delta({ reasoningContent: { redactedContent } })]),
    ];
  }
  const citedText = asObject(citationsContent);
  if (citedText !== undefined) {
    return [
      ...asArray(citedText['content']).map((part) => delta({ text: asText(asObject(part)?.['text']) })),
      ...asArray(citedText['citations']).map((citation) => delta({ citation })),
    ];
  }
  const imageFields = asObject(image);
  if (imageFields !== undefined)
    return [start({ image: remainder(imageFields, ['source']) }), delta({ image: imageFields })];
  return [start(block)];
}

/** The object without undefined members. */
function asJson(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

function invalid(body: JsonValue): UpstreamError {
  const raw = JSON.stringify(body)?.slice(0, limits.upstream_raw_chars_max);
  return new UpstreamError('invalid_response', 'The provider sent a body that is not a message.', { status: 200, raw });
}
