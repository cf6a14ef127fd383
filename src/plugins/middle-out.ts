import type { InnerPart, Message } from '../schemas/inner.ts';

/** The bounds of a prompt, and the weight of its messages. */
export interface PromptBounds {
  tokens_max: number;
  messages_max: number;
  /** The tokens of a message with all its content. */
  weigh(message: Message): number;
}

/** A conversation shortened for an endpoint. */
export interface Compressed {
  messages: readonly Message[];
  /** The number of removed messages and of messages with cut texts. */
  dropped: number;
  cut: number;
}

/** Messages that are kept or removed together: a turn that calls tools, and their results. */
interface Unit {
  from: number;
  end: number;
  tokens: number;
  isKept: boolean;
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
    } else units.push({ from: at, end: at + 1, tokens: weights[at]!, isKept: isInstruction(message) });
  }
  return units;
}

/** Marks messages that are never removed: instructions, the user's last message, and the last message. */
function keepAnchors(units: readonly Unit[], messages: readonly Message[]): void {
  const lastQuestion = units.findLast(({ from }) => messages[from]!.role === 'user');
  for (const unit of [lastQuestion, units.at(-1)]) if (unit !== undefined) unit.isKept = true;
}

/** Keeps units from the start and the end in turn, until one does not fit on each side. The middle is removed. */
function keepEnds(units: readonly Unit[], room: Pick<PromptBounds, 'tokens_max' | 'messages_max'>): void {
  let tokens = 0;
  let count = 0;
  for (const { isKept, tokens: own, from, end } of units) {
    if (!isKept) continue;
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
    const isIn = unit.isKept || fits(unit);
    unit.isKept = isIn;
    if (isStart) {
      isOpenAtStart = isIn;
      if (isIn) first += 1;
    } else {
      isOpenAtEnd = isIn;
      if (isIn) last -= 1;
    }
  }
}

/** The texts of a message that may be cut, without arguments of calls and reasoning. */
function textsOf({ content }: Message): string[] {
  if (typeof content === 'string') return [content];
  return (content ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : []));
}

/** The greatest length of one text so that all texts together have at most `charsMax`. Short texts stay whole. */
function longestText(lengths: readonly number[], charsMax: number): number {
  const sorted = [...lengths].sort((one, other) => one - other);
  let remaining = charsMax;
  for (const [at, length] of sorted.entries()) {
    const share = Math.floor(remaining / (sorted.length - at));
    if (length > share) return Math.max(0, share);
    remaining -= length;
  }
  return Number.POSITIVE_INFINITY;
}

const LOW_SURROGATE = /^[\uDC00-\uDFFF]/;
const HIGH_SURROGATE = /[\uD800-\uDBFF]$/;

/** Cuts the middle of a text and marks the gap. Never splits a surrogate pair. */
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

/** Cuts the middle of the longest texts until all messages fit, if cutting texts can achieve it. */
function cutTexts(
  messages: readonly Message[],
  { tokens_max, weigh }: PromptBounds,
): Pick<Compressed, 'messages' | 'cut'> {
  let kept = messages;
  let cut = 0;
  let charsMax = Number.POSITIVE_INFINITY;
  // The weight of a character is only known as an average: later rounds correct the first estimate.
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
 * Removes the middle of a conversation that is too long for an endpoint: whole turns first, nearest to the middle;
 * if the rest is still too long, the middle of its longest texts. Keeps instructions, the last question, the last message, the
 * order, and tool calls with their results. Undefined if it cannot fit.
 */
export function compressMiddleOut(messages: readonly Message[], room: PromptBounds): Compressed | undefined {
  const weights = messages.map(room.weigh);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  if (total <= room.tokens_max && messages.length <= room.messages_max) return { messages, dropped: 0, cut: 0 };
  const units = unitsOf(messages, weights);
  keepAnchors(units, messages);
  keepEnds(units, room);
  const messagesLeft = units.flatMap(({ isKept, from, end }) => (isKept ? messages.slice(from, end) : []));
  const { messages: kept, cut } = cutTexts(messagesLeft, room);
  const tokens = kept.reduce((sum, message) => sum + room.weigh(message), 0);
  if (tokens > room.tokens_max || kept.length > room.messages_max) return undefined;
  return { messages: kept, dropped: messages.length - kept.length, cut };
}
