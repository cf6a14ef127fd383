/**
 * What a chat client cannot be trusted to send back of an assistant's turn: the order of its blocks, blocks of unknown
 * kinds, remainders and opaque reasoning. Taken from an answer, and put back into the message that a client replays.
 */
import type { Ext, InnerPart, Message, Native, ReasoningDetail, Slot, ToolCall, Wire } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';

/** A readable detail as its length (-1: it has no text at all), signature and format; 0: the client's own entry is taken. */
type DetailMark = 0 | [length: number, signature: string | null, format: string];

/** What both the seal and the vault hold. Names are short: it travels. */
interface Frame {
  /** The wire that made the turn. */
  w: Wire;
  /** Whose account. */
  i: string;
  /** Ids of the calls. */
  t: string[];
  /** Lengths of the content parts. */
  c: number[];
  o?: Slot[];
  n?: Native[];
  /** Remainders of the calls, 0 where one has none. */
  k?: (Ext | 0)[];
  /** The message's own remainder. */
  r?: JsonObject;
}

/** A turn without its reasoning's text, which the client is to bring. */
export interface SealedTurn extends Frame {
  d: DetailMark[];
  /** The generation under which the whole turn is kept, where a seal has no room for it. */
  g?: string;
}

/** A whole turn, but for its text. */
export interface KeptTurn extends Frame {
  e: ReasoningDetail[];
}

const ORDER: readonly Slot['kind'][] = ['reasoning', 'text', 'refusal', 'image', 'audio', 'call'];

/** Whether a detail is of use to nobody but who made it. */
export function isOpaque(detail: ReasoningDetail): boolean {
  return detail.type === 'reasoning.encrypted' || (detail.type === 'reasoning.text' && Boolean(detail.signature));
}

function lengthsOf(content: Message['content']): number[] {
  if (typeof content === 'string') return content === '' ? [] : [content.length];
  return (content ?? []).map((part) => (part.type === 'text' ? part.text.length : 0));
}

function frameOf({ content, tool_calls = [], ext }: Message, wire: Wire, issuer: string): Frame {
  const frame: Frame = { w: wire, i: issuer, t: tool_calls.map(({ id }) => id), c: lengthsOf(content) };
  if (ext?.order) frame.o = ext.order;
  if (ext?.natives?.length) frame.n = ext.natives;
  if (tool_calls.some((call) => call.ext)) frame.k = tool_calls.map((call) => call.ext ?? 0);
  if (ext && Object.keys(ext.rest).length > 0) frame.r = ext.rest;
  return frame;
}

/** What is kept of a finished turn beside its text. */
export function keptTurn(message: Message, wire: Wire, issuer: string): KeptTurn {
  return { ...frameOf(message, wire, issuer), e: message.reasoning_details ?? [] };
}

/** What is sealed of a finished turn. */
export function sealedTurn(message: Message, wire: Wire, issuer: string): SealedTurn {
  const d = (message.reasoning_details ?? []).map((detail): DetailMark => {
    if (detail.type !== 'reasoning.text') return 0;
    return [detail.text?.length ?? -1, detail.signature ?? null, detail.format ?? 'unknown'];
  });
  return { ...frameOf(message, wire, issuer), d };
}

/** The same turn in ever less room: without blocks of unknown kinds and what texts cite of them, then without an order. */
export function shorterTurns({ n: _, o, k: __, ...turn }: SealedTurn, generation_id: string): SealedTurn[] {
  const left = { ...turn, g: generation_id };
  const order = o?.filter(({ kind }) => kind !== 'native').map(({ ext: ___, ...slot }): Slot => slot);
  return order === undefined ? [left] : [{ ...left, o: order }, left];
}

/** Whether a turn has something that a client must bring back beside its reasoning, or that clients are known to merge. */
export function needsSeal({ reasoning_details = [], ext }: Message): boolean {
  if (ext?.natives?.length) return true;
  if (reasoning_details.filter(({ type }) => type === 'reasoning.text').length > 1) return true;
  const ranks = (ext?.order ?? []).map(({ kind }) => ORDER.indexOf(kind));
  if (ranks.some((rank, at) => at > 0 && rank < ranks[at - 1]!)) return true;
  const texts = (ext?.order ?? []).filter(({ kind }) => kind === 'text').map((slot) => slot.ext?.rest ?? {});
  const signed = texts.filter((rest) => rest['thoughtSignature'] !== undefined);
  return signed.length > 1 || texts.some((rest) => rest['phase'] === 'commentary');
}

/** Whether there is anything that is worth keeping for a client that drops it. */
export function needsKeeping({ reasoning_details, tool_calls = [], ext }: Message): boolean {
  return Boolean(reasoning_details?.length) || ext !== undefined || tool_calls.some((call) => call.ext);
}

/** The message as it was made, by what its client sent back with a seal. Undefined where it is another message by now. */
export function restoreSealed(message: Message, turn: SealedTurn): { message: Message; is_whole: boolean } | undefined {
  const content = contentOf(message, turn.c);
  const calls = callsOf(message, turn);
  if (content === undefined || calls === undefined) return undefined;
  const details = detailsOf(message.reasoning_details ?? [], turn.d);
  const order = turn.o && orderOf(turn.o, { ...message, ...calls, ...content }, details, turn.n);
  const made = assemble({ ...message, ...content, ...calls }, turn, order);
  return { message: { ...made, reasoning_details: details ?? [] }, is_whole: details !== undefined };
}

/** The message as it was made, whatever its client sent of its reasoning. Undefined where it is another turn by now. */
export function restoreKept(message: Message, turn: KeptTurn): Message | undefined {
  const calls = callsOf(message, turn);
  if (calls === undefined) return undefined;
  const content = contentOf(message, turn.c);
  // Text that was edited has no places in the order any more; the reasoning is still that of the calls.
  const order = content && turn.o ? orderOf(turn.o, { ...message, ...calls, ...content }, turn.e, turn.n) : undefined;
  return { ...assemble({ ...message, ...content, ...calls }, turn, order), reasoning_details: turn.e };
}

function assemble(message: Message, { w, i, n, r }: Frame, order: Slot[] | undefined): Message {
  const placed = order !== undefined && n !== undefined;
  return {
    ...message,
    ext: { wire: w, rest: r ?? {}, issuer: i, ...(order ? { order } : {}), ...(placed ? { natives: n } : {}) },
  };
}

/** The client's text in the parts that it was made of; undefined where it is not the same text. */
function contentOf({ content }: Message, lengths: readonly number[]): Pick<Message, 'content'> | undefined {
  const parts: readonly InnerPart[] = typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []);
  let text = '';
  for (const part of parts) {
    if (part.type !== 'text') return undefined;
    text += part.text;
  }
  if (lengths.reduce((sum, length) => sum + length, 0) !== text.length) return undefined;
  if (lengths.length < 2 && parts.length < 2) return {};
  let start = 0;
  const made = lengths.map((length): InnerPart => {
    start += length;
    return { type: 'text', text: text.slice(start - length, start) };
  });
  const last = parts.at(-1);
  const hint = last?.type === 'text' ? last.cache_control : undefined;
  const end = made.at(-1);
  if (hint && end) made[made.length - 1] = { ...end, cache_control: hint } as InnerPart;
  return { content: made.length === 0 ? null : made };
}

/** The client's calls with their remainders; undefined where they are not the same calls. */
function callsOf({ tool_calls = [] }: Message, { t, k }: Frame): { tool_calls?: ToolCall[] } | undefined {
  if (tool_calls.length !== t.length || tool_calls.some(({ id }, at) => id !== t[at])) return undefined;
  if (k === undefined) return {};
  return {
    tool_calls: tool_calls.map((call, at) => {
      const ext = k[at];
      // What a client's own API says of the call is nothing to the wire that made it.
      return ext && call.ext?.wire !== ext.wire ? { ...call, ext } : call;
    }),
  };
}

/** The client's details, cut as they were made: it may have merged them. Undefined where they are not the same. */
function detailsOf(given: readonly ReasoningDetail[], marks: readonly DetailMark[]): ReasoningDetail[] | undefined {
  const others = given.filter(({ type }) => type !== 'reasoning.text');
  const text = given.map((detail) => (detail.type === 'reasoning.text' ? (detail.text ?? '') : '')).join('');
  const made: ReasoningDetail[] = [];
  let start = 0;
  let taken = 0;
  for (const [index, mark] of marks.entries()) {
    if (mark === 0) {
      const own = others[taken];
      if (own === undefined) return undefined;
      taken += 1;
      made.push({ ...own, index });
      continue;
    }
    const [length, signature, format] = mark;
    const piece = text.slice(start, start + Math.max(length, 0));
    start += Math.max(length, 0);
    made.push({
      type: 'reasoning.text',
      ...(length < 0 ? {} : { text: piece }),
      ...(signature === null ? {} : { signature }),
      format,
      id: null,
      index,
    });
  }
  return start === text.length && taken === others.length ? made : undefined;
}

/**
 * The order without what is not there; undefined where it does not visit everything that is there. Without details that fit,
 * the reasoning has no place in it.
 */
function orderOf(
  order: readonly Slot[],
  { content, tool_calls = [], images = [], audio, refusal }: Message,
  details: readonly ReasoningDetail[] | undefined,
  natives: readonly Native[] | undefined,
): Slot[] | undefined {
  const there: Record<Slot['kind'], number> = {
    reasoning: details?.length ?? 0,
    text: typeof content === 'string' ? 1 : (content?.length ?? 0),
    refusal: refusal ? 1 : 0,
    image: images.length,
    audio: audio ? 1 : 0,
    call: tool_calls.length,
    native: natives?.length ?? 0,
  };
  const kept = order.filter(({ kind, at, span = 1 }) => at + span <= there[kind]);
  const calls = kept.filter(({ kind }) => kind === 'call').length;
  return calls === tool_calls.length ? kept : undefined;
}

/** The message without details that only their issuer understands; itself where it has none. */
export function withoutBoundState(message: Message): Message {
  const { reasoning_details: details = [], ext } = message;
  const places = new Map<number, number>();
  const kept = details.filter((detail, at) => {
    // Anthropic's signatures hold on every platform (https://platform.claude.com/docs/en/build-with-claude/extended-thinking, "Thinking encryption").
    const stays = !isOpaque(detail) || (detail.format ?? '') === 'anthropic-claude-v1';
    if (stays) places.set(at, places.size);
    return stays;
  });
  if (kept.length === details.length) return message;
  const made: Message = { ...message, reasoning_details: kept };
  if (ext?.order === undefined) return made;
  const order = ext.order.flatMap((slot): Slot[] => {
    if (slot.kind !== 'reasoning') return [slot];
    const { at, span = 1 } = slot;
    const left = Array.from({ length: span }, (_, nth) => places.get(at + nth)).filter((place) => place !== undefined);
    if (left.length === 0) return [];
    const { span: _, ...rest } = slot;
    return [{ ...rest, at: left[0]!, ...(left.length > 1 ? { span: left.length } : {}) }];
  });
  return { ...made, ext: { ...ext, order } };
}
