import type { InnerPart, Message, ReasoningDetail, ToolCall } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { parseArguments } from '../shared/arguments.ts';
import { asArray } from '../shared/json-shape.ts';
import { detailsOf, orderOf } from '../shared/slot-order.ts';
import { cachePoint } from './caching.ts';
import type { Encoding } from './encoding.ts';
import { restOf, WIRE, type WireBlock } from './wire.ts';

/** An assistant turn's blocks, in the order in which the model produced them. `callIds` maps each call to its id on this wire. */
export function encodeAssistant(
  message: Message,
  field: string,
  encoding: Encoding,
  callIds: ReadonlyMap<ToolCall, string>,
): WireBlock[] {
  const details = detailsOf(message);
  const content = message.content ?? null;
  const parts: readonly InnerPart[] = typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []);
  const calls = message.tool_calls ?? [];
  const natives = message.ext?.natives ?? [];
  const isOwn = message.ext?.wire === WIRE;
  const seen = new Set<string>();
  const counts = { reasoning: details.length, text: parts.length, call: calls.length, native: natives.length };
  const blocks = orderOf(message, counts).flatMap(({ kind, at, ext }): WireBlock[] => {
    const rest = isOwn ? restOf(ext) : {};
    switch (kind) {
      case 'reasoning':
        return encodeDetail(details[at]!, `${field}.reasoning_details[${at}]`, encoding, seen, isOwn);
      case 'text':
        return encodeText(parts[at]!, `${field}.content[${at}]`, encoding, rest);
      case 'refusal':
        return textBlock(message.refusal ?? '');
      case 'call':
        return [encodeCall(calls[at]!, callIds, `${field}.tool_calls[${at}]`, encoding)];
      case 'native':
        return encodeNative(natives[at]!, `${field}.ext`, encoding);
      default:
        encoding.addReport('dropped', `${field}.${kind}`, 'this provider does not accept media of the assistant');
        return [];
    }
  });
  return [...blocks, ...cachePoint(message.cache_control, 'messages', encoding)];
}

/** A text as a block; none if it is blank, which the wire refuses. */
export function textBlock(text: string): WireBlock[] {
  return text.trim() === '' ? [] : [{ text }];
}

/** A block of a kind that only this wire has, unchanged; a block of another wire is dropped. */
export function encodeNative(native: InnerPart & { type: 'native' }, field: string, encoding: Encoding): WireBlock[] {
  if (native.wire === WIRE) return [native.block];
  encoding.addReport('dropped', field, `an object of ${native.wire} cannot be expressed in this provider's API`);
  return [];
}

/**
 * Reasoning is sent back only if it is signed or encrypted, and to its own vendor: Claude's, and OpenAI's if the turn is known to be of
 * this wire. The service refuses all other reasoning.
 */
function encodeDetail(
  detail: ReasoningDetail,
  field: string,
  encoding: Encoding,
  seen: Set<string>,
  isOwn: boolean,
): WireBlock[] {
  const drop = (reason: string): WireBlock[] => {
    encoding.addReport('dropped', field, reason);
    return [];
  };
  if (encoding.strip_state) return drop('the upstream refused the reasoning state of former turns');
  const { family } = encoding;
  const isOpenAi = family === 'openai' || family === 'gpt-oss';
  if (isOwn && isOpenAi && detail.type === 'reasoning.encrypted' && detail.format === 'unknown') {
    return [{ reasoningContent: { redactedContent: detail.data } }];
  }
  // Clients for one vendor omit the format.
  const isClaudeFormat = (detail.format ?? 'anthropic-claude-v1') === 'anthropic-claude-v1';
  if (family !== 'claude' || !isClaudeFormat)
    return drop(`reasoning of format ${detail.format} is not accepted by this model`);
  if (encoding.quirks.thinking === 'none') return drop('the model has no reasoning');
  if (detail.type === 'reasoning.encrypted') {
    if (detail.data === '') return drop('encrypted reasoning without data');
    if (detail.id != null && seen.has(detail.id)) return drop('the same encrypted reasoning occurs twice');
    if (detail.id != null) seen.add(detail.id);
    // The bytes are the text of Claude's own base64; bytes are sent as base64.
    return [{ reasoningContent: { redactedContent: Buffer.from(detail.data, 'utf8').toString('base64') } }];
  }
  if (detail.type === 'reasoning.summary') return drop('reasoning summaries have no signature');
  if (!detail.signature) return drop('unsigned thinking is refused');
  return [{ reasoningContent: { reasoningText: { text: detail.text ?? '', signature: detail.signature } } }];
}

function encodeText(part: InnerPart, field: string, encoding: Encoding, rest: JsonObject): WireBlock[] {
  if (part.type === 'native') return encodeNative(part, field, encoding);
  if (part.type !== 'text') {
    encoding.addReport('dropped', field, 'this provider does not accept media of the assistant');
    return [];
  }
  const citations = asArray(rest['citations']);
  const blocks =
    citations.length === 0 || part.text.trim() === ''
      ? textBlock(part.text)
      : [{ citationsContent: { content: [{ text: part.text }], citations } }];
  return [...blocks, ...(blocks.length === 0 ? [] : cachePoint(part.cache_control, 'messages', encoding))];
}

function encodeCall(
  call: ToolCall,
  callIds: ReadonlyMap<ToolCall, string>,
  field: string,
  encoding: Encoding,
): WireBlock {
  const { input, isObject } = parseArguments(call.function.arguments);
  const toolUseId = callIds.get(call) ?? call.id;
  if (!isObject) encoding.addReport('changed', `${field}.function.arguments`, 'not a JSON object: wrapped as `_raw`');
  if (toolUseId !== call.id) {
    encoding.addReport('changed', `${field}.id`, 'the id does not fit this upstream or is used twice');
  }
  const name = encoding.names.toWire(call.function.name);
  return { toolUse: { ...restOf(call.ext), toolUseId, name, input } };
}
