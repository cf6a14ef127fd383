import type { InnerPart, Message } from '../schemas/inner.ts';

/** What a prompt may take, and how much its pieces take. */
export interface Room {
  tokens_max: number;
  messages_max: number;
  /** Tokens of a message, whatever it holds. */
  weigh(message: Message): number;
}

/** A conversation as an endpoint can read it. */
export interface Compressed {
  messages: readonly Message[];
  /** Messages that are left out, and texts that are cut. */
  dropped: number;
  cut: number;
}

/** Messages that stand and fall together: a turn that calls tools, and their results. */
interface Unit {
  from: number;
  end: number;
  tokens: number;
  is_kept: boolean;
}

function isInstruction({ role }: Message): boolean {
  return role === 'system' || role === 'developer';
}

function unitsOf(messages: readonly Message[], weights: readonly number[]): Unit[] {
  const units: Unit[] = [];
  for (const [at, message] of messages.entries()) {
    const last = units.at(-1);
    if (message.role === 'tool' && last !== undefined && !isInstruction(messages[last.from]!)) {
      last.end = at + 1;
      last.tokens += weights[at]!;
    } else units.push({ from: at, end: at + 1, tokens: weights[at]!, is_kept: isInstruction(message) });
  }
  return units;
}

/** What is never left out: instructions, what the user asked last, and the end, which is what is to be answered. */
function keepAnchors(units: readonly Unit[], messages: readonly Message[]): void {
  const asked = units.findLast(({ from }) => messages[from]!.role === 'user');
  for (const unit of [asked, units.at(-1)]) if (unit !== undefined) unit.is_kept = true;
}

/** Keeps from the start and the end, one by one, until either end meets what does not fit: what is left out is the middle. */
function keepEnds(units: readonly Unit[], room: Pick<Room, 'tokens_max' | 'messages_max'>): void {
  let tokens = 0;
  let count = 0;
  for (const { is_kept, tokens: own, from, end } of units) {
    if (!is_kept) continue;
    tokens += own;
    count += end - from;
  }
  const fits = (unit: Unit) => {
    const length = unit.end - unit.from;
    if (tokens + unit.tokens > room.tokens_max || count + length > room.messages_max) return false;
    tokens += unit.tokens;
    count += length;
    return true;
  };
  let first = 0;
  let last = units.length - 1;
  let isOpenAtStart = true;
  let isOpenAtEnd = true;
  for (let isStart = true; first <= last && (isOpenAtStart || isOpenAtEnd); isStart = !isStart) {
    if (isStart ? !isOpenAtStart : !isOpenAtEnd) continue;
    const unit = units[isStart ? first : last]!;
    const isIn = unit.is_kept || fits(unit);
    unit.is_kept = isIn;
    if (isStart) {
      isOpenAtStart = isIn;
      if (isIn) first += 1;
    } else {
      isOpenAtEnd = isIn;
      if (isIn) last -= 1;
    }
  }
}

/** The texts of a message that may be cut; arguments of calls and reasoning are none. */
function textsOf({ content }: Message): string[] {
  if (typeof content === 'string') return [content];
  return (content ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : []));
}

/** The most that a text may have so that all of them have no more than `chars_max`, and the short ones stay whole. */
function longestText(lengths: readonly number[], charsMax: number): number {
  const sorted = [...lengths].sort((one, other) => one - other);
  let left = charsMax;
  for (const [at, length] of sorted.entries()) {
    const share = Math.floor(left / (sorted.length - at));
    if (length > share) return Math.max(0, share);
    left -= length;
  }
  return Number.POSITIVE_INFINITY;
}

const LOW_SURROGATE = /^[\uDC00-\uDFFF]/;
const HIGH_SURROGATE = /[\uD800-\uDBFF]$/;

/** Both ends of a text, and a mark between them; never half of a character. */
export function cutText(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  const mark = (leftOut: number) => `\n[… ${leftOut} characters left out …]\n`;
  const room = Math.max(0, charsMax - mark(text.length).length);
  const start = text.slice(0, Math.ceil(room / 2)).replace(HIGH_SURROGATE, '');
  const end = (room < 2 ? '' : text.slice(text.length - Math.floor(room / 2))).replace(LOW_SURROGATE, '');
  return start + mark(text.length - start.length - end.length) + end;
}

function cutMessage(message: Message, charsMax: number): Message {
  const { content } = message;
  if (typeof content === 'string') return { ...message, content: cutText(content, charsMax) };
  const cut = (part: InnerPart): InnerPart =>
    part.type === 'text' && part.text.length > charsMax ? { ...part, text: cutText(part.text, charsMax) } : part;
  return { ...message, content: (content ?? []).map(cut) };
}

/** Cuts the longest texts in their middle until everything fits, as far as texts are what does not. */
function cutTexts(messages: readonly Message[], { tokens_max, weigh }: Room): Pick<Compressed, 'messages' | 'cut'> {
  let kept = messages;
  let cut = 0;
  let charsMax = Number.POSITIVE_INFINITY;
  // How much a character weighs is known only of the whole: what the first estimate misses, the next ones find.
  for (let tries = 0; tries < 8; tries += 1) {
    const tokens = kept.reduce((sum, message) => sum + weigh(message), 0);
    if (tokens <= tokens_max) break;
    const lengths = kept.flatMap((message) => textsOf(message).map(({ length }) => length));
    const chars = lengths.reduce((sum, length) => sum + length, 0);
    const perChar = tokens / Math.max(1, chars);
    const over = (tokens - tokens_max) / perChar;
    const most = longestText(lengths, Math.floor((chars - over) * 0.98));
    charsMax = Math.min(most, charsMax * 0.9);
    kept = messages.map((message) =>
      textsOf(message).some(({ length }) => length > charsMax) ? cutMessage(message, charsMax) : message,
    );
    cut = kept.filter((message, at) => message !== messages[at]).length;
  }
  return { messages: kept, cut };
}

/**
 * Takes from the middle of a conversation what an endpoint has no room for: whole turns first, the ones nearest to the middle; where
 * what must stay is still too long, the middle of its longest texts. Keeps instructions, the last question, the end, the
 * order, and calls of tools with their results. Undefined: it cannot be made to fit.
 */
export function compressMiddleOut(messages: readonly Message[], room: Room): Compressed | undefined {
  const weights = messages.map(room.weigh);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  if (total <= room.tokens_max && messages.length <= room.messages_max) return { messages, dropped: 0, cut: 0 };
  const units = unitsOf(messages, weights);
  keepAnchors(units, messages);
  keepEnds(units, room);
  const left = units.flatMap(({ is_kept, from, end }) => (is_kept ? messages.slice(from, end) : []));
  const { messages: kept, cut } = cutTexts(left, room);
  const tokens = kept.reduce((sum, message) => sum + room.weigh(message), 0);
  if (tokens > room.tokens_max || kept.length > room.messages_max) return undefined;
  return { messages: kept, dropped: messages.length - kept.length, cut };
}
