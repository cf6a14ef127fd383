import { limits } from '../../limits.ts';
import { append } from '../../schemas/append.ts';
import type { ChatChunk } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { type AttemptState, UpstreamError } from '../dialect.ts';
import { asArray, asObject, asText, remainder } from '../shared/json-shape.ts';
import { createEventDecoder } from './stream.ts';

/** The chunks of a whole answer. The body is read as the events of a stream that carries it: one reader, so the two cannot differ. */
export function decodeResponse(body: JsonValue, state: AttemptState): ChatChunk[] {
  const answer = asObject(body);
  const message = asObject(asObject(answer?.['output'])?.['message']);
  if (answer === undefined || message === undefined) throw invalid(body);
  const decoder = createEventDecoder(state);
  const chunks: ChatChunk[] = decoder.push('messageStart', {});
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

type Event = [type: 'contentBlockStart' | 'contentBlockDelta', event: JsonObject];
const start = (told: JsonObject): Event => ['contentBlockStart', { start: told }];
const delta = (told: JsonObject): Event => ['contentBlockDelta', { delta: told }];

/** A whole block as the events that would have streamed it. */
function eventsOf(block: JsonObject): Event[] {
  const { text, toolUse, reasoningContent, citationsContent, image } = block;
  if (typeof text === 'string') return [delta({ text })];
  const call = asObject(toolUse);
  if (call !== undefined) {
    const { input, ...told } = call;
    return [start({ toolUse: told }), ...(input == null ? [] : [delta({ toolUse: { input: JSON.stringify(input) } })])];
  }
  const reasoning = asObject(reasoningContent);
  if (reasoning !== undefined) {
    const { redactedContent } = reasoning;
    const told = asObject(reasoning['reasoningText']) ?? {};
    return [
      ...(told['text'] == null ? [] : [delta({ reasoningContent: { text: told['text'] } })]),
      ...(told['signature'] == null ? [] : [delta({ reasoningContent: { signature: told['signature'] } })]),
      ...(redactedContent == null ? [] : [delta({ reasoningContent: { redactedContent } })]),
    ];
  }
  const cited = asObject(citationsContent);
  if (cited !== undefined) {
    return [
      ...asArray(cited['content']).map((part) => delta({ text: asText(asObject(part)?.['text']) })),
      ...asArray(cited['citations']).map((citation) => delta({ citation })),
    ];
  }
  const picture = asObject(image);
  if (picture !== undefined) return [start({ image: remainder(picture, ['source']) }), delta({ image: picture })];
  return [start(block)];
}

/** Without the members that are not there. */
function asJson(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

function invalid(body: JsonValue): UpstreamError {
  const raw = JSON.stringify(body)?.slice(0, limits.upstream_raw_chars_max);
  return new UpstreamError('invalid_response', 'The provider sent a body that is no message.', { status: 200, raw });
}
