import { append } from '../../schemas/append.ts';
import type { InnerPart, Message, ReasoningDetail, Slot, ToolCall } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { parseArguments } from '../shared/arguments.ts';
import { detailsOf, orderOf } from '../shared/slot-order.ts';
import type { Encoding } from './encoding.ts';
import { encodeMedia, encodeOwnImage } from './media.ts';
import { GEMINI_FORMAT, restOf, WIRE, type WirePart } from './wire.ts';

/**
 * What takes the place of a signature where the model's own is not there: documented for calls of other models
 * (https://ai.google.dev/gemini-api/docs/thought-signatures). The field is bytes, in JSON base64.
 */
const BYPASS = Buffer.from('skip_thought_signature_validator').toString('base64');

/** Where an assistant turn stands, as far as its signatures depend on it. */
export interface TurnPlace {
  field: string;
  /** After the last message of the user: the model still works on it, and Gemini 3 asks for signatures. */
  is_current: boolean;
}

/** A part of a user, system or assistant message; empty when it says nothing or has no place here. */
export function encodePart(part: InnerPart, field: string, encoding: Encoding): WirePart[] {
  if (part.type === 'text') return part.text === '' ? [] : [{ ...restOf(part.ext), text: part.text }];
  if (part.type !== 'native') return [{ ...restOf(part.ext), ...encodeMedia(part, field, encoding) }];
  if (part.wire !== WIRE) {
    encoding.report('dropped', field, `an object of ${part.wire} cannot be expressed in this provider's API`);
    return [];
  }
  if (encoding.strip_state) {
    encoding.report('dropped', field, 'the upstream refused the opaque state of former turns');
    return [];
  }
  return [part.block as WirePart];
}

/** An assistant turn's parts, in the order the model made them, each with its signature (translation rule M9). */
export function encodeAssistant(
  message: Message,
  { field, is_current: isCurrent }: TurnPlace,
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
      const told = encodeOwnImage(message.images![images]!.image_url.url, encoding);
      if (told === undefined) encoding.report('dropped', `${field}.images[${images}]`, 'the picture is not at hand');
      else parts.push({ ...remembered(ext, encoding), ...told });
    }
  };
  for (const { kind, at, ext } of orderOf(message, counts)) {
    const rest = remembered(ext, encoding);
    if (kind === 'reasoning') append(parts, signatures.read(details[at]!, `${field}.reasoning_details[${at}]`));
    else if (kind === 'text') append(parts, encodeText(texts[at]!, `${field}.content[${at}]`, rest, encoding));
    else if (kind === 'refusal' && message.refusal) parts.push({ text: message.refusal });
    else if (kind === 'image') addImages(Math.min(at + 1, message.images?.length ?? 0), ext);
    else if (kind === 'audio')
      encoding.report('dropped', `${field}.audio`, 'this provider does not accept sound of the model');
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

/** What was remembered of a part; without its signature where state is not wanted. */
function remembered(ext: Slot['ext'], { strip_state: stripState }: Encoding): JsonObject {
  const rest = restOf(ext);
  if (!stripState || rest['thoughtSignature'] === undefined) return rest;
  const { thoughtSignature: _, ...others } = rest;
  return others;
}

/** An empty text is worth sending for its signature alone. */
function encodeText(part: InnerPart, field: string, rest: JsonObject, encoding: Encoding): WirePart[] {
  if (part.type === 'text' && part.text === '')
    return rest['thoughtSignature'] === undefined ? [] : [{ ...rest, text: '' }];
  return encodePart(part, field, encoding).map((told) => ({ ...rest, ...told }));
}

function encodeCall(call: ToolCall, id: string, field: string, rest: JsonObject, encoding: Encoding): WirePart {
  const { input, isObject } = parseArguments(call.function.arguments);
  if (!isObject) encoding.report('changed', `${field}.function.arguments`, 'not a JSON object: wrapped as `_raw`');
  return {
    ...rest,
    ...restOf(call.ext),
    functionCall: { id, name: encoding.names.toWire(call.function.name), args: input },
  };
}

/** Brings the signatures of a turn's details back to the parts that they came with. */
function createSignatures({ strip_state: stripState, facts, report }: Encoding, field: string) {
  const byCall = new Map<string, string>();
  const calls = new Map<WirePart, string>();
  const ofTexts: string[] = [];
  const ofCalls: string[] = [];
  let isStripped = false;

  function readText(detail: ReasoningDetail & { type: 'reasoning.text' }): WirePart[] {
    // Thoughts without a signature are for reading only.
    if (!detail.signature) return [];
    if (detail.text) return [{ text: detail.text, thought: true, thoughtSignature: detail.signature }];
    ofTexts.push(detail.signature);
    return [];
  }

  return {
    read(detail: ReasoningDetail, place: string): WirePart[] {
      const isOwn = detail.format === GEMINI_FORMAT;
      if (!isOwn) report('dropped', place, 'the reasoning of another provider is not replayed');
      else if (stripState && !isStripped)
        report('dropped', field, 'the upstream refused the opaque state of former turns');
      if (isOwn && stripState) isStripped = true;
      if (!isOwn || stripState) return [];
      if (detail.type === 'reasoning.text') return readText(detail);
      if (detail.type === 'reasoning.summary' || detail.data === '') return [];
      if (detail.id == null) ofCalls.push(detail.data);
      // Of two for one call the first is kept.
      else if (!byCall.has(detail.id)) byCall.set(detail.id, detail.data);
      return [];
    },
    /** Details may stand before their calls or, as clients order them, after: what is not known yet is added at the end. */
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
        const signature = ofCalls[0] ?? (isNew && isCurrent ? BYPASS : undefined);
        if (signature !== undefined) first.thoughtSignature = signature;
      }
      for (const signature of ofTexts) {
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
