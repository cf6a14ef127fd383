import { isObject, joinReasoning } from './accumulate.ts';
import type {
  ChatChunk,
  ChatCompletion,
  Choice,
  Delta,
  Ext,
  InnerPart,
  Message,
  Native,
  Slot,
  UrlCitation,
} from './inner.ts';
import type { JsonValue } from './json.ts';
import { countCodePoints } from './text.ts';

/**
 * The chunks that a whole answer would have been streamed as, block after block: accumulating them gives the answer again. For upstreams
 * that send one body although a stream was requested, and for encoders that write whole answers with the code for streams.
 */
export function chunksOf(completion: ChatCompletion): ChatChunk[] {
  const { choices, ext: response, service_tier, system_fingerprint } = completion;
  const [{ message, finish_reason, native_finish_reason, logprobs, error }, ...others] = choices;
  const { wire, rest } = response;
  const blocks = blocksOf(message);
  if (logprobs !== undefined) assignLogprobs(blocks, logprobs);
  return [
    {
      delta: { role: 'assistant' },
      ...(service_tier == null ? {} : { service_tier }),
      ...(system_fingerprint == null ? {} : { system_fingerprint }),
      ...(logprobs === undefined || blocks.length > 0 ? {} : { logprobs }),
      ext: { response: { wire, rest } },
    },
    ...others.flatMap(chunksOfOther),
    ...blocks,
    { delta: {}, finish_reason, native_finish_reason, ...(error === undefined ? {} : { error }), ext: { response } },
  ];
}

/** The chunks of a choice after the first, without the facts about the whole answer. */
function chunksOfOther({ index, message, finish_reason, native_finish_reason, logprobs, error }: Choice): ChatChunk[] {
  const blocks = blocksOf(message);
  if (logprobs !== undefined) assignLogprobs(blocks, logprobs);
  return [
    {
      delta: { role: 'assistant' as const },
      ...(logprobs === undefined || blocks.length > 0 ? {} : { logprobs }),
    },
    ...blocks,
    { delta: {}, finish_reason, native_finish_reason, ...(error === undefined ? {} : { error }) },
  ].map((chunk) => ({ ...chunk, choice: index }));
}

/** Assigns log probabilities to the texts that their tokens belong to; all to the first text if they are not listed by token. */
function assignLogprobs(blocks: readonly ChatChunk[], logprobs: JsonValue): void {
  const texts = blocks.filter(({ delta }) => delta.content);
  const [first = blocks[0], ...others] = texts;
  if (first === undefined) return;
  first.logprobs = logprobs;
  if (others.length === 0 || !isObject(logprobs) || !Array.isArray(logprobs['content'])) return;
  const tokens = logprobs['content'];
  let assigned = 0;
  let at = 0;
  let end = 0;
  for (const block of texts) {
    end += utf8.encode(block.delta.content!).length;
    const from = at;
    while (at < tokens.length && (assigned < end || block === texts.at(-1))) {
      assigned += lengthOf(tokens[at]!);
      at += 1;
    }
    const content = tokens.slice(from, at);
    if (block === first) block.logprobs = { ...logprobs, content };
    else if (content.length > 0) block.logprobs = { content };
  }
}

const utf8 = new TextEncoder();

/** The number of bytes of text that a token stands for. */
function lengthOf(token: JsonValue): number {
  const { bytes, token: text } = isObject(token) ? token : {};
  if (Array.isArray(bytes)) return bytes.length;
  return typeof text === 'string' ? utf8.encode(text).length : 0;
}

function blocksOf(message: Message): ChatChunk[] {
  const details = message.reasoning_details ?? [];
  const parts = typeof message.content === 'string' ? [message.content] : (message.content ?? []).map(textOf);
  const cited = citedTexts(message, parts);
  let hasReasoned = false;

  const deltaOf = ({ kind, at, span = 1 }: Slot): Delta => {
    switch (kind) {
      case 'reasoning': {
        const slice = details.slice(at, at + span);
        const reasoning = joinReasoning(slice);
        // The joined reasoning has a blank line between two details.
        const delta: Delta = { reasoning_details: slice };
        if (reasoning !== null) delta.reasoning = hasReasoned ? `\n\n${reasoning}` : reasoning;
        hasReasoned ||= reasoning !== null;
        return delta;
      }
      case 'text':
        return { content: parts[at] ?? '', ...cited(at) };
      case 'refusal':
        return { refusal: message.refusal ?? '' };
      case 'image':
        return { images: (message.images ?? []).slice(at, at + span) };
      case 'audio':
        return message.audio == null ? {} : { audio: message.audio };
      case 'call': {
        const { id, type, function: called } = message.tool_calls![at]!;
        return { tool_calls: [{ index: at, id, type, function: called }] };
      }
      case 'native':
        return {};
    }
  };
  const chunks = (message.ext?.order ?? canonicalOrder(message)).map((slot, n): ChatChunk => {
    const ext = slot.kind === 'call' ? message.tool_calls![slot.at]!.ext : slot.ext;
    const native = slot.kind === 'native' ? message.ext?.natives?.[slot.at] : undefined;
    return { delta: deltaOf(slot), ext: { slot: { n, open: opening(slot.kind, ext, native), close: {} } } };
  });
  const plain = message.reasoning_details === undefined ? message.reasoning : undefined;
  if (plain) chunks.unshift({ delta: { reasoning: plain } });
  // If there is no text, citations are omitted.
  const annotations = (message.annotations ?? []).filter(({ type }) => parts.length === 0 || type !== 'url_citation');
  if (annotations.length > 0) chunks.push({ delta: { annotations } });
  return chunks;
}

function opening(kind: Slot['kind'], ext: Ext | undefined, native: Native | undefined) {
  return { kind, ...(ext === undefined ? {} : { ext }), ...(native === undefined ? {} : { native }) };
}

/** The order of blocks if the message states none. */
function canonicalOrder({ reasoning_details, content, refusal, images, audio, tool_calls }: Message): Slot[] {
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

/** The citations of each text: those that end in it. Citations without offsets belong to the last text. */
function citedTexts(
  { annotations }: Message,
  parts: readonly string[],
): (at: number) => { annotations?: UrlCitation[] } {
  const citations = (annotations ?? []).filter((one): one is UrlCitation => one.type === 'url_citation');
  if (citations.length === 0) return () => ({});
  const ends: number[] = [];
  for (const part of parts) ends.push((ends.at(-1) ?? 0) + countCodePoints(part));
  const ofTexts = new Map<number, UrlCitation[]>();
  for (const citation of citations) {
    const { end_index } = citation.url_citation;
    const place = end_index === 0 ? parts.length : firstAtLeast(ends, end_index);
    const at = Math.min(place, parts.length - 1);
    const known = ofTexts.get(at);
    if (known === undefined) ofTexts.set(at, [citation]);
    else known.push(citation);
  }
  return (at) => {
    const annotations = ofTexts.get(at);
    return annotations === undefined ? {} : { annotations };
  };
}

/** The index of the first of ascending numbers that is at least `least`; their count if there is none. */
function firstAtLeast(numbers: readonly number[], least: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (numbers[middle]! >= least) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Splits a delta into one delta per block, in canonical order. `rest` has the fields that belong to no block. */
export function deltasOf(delta: Delta): { blocks: Delta[]; rest: Delta } {
  const { content, refusal, reasoning, reasoning_details, tool_calls, images, audio, ...rest } = delta;
  const blocks: Delta[] = [];
  if (reasoning || reasoning_details?.length) {
    blocks.push({
      ...(reasoning == null ? {} : { reasoning }),
      ...(reasoning_details === undefined ? {} : { reasoning_details }),
    });
  }
  if (content) blocks.push({ content });
  if (refusal) blocks.push({ refusal });
  if (images?.length) blocks.push({ images });
  if (audio !== undefined) blocks.push({ audio });
  for (const call of tool_calls ?? []) blocks.push({ tool_calls: [call] });
  return { blocks, rest };
}
