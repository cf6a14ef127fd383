import { isSeal } from '../inference/state/seal.ts';
import { asArray, asObject, asText } from '../providers/json-shape.ts';
import { countCodePoints } from '../providers/slot.ts';
import type { ChatChunk, InnerPart, Message, Slot, SlotEvent, UrlCitation } from '../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../schemas/json.ts';

/** A whole turn as the chunks that would have told it, block after block: what tells a stream then tells a whole answer as well. */
export function turnChunks(message: Message, logprobs?: JsonValue): ChatChunk[] {
  const all = message.reasoning_details ?? [];
  // The seal stands behind all blocks, and is none of the order.
  const last = all.at(-1);
  const seal = last !== undefined && isSeal(last) ? last : undefined;
  const details = seal === undefined ? all : all.slice(0, -1);
  const parts = typeof message.content === 'string' ? [message.content] : (message.content ?? []).map(textOf);
  const cited = citedTexts(message, parts);
  const likely = likelyTokens(parts, logprobs);
  const chunks: ChatChunk[] = [];
  const order = message.ext?.order ?? canonicalOrder({ ...message, reasoning_details: details });
  for (const [n, { kind, at, span = 1, ext }] of order.entries()) {
    const open: NonNullable<SlotEvent['open']> = ext === undefined ? { kind } : { kind, ext };
    const close = ext === undefined ? {} : { ext };
    switch (kind) {
      case 'reasoning':
        chunks.push({ delta: { reasoning_details: details.slice(at, at + span) }, ext: { slot: { n, open, close } } });
        break;
      case 'text': {
        const said = { delta: { content: parts[at] ?? '' }, ...likely(at) };
        chunks.push({ ...said, ext: { slot: { n, open } } });
        chunks.push({ delta: cited(at), ext: { slot: { n, close } } });
        break;
      }
      case 'refusal':
        chunks.push({ delta: { refusal: message.refusal ?? '' }, ext: { slot: { n, open, close } } });
        break;
      case 'image':
        chunks.push({
          delta: { images: message.images?.slice(at, at + span) ?? [] },
          ext: { slot: { n, open, close } },
        });
        break;
      case 'call': {
        const { id, type, function: called, ext: own } = message.tool_calls![at]!;
        const told = own === undefined ? {} : { ext: own };
        const delta = { tool_calls: [{ index: at, id, type, function: called }] };
        chunks.push({ delta, ext: { slot: { n, open: { kind, ...told }, close: told } } });
        break;
      }
      case 'native': {
        const native = message.ext!.natives![at]!;
        chunks.push({ delta: {}, ext: { slot: { n, open: { kind, native }, close: { native } } } });
        break;
      }
      default:
        chunks.push({ delta: message.audio ? { audio: message.audio } : {}, ext: { slot: { n, open, close } } });
    }
  }
  return seal === undefined ? chunks : [...chunks, { delta: { reasoning_details: [seal] } }];
}

/** The order in which blocks stand where nothing else is told. */
function canonicalOrder(message: Message): Slot[] {
  const { reasoning_details, content, refusal, images, audio, tool_calls } = message;
  const texts = typeof content === 'string' ? 1 : (content?.length ?? 0);
  return [
    ...(reasoning_details?.length ? [{ kind: 'reasoning', at: 0, span: reasoning_details.length } as const] : []),
    ...Array.from({ length: texts }, (_, at) => ({ kind: 'text', at }) as const),
    ...(refusal ? [{ kind: 'refusal', at: 0 } as const] : []),
    ...(images?.length ? [{ kind: 'image', at: 0, span: images.length } as const] : []),
    ...(audio ? [{ kind: 'audio', at: 0 } as const] : []),
    ...(tool_calls ?? []).map((_, at) => ({ kind: 'call', at }) as const),
  ];
}

function textOf(part: InnerPart): string {
  return part.type === 'text' ? part.text : '';
}

/** Which annotations are of which text: those that end in it; of those without a place, the last text's. */
function citedTexts(
  { annotations }: Message,
  parts: readonly string[],
): (at: number) => { annotations?: UrlCitation[] } {
  const citations = (annotations ?? []).filter((one): one is UrlCitation => one.type === 'url_citation');
  if (citations.length === 0) return () => ({});
  const ends: number[] = [];
  for (const part of parts) ends.push((ends.at(-1) ?? 0) + countCodePoints(part));
  const places = citations.map(({ url_citation: { end_index } }) => {
    const at = end_index === 0 ? -1 : ends.findIndex((end) => end_index <= end);
    return at === -1 ? parts.length - 1 : at;
  });
  return (at) => {
    const own = citations.filter((_, i) => places[i] === at);
    return own.length === 0 ? {} : { annotations: own };
  };
}

/** Which probabilities are of which text: as many tokens as it is long. */
function likelyTokens(
  parts: readonly string[],
  logprobs: JsonValue | undefined,
): (at: number) => { logprobs?: JsonObject } {
  const tokens = asArray(asObject(logprobs)?.['content']);
  if (tokens.length === 0) return () => ({});
  const ofPart: JsonValue[][] = parts.map(() => []);
  let at = 0;
  let chars = 0;
  for (const token of tokens) {
    ofPart[at]?.push(token);
    chars += asText(asObject(token)?.['token']).length;
    if (at + 1 < parts.length && chars >= parts[at]!.length) {
      at += 1;
      chars = 0;
    }
  }
  return (part) => ({ logprobs: { content: ofPart[part]! } });
}
