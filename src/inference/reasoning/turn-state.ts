/**
 * The parts of an assistant's turn that chat clients may lose: the order of its blocks, native blocks, extensions and opaque reasoning.
 * Taken from an answer, and restored in the message that a client sends back.
 */
import type { Ext, InnerPart, Message, Native, ReasoningDetail, Slot, ToolCall, Wire } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';

/** A readable detail as its text length (-1 without text), signature and format; 0 for a detail that the client sends back whole. */
type DetailMark = 0 | [length: number, signature: string | null, format: string];

/** The common part of seals and kept turns. Names are short, since seals are sent. */
interface Frame {
  /** The wire that made the turn. */
  w: Wire;
  /** The account that made it. */
  i: string;
  /** Ids of the calls. */
  t: string[];
  /** Lengths of the content parts. */
  c: number[];
  o?: Slot[];
  n?: Native[];
  /** Extensions of the calls; 0 for a call without one. */
  k?: (Ext | 0)[];
  /** The extension of the message. */
  r?: JsonObject;
}

/** A turn without the text of its reasoning, which the client sends back. */
export interface SealedTurn extends Frame {
  d: DetailMark[];
  /** The generation that the whole turn is kept under, if it is too large for a seal. */
  g?: string;
}

/** A turn without its text. */
export interface KeptTurn extends Frame {
  e: ReasoningDetail[];
}

const ORDER: readonly Slot['kind'][] = ['reasoning', 'text', 'refusal', 'image', 'audio', 'call'];

/** Whether only the provider that made a detail can use it. */
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

/** A finished turn as it is kept. */
export function keptTurn(message: Message, wire: Wire, issuer: string): KeptTurn {
  return { ...frameOf(message, wire, issuer), e: message.reasoning_details ?? [] };
}

/** A finished turn as it is sealed. */
export function sealedTurn(message: Message, wire: Wire, issuer: string): SealedTurn {
  const d = (message.reasoning_details ?? []).map((detail): DetailMark => {
    if (detail.type !== 'reasoning.text') return 0;
    return [detail.text?.length ?? -1, detail.signature ?? null, detail.format ?? 'unknown'];
  });
  return { ...frameOf(message, wire, issuer), d };
}

/** Shorter forms of a turn: without native blocks and the citations of texts, then without an order. */
export function shorterTurns({ n: _, o, k: __, ...turn }: SealedTurn, generationId: string): SealedTurn[] {
  const shortest = { ...turn, g: generationId };
  const order = o?.filter(({ kind }) => kind !== 'native').map(({ ext: ___, ...slot }): Slot => slot);
  return order === undefined ? [shortest] : [{ ...shortest, o: order }, shortest];
}

/** Whether a turn has parts beside its reasoning that must be sent back, or details that clients are known to merge. */
export function needsSeal({ reasoning_details = [], ext }: Message): boolean {
  if (ext?.natives?.length) return true;
  if (reasoning_details.filter(({ type }) => type === 'reasoning.text').length > 1) return true;
  const ranks = (ext?.order ?? []).map(({ kind }) => ORDER.indexOf(kind));
  if (ranks.some((rank, at) => at > 0 && rank < ranks[at - 1]!)) return true;
  const texts = (ext?.order ?? []).filter(({ kind }) => kind === 'text').map((slot) => slot.ext?.rest ?? {});
  const signed = texts.filter((rest) => rest['thoughtSignature'] !== undefined);
  return signed.length > 1 || texts.some((rest) => rest['phase'] === 'commentary');
}

/** Whether a turn has anything that a client may drop. */
export function needsKeeping({ reasoning_details, tool_calls = [], ext }: Message): boolean {
  return Boolean(reasoning_details?.length) || ext !== undefined || tool_calls.some((call) => call.ext);
}

/** The original message, from the client's message and its seal. Undefined if the client changed the message. */
export function restoreSealed(message: Message, turn: SealedTurn): { message: Message; is_whole: boolean } | undefined {
  const content = contentOf(message, turn.c);
  const calls = callsOf(message, turn);
  if (content === undefined || calls === undefined) return undefined;
  const details = detailsOf(message.reasoning_details ?? [], turn.d);
  const order = turn.o && orderOf(turn.o, { ...message, ...calls, ...content }, details, turn.n);
  const restored = assemble({ ...message, ...content, ...calls }, turn, order);
  return { message: { ...restored, reasoning_details: details ?? [] }, is_whole: details !== undefined };
}

/** The original message from a kept turn, whatever reasoning the client sent. Undefined if it is another turn. */
export function restoreKept(message: Message, turn: KeptTurn): Message | undefined {
  const calls = callsOf(message, turn);
  if (calls === undefined) return undefined;
  const content = contentOf(message, turn.c);
  // Edited text no longer fits the order; the reasoning still belongs to the calls.
  const order = content && turn.o ? orderOf(turn.o, { ...message, ...calls, ...content }, turn.e, turn.n) : undefined;
  return { ...assemble({ ...message, ...content, ...calls }, turn, order), reasoning_details: turn.e };
}

function assemble(message: Message, { w, i, n, r }: Frame, order: Slot[] | undefined): Message {
  const hasNatives = order !== undefined && n !== undefined;
  return {
    ...message,
    ext: { wire: w, rest: r ?? {}, issuer: i, ...(order ? { order } : {}), ...(hasNatives ? { natives: n } : {}) },
  };
}

/** The client's text divided into its original parts; undefined if the text was changed. */
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
  const original = lengths.map((length): InnerPart => {
    start += length;
    return { type: 'text', text: text.slice(start - length, start) };
  });
  const last = parts.at(-1);
  const hint = last?.type === 'text' ? last.cache_control : undefined;
  const end = original.at(-1);
  if (hint && end) original[original.length - 1] = { ...end, cache_control: hint } as InnerPart;
  return { content: original.length === 0 ? null : original };
}

/** The client's calls with their extensions; undefined if the calls were changed. */
function callsOf({ tool_calls = [] }: Message, { t, k }: Frame): { tool_calls?: ToolCall[] } | undefined {
  if (tool_calls.length !== t.length || tool_calls.some(({ id }, at) => id !== t[at])) return undefined;
  if (k === undefined) return {};
  return {
    tool_calls: tool_calls.map((call, at) => {
      const ext = k[at];
      // An extension of the client's own API has no meaning for the wire that made the call.
      return ext && call.ext?.wire !== ext.wire ? { ...call, ext } : call;
    }),
  };
}

/** The client's details divided as they were made, since clients merge them; undefined if they were changed. */
function detailsOf(details: readonly ReasoningDetail[], marks: readonly DetailMark[]): ReasoningDetail[] | undefined {
  const others = details.filter(({ type }) => type !== 'reasoning.text');
  const text = details.map((detail) => (detail.type === 'reasoning.text' ? (detail.text ?? '') : '')).join('');
  const original: ReasoningDetail[] = [];
  let start = 0;
  let used = 0;
  for (const [index, mark] of marks.entries()) {
    if (mark === 0) {
      const own = others[used];
      if (own === undefined) return undefined;
      used += 1;
      original.push({ ...own, index });
      continue;
    }
    const [length, signature, format] = mark;
    const piece = text.slice(start, start + Math.max(length, 0));
    start += Math.max(length, 0);
    original.push({
      type: 'reasoning.text',
      ...(length < 0 ? {} : { text: piece }),
      ...(signature === null ? {} : { signature }),
      format,
      id: null,
      index,
    });
  }
  return start === text.length && used === others.length ? original : undefined;
}

/** The order without slots of missing parts; undefined if it does not include all calls. Without `details` it has no reasoning. */
function orderOf(
  order: readonly Slot[],
  { content, tool_calls = [], images = [], audio, refusal }: Message,
  details: readonly ReasoningDetail[] | undefined,
  natives: readonly Native[] | undefined,
): Slot[] | undefined {
  const counts: Record<Slot['kind'], number> = {
    reasoning: details?.length ?? 0,
    text: typeof content === 'string' ? 1 : (content?.length ?? 0),
    refusal: refusal ? 1 : 0,
    image: images.length,
    audio: audio ? 1 : 0,
    call: tool_calls.length,
    native: natives?.length ?? 0,
  };
  const present = order.filter(({ kind, at, span = 1 }) => at + span <= counts[kind]);
  const calls = present.filter(({ kind }) => kind === 'call').length;
  return calls === tool_calls.length ? present : undefined;
}

/** The message without details that only their issuer can read; the same message if it has none. */
export function withoutBoundState(message: Message): Message {
  const { reasoning_details: details = [], ext } = message;
  const places = new Map<number, number>();
  const readable = details.filter((detail, at) => {
    // Anthropic's signatures hold on every platform (https://platform.claude.com/docs/en/build-with-claude/extended-thinking, "Thinking encryption").
    const stays = !isOpaque(detail) || (detail.format ?? '') === 'anthropic-claude-v1';
    if (stays) places.set(at, places.size);
    return stays;
  });
  if (readable.length === details.length) return message;
  const stripped: Message = { ...message, reasoning_details: readable };
  if (ext?.order === undefined) return stripped;
  const order = ext.order.flatMap((slot): Slot[] => {
    if (slot.kind !== 'reasoning') return [slot];
    const { at, span = 1 } = slot;
    const remaining = Array.from({ length: span }, (_, nth) => places.get(at + nth)).filter(
      (place) => place !== undefined,
    );
    if (remaining.length === 0) return [];
    const { span: _, ...rest } = slot;
    return [{ ...rest, at: remaining[0]!, ...(remaining.length > 1 ? { span: remaining.length } : {}) }];
  });
  return { ...stripped, ext: { ...ext, order } };
}
