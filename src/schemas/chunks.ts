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

/**
 * The chunks that would have streamed a whole answer, block after block: accumulated, they are that answer again. For upstreams
 * that answer in one piece where a stream was asked for, and for encoders that write whole answers as they write streams.
 */
export function chunksOf(completion: ChatCompletion): ChatChunk[] {
  const { choices, ext: response, service_tier, system_fingerprint } = completion;
  const [{ message, finish_reason, native_finish_reason, logprobs, error }, ...others] = choices;
  const { wire, rest } = response;
  const blocks = blocksOf(message);
  if (logprobs !== undefined) tellLogprobs(blocks, logprobs);
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

/** The chunks of a choice after the first, which tell nothing of the answer as a whole. */
function chunksOfOther({ index, message, finish_reason, native_finish_reason, logprobs, error }: Choice): ChatChunk[] {
  const blocks = blocksOf(message);
  if (logprobs !== undefined) tellLogprobs(blocks, logprobs);
  return [
    {
      delta: { role: 'assistant' as const },
      ...(logprobs === undefined || blocks.length > 0 ? {} : { logprobs }),
    },
    ...blocks,
    { delta: {}, finish_reason, native_finish_reason, ...(error === undefined ? {} : { error }) },
  ].map((chunk) => ({ ...chunk, choice: index }));
}

/** Gives each text the probabilities of its own tokens, where those are told by token; else all to the first. */
function tellLogprobs(blocks: readonly ChatChunk[], logprobs: JsonValue): void {
  const texts = blocks.filter(({ delta }) => delta.content);
  const [first = blocks[0], ...others] = texts;
  if (first === undefined) return;
  first.logprobs = logprobs;
  if (others.length === 0 || !isObject(logprobs) || !Array.isArray(logprobs['content'])) return;
  const tokens = logprobs['content'];
  let told = 0;
  let at = 0;
  let end = 0;
  for (const block of texts) {
    end += utf8.encode(block.delta.content!).length;
    const from = at;
    while (at < tokens.length && (told < end || block === texts.at(-1))) {
      told += lengthOf(tokens[at]!);
      at += 1;
    }
    const content = tokens.slice(from, at);
    if (block === first) block.logprobs = { ...logprobs, content };
    else if (content.length > 0) block.logprobs = { content };
  }
}

const utf8 = new TextEncoder();

/** How many bytes of the text a token is. */
function lengthOf(token: JsonValue): number {
  const { bytes, token: text } = isObject(token) ? token : {};
  if (Array.isArray(bytes)) return bytes.length;
  return typeof text === 'string' ? utf8.encode(text).length : 0;
}

function blocksOf(message: Message): ChatChunk[] {
  const details = message.reasoning_details ?? [];
  const parts = typeof message.content === 'string' ? [message.content] : (message.content ?? []).map(textOf);
  const cited = citedTexts(message, parts);
  let has_reasoned = false;

  const deltaOf = ({ kind, at, span = 1 }: Slot): Delta => {
    switch (kind) {
      case 'reasoning': {
        const told = details.slice(at, at + span);
        const reasoning = joinReasoning(told);
        // As the whole string has it: a blank line between two details.
        const delta: Delta = { reasoning_details: told };
        if (reasoning !== null) delta.reasoning = has_reasoned ? `\n\n${reasoning}` : reasoning;
        has_reasoned ||= reasoning !== null;
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
  // Of no text that can be cited.
  const annotations = (message.annotations ?? []).filter(({ type }) => parts.length === 0 || type !== 'url_citation');
  if (annotations.length > 0) chunks.push({ delta: { annotations } });
  return chunks;
}

function opening(kind: Slot['kind'], ext: Ext | undefined, native: Native | undefined) {
  return { kind, ...(ext === undefined ? {} : { ext }), ...(native === undefined ? {} : { native }) };
}

/** The order in which blocks stand where nothing else is told. */
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

/** Which citations are of which text: those that end in it; of those without a place, the last text's. */
function citedTexts(
  { annotations }: Message,
  parts: readonly string[],
): (at: number) => { annotations?: UrlCitation[] } {
  const citations = (annotations ?? []).filter((one): one is UrlCitation => one.type === 'url_citation');
  if (citations.length === 0) return () => ({});
  const ends: number[] = [];
  for (const part of parts) ends.push((ends.at(-1) ?? 0) + [...part].length);
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

/** Where the first of numbers that never fall is as large as this; their count where none is. */
function firstAtLeast(numbers: readonly number[], least: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (numbers[middle]! >= least) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** What a delta tells of blocks, each for itself, in the order in which blocks stand; `rest` tells of none. */
export function deltasOf(delta: Delta): { told: Delta[]; rest: Delta } {
  const { content, refusal, reasoning, reasoning_details, tool_calls, images, audio, ...rest } = delta;
  const told: Delta[] = [];
  if (reasoning || reasoning_details?.length) {
    told.push({
      ...(reasoning == null ? {} : { reasoning }),
      ...(reasoning_details === undefined ? {} : { reasoning_details }),
    });
  }
  if (content) told.push({ content });
  if (refusal) told.push({ refusal });
  if (images?.length) told.push({ images });
  if (audio !== undefined) told.push({ audio });
  for (const call of tool_calls ?? []) told.push({ tool_calls: [call] });
  return { told, rest };
}
