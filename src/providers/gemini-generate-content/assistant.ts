import { append } from '../../schemas/append.ts';
import type { InnerPart, Message, ReasoningDetail, Slot, ToolCall } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { parseArguments } from '../shared/arguments.ts';
import { detailsOf, orderOf } from '../shared/slot-order.ts';
import type { Encoding } from './encoding.ts';
import { encodeMedia, encodeOwnImage } from './media.ts';
import { GEMINI_FORMAT, restOf, WIRE, type WirePart } from './wire.ts';

/**
 * Replaces a signature that is missing: documented for calls of other models
 * (https://ai.google.dev/gemini-api/docs/thought-signatures). The field is bytes, in JSON base64.
 */
const BYPASS = Buffer.from('skip_thought_signature_validator').toString('base64');

/** The position of an assistant turn, on which its signatures depend. */
export interface TurnPosition {
  field: string;
  /** Whether it is after the last user message: the model still works on it, and Gemini 3 requires signatures. */
  is_current: boolean;
}

/** A part of a user, system or assistant message; empty if it has no content or cannot be sent. */
export function encodePart(part: InnerPart, field: string, encoding: Encoding): WirePart[] {
  if (part.type === 'text') return part.text === '' ? [] : [{ ...restOf(part.ext), text: part.text }];
  if (part.type !== 'native') return [{ ...restOf(part.ext), ...encodeMedia(part, field, encoding) }];
  if (part.wire !== WIRE) {
    encoding.addReport('dropped', field, `an object of ${part.wire} cannot be expressed in this provider's API`);
    return [];
  }
  if (encoding.strip_state) {
    encoding.addReport('dropped', field, 'the upstream refused the opaque state of former turns');
    return [];
  }
  return [part.block as WirePart];
}

/** An assistant turn's parts, in the order in which the model produced them, each with its signature (translation rule M9). */
export function encodeAssistant(
  message: Message,
  { field, is_current: isCurrent }: TurnPosition,
  encoding: Encoding,
  callIds: ReadonlyMap<ToolCall, string>,
): WirePart[] {
  const content = message.content ?? '';
  const texts: readonly InnerPart[] = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  const details = detailsOf(message);
  const calls = message.tool_calls ?? [];
  const natives = message.ext?.natives ?? [];
  const counts = { reasoning: details.length, text: texts.length, call: calls.length, native: natives.length };
  const signatures = createSignatures(encoding, field);
  const parts: WirePart[] = [];
  let images = 0;
  const addImages = (upTo: number, ext?: Slot['ext']) => {
    for (; images < upTo; images += 1) {
      const ownImage = encodeOwnImage(message.images![images]!.image_url.url, encoding);
      if (ownImage === undefined)
        encoding.addReport('dropped', `${field}.images[${images}]`, 'the image is not available');
      else parts.push({ ...remembered(ext, encoding), ...ownImage });
    }
  };
  for (const { kind, at, ext } of orderOf(message, counts)) {
    const rest = remembered(ext, encoding);
    if (kind === 'reasoning') append(parts, signatures.read(details[at]!, `${field}.reasoning_details[${at}]`));
    else if (kind === 'text') append(parts, encodeText(texts[at]!, `${field}.content[${at}]`, rest, encoding));
    else if (kind === 'refusal' && message.refusal) parts.push({ text: message.refusal });
    else if (kind === 'image') addImages(Math.min(at + 1, message.images?.length ?? 0), ext);
    else if (kind === 'audio')
      encoding.addReport('dropped', `${field}.audio`, 'this provider does not accept audio of the model');
    else if (kind === 'native') append(parts, encodePart(natives[at]!, field, encoding));
    else if (kind === 'call') {
      const call = calls[at]!;
      parts.push(encodeCall(call, callIds.get(call) ?? call.id, `${field}.tool_calls[${at}]`, rest, encoding));
      signatures.sign(parts.at(-1)!, call.id);
    }
  }
  addImages(message.images?.length ?? 0);
  return signatures.finish(parts, isCurrent);
}

/** The stored fields of a part; without its signature if state is stripped. */
function remembered(ext: Slot['ext'], { strip_state: stripState }: Encoding): JsonObject {
  const rest = restOf(ext);
  if (!stripState || rest['thoughtSignature'] === undefined) return rest;
  const { thoughtSignature: _, ...others } = rest;
  return others;
}

/** An empty text is sent only if it has a signature. */
function encodeText(part: InnerPart, field: string, rest: JsonObject, encoding: Encoding): WirePart[] {
  if (part.type === 'text' && part.text === '')
    return rest['thoughtSignature'] === undefined ? [] : [{ ...rest, text: '' }];
  return encodePart(part, field, encoding).map((encoded) => ({ ...rest, ...encoded }));
}

function encodeCall(call: ToolCall, id: string, field: string, rest: JsonObject, encoding: Encoding): WirePart {
  const { input, isObject } = parseArguments(call.function.arguments);
  if (!isObject) encoding.addReport('changed', `${field}.function.arguments`, 'not a JSON object: wrapped as `_raw`');
  return {
    ...rest,
    ...restOf(call.ext),
    functionCall: { id, name: encoding.names.toWire(call.function.name), args: input },
  };
}

/** Restores the signatures of a turn's details to the parts to which they belong. */
function createSignatures({ strip_state: stripState, facts, addReport }: Encoding, field: string) {
  const byCall = new Map<string, string>();
  const calls = new Map<WirePart, string>();
  const textSignatures: string[] = [];
  const callSignatures: string[] = [];
  let isStripped = false;

  function readText(detail: ReasoningDetail & { type: 'reasoning.text' }): WirePart[] {
    // Thoughts without a signature cannot be sent back.
    if (!detail.signature) return [];
    if (detail.text) return [{ text: detail.text, thought: true, thoughtSignature: detail.signature }];
    textSignatures.push(detail.signature);
    return [];
  }

  return {
    read(detail: ReasoningDetail, place: string): WirePart[] {
      const isOwn = detail.format === GEMINI_FORMAT;
      if (!isOwn) addReport('dropped', place, 'the reasoning of another provider is not replayed');
      else if (stripState && !isStripped)
        addReport('dropped', field, 'the upstream refused the opaque state of former turns');
      if (isOwn && stripState) isStripped = true;
      if (!isOwn || stripState) return [];
      if (detail.type === 'reasoning.text') return readText(detail);
      if (detail.type === 'reasoning.summary' || detail.data === '') return [];
      if (detail.id == null) callSignatures.push(detail.data);
      // The first of two signatures for one call is kept.
      else if (!byCall.has(detail.id)) byCall.set(detail.id, detail.data);
      return [];
    },
    /** Records a call. Details may precede or follow their calls, so signatures are added at the end. */
    sign(part: WirePart, callId: string): void {
      calls.set(part, callId);
    },
    finish(parts: WirePart[], isCurrent: boolean): WirePart[] {
      for (const [part, callId] of calls) {
        const signature = byCall.get(callId);
        if (signature !== undefined) part.thoughtSignature = signature;
      }
      const first = parts.find((part) => part.functionCall !== undefined);
      if (first !== undefined && first.thoughtSignature === undefined) {
        const isNew = facts.generation !== undefined && facts.generation >= 3;
        const signature = callSignatures[0] ?? (isNew && isCurrent ? BYPASS : undefined);
        if (signature !== undefined) first.thoughtSignature = signature;
      }
      for (const signature of textSignatures) {
        if (parts.some((part) => part.thoughtSignature === signature)) continue;
        const isFree = (part: WirePart) =>
          part.text !== undefined && part.thought !== true && part.thoughtSignature === undefined;
        const text = parts.findLast(isFree);
        if (text === undefined) parts.push({ text: '', thoughtSignature: signature });
        else text.thoughtSignature = signature;
      }
      return parts;
    },
  };
}
