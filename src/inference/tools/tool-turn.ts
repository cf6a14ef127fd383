import { createAccumulator } from '../../schemas/accumulate.ts';
import { append } from '../../schemas/append.ts';
import {
  type Annotation,
  CHAT_WIRE,
  type ChatChunk,
  type ChatCompletion,
  type Delta,
  type FinishReason,
  type Message,
  type ReasoningDetail,
  type SlotEvent,
  type ToolCall,
  type UrlCitation,
} from '../../schemas/inner.ts';
import { countCodePoints } from '../../schemas/text.ts';
import type { DeclaredTools } from './declared-tools.ts';
import type { ServerTool } from './server-tools.ts';

/** A call of one of the gateway's tools. */
export interface ServerCall {
  call: ToolCall;
  tool: ServerTool;
}

/** The result of one turn of the model. */
export interface StepEnd {
  /** The message as the model produced it. */
  message: Message & { role: 'assistant' };
  finish_reason: FinishReason | null;
  /** Calls that the gateway runs before the next turn. Empty if the answer ends with this turn. */
  calls: readonly ServerCall[];
}

/** Separates the texts of two turns if the first does not end with a line break. */
const APART = '\n\n';

/** The readable part of a detail. Undefined if there is none. */
function readable(detail: ReasoningDetail): ReasoningDetail | undefined {
  if (detail.type === 'reasoning.encrypted') return undefined;
  if (detail.type === 'reasoning.summary') return detail;
  const { signature: _, ...unsigned } = detail;
  return unsigned.text ? unsigned : undefined;
}

/** The part of a detail that only its provider can read. Undefined if there is none. */
function opaque(detail: ReasoningDetail): ReasoningDetail | undefined {
  if (detail.type === 'reasoning.encrypted') return detail;
  if (detail.type === 'reasoning.summary' || detail.signature == null) return undefined;
  const { text: _, ...kept } = detail;
  return kept;
}

/** The slot of a shown block. Fields of upstreams that are only valid beside the hidden blocks are removed from reasoning and text. */
function bare(slot: SlotEvent, n: number, kind: string | undefined): SlotEvent {
  const { open, close, raw } = slot;
  const isKept = kind === 'call' || kind === 'native' || kind === 'image';
  return {
    n,
    ...(open === undefined ? {} : { open: isKept ? open : { kind: open.kind } }),
    ...(raw === undefined ? {} : { raw }),
    ...(close === undefined ? {} : { close: isKept ? close : {} }),
  };
}

/** One turn of the model while its chunks arrive. */
class Step {
  readonly accumulator = createAccumulator();
  /** Calls of the gateway's tools, by their ordinals. */
  readonly server = new Map<number, ServerTool>();
  /** Calls of the client's tools: the ordinal that the client sees, by the upstream's ordinal. */
  readonly client = new Map<number, number>();
  /** Blocks that are not shown. */
  readonly hidden = new Set<number>();
  /** The kinds of the blocks. */
  readonly kinds = new Map<number, string>();
  /** The chunks that end the turn. They are shown if the answer ends with this turn. */
  held: ChatChunk[] = [];
  finish_reason: FinishReason | null = null;
  slots = 0;
  /** The shown ordinals of its details. */
  readonly details = new Map<number | ReasoningDetail['type'], number>();
  /** The opaque parts of its details. */
  readonly opaque: ReasoningDetail[] = [];
  has_text = false;
  has_reasoning = false;
}

/**
 * Shows the client several turns of the model as one turn. Calls of the gateway's tools are hidden, and so is opaque reasoning, which
 * is only valid beside those calls. Ordinals continue from turn to turn.
 */
export class ToolTurn {
  readonly #tools: DeclaredTools;
  #step = new Step();
  #slots = 0;
  #calls = 0;
  #details = 0;
  #isFirst = true;
  /** The last character of the shown text. */
  #tail = '';
  /** Reasoning was shown. */
  #hasReasoned = false;
  /** Text was shown. */
  #hasText = false;
  /** The model cannot call tools in this turn: it ends the answer. */
  #isLast = false;
  /** Code points of the shown text. */
  #points = 0;
  /** Code points of the text that was shown before the current turn. */
  #before = 0;

  constructor(tools: DeclaredTools) {
    this.#tools = tools;
  }

  /** Whether the client has been shown text. */
  get has_text(): boolean {
    return this.#hasText;
  }

  /** Returns what the client sees of these chunks. */
  add(chunks: readonly ChatChunk[]): ChatChunk[] {
    const out: ChatChunk[] = [];
    for (const chunk of chunks) {
      this.#step.accumulator.add(chunk);
      if (chunk.finish_reason != null) this.#end(chunk, out);
      else if (this.#step.finish_reason !== null) this.#step.held.push(chunk);
      else {
        const shown = this.#shown(chunk);
        if (shown !== undefined) out.push(shown);
      }
    }
    return out;
  }

  /** Holds back the end of a turn until it is known whether another turn follows. */
  #end(chunk: ChatChunk, out: ChatChunk[]): void {
    const { finish_reason, native_finish_reason, error, ext, delta, ...beside } = chunk;
    const shown = this.#shown({ ...beside, delta, ...(ext?.slot === undefined ? {} : { ext: { slot: ext.slot } }) });
    if (shown !== undefined && (Object.keys(shown.delta).length > 0 || shown.ext !== undefined)) out.push(shown);
    this.#step.finish_reason = finish_reason ?? null;
    this.#step.held.push({
      delta: {},
      finish_reason: finish_reason ?? null,
      ...(native_finish_reason === undefined ? {} : { native_finish_reason }),
      ...(error === undefined ? {} : { error }),
      ...(ext?.response === undefined ? {} : { ext: { response: ext.response } }),
    });
  }

  #shown(chunk: ChatChunk): ChatChunk | undefined {
    const step = this.#step;
    const { delta, ext, ...beside } = chunk;
    const { reasoning, reasoning_details, tool_calls, content, annotations, ...rest } = delta;
    const shown: Delta = { ...rest };
    if (content) {
      shown.content = this.#apart(content);
      if (!step.has_text) this.#before = this.#points + shown.content.length - content.length;
      this.#points += countCodePoints(shown.content);
      step.has_text = true;
      this.#hasText = true;
      this.#tail = content.slice(-1);
    } else if (content !== undefined) shown.content = content;
    if (annotations !== undefined) shown.annotations = annotations.map((one) => this.#placed(one));
    this.#reason(reasoning, reasoning_details, shown);
    const calls = (tool_calls ?? []).flatMap((call) => this.#call(call));
    if (calls.length > 0) shown.tool_calls = calls;
    const slot = ext?.slot;
    if (slot === undefined) {
      // A part of a hidden call.
      if (tool_calls?.length && calls.length === 0 && Object.keys(shown).length === 0) return undefined;
      return { ...beside, delta: shown, ...(ext === undefined ? {} : { ext }) };
    }
    step.slots = Math.max(step.slots, slot.n + 1);
    if (slot.open !== undefined) step.kinds.set(slot.n, slot.open.kind);
    if (tool_calls?.length && calls.length === 0) step.hidden.add(slot.n);
    if (step.hidden.has(slot.n)) return undefined;
    return {
      ...beside,
      delta: shown,
      ext: { ...ext, slot: bare(slot, this.#slots + slot.n, step.kinds.get(slot.n)) },
    };
  }

  #apart(content: string): string {
    const isFirst = !this.#step.has_text;
    return isFirst && this.#hasText && this.#tail !== '\n' ? APART + content : content;
  }

  /** A citation by the provider, with offsets in the joined text. */
  #placed(annotation: Annotation): Annotation {
    if (annotation.type !== 'url_citation') return annotation;
    const { url_citation } = annotation as UrlCitation;
    const { start_index, end_index } = url_citation;
    if (end_index === 0 || this.#before === 0) return annotation;
    const moved = { start_index: start_index + this.#before, end_index: end_index + this.#before };
    return { type: 'url_citation', url_citation: { ...url_citation, ...moved } };
  }

  #reason(text: Delta['reasoning'], details: Delta['reasoning_details'], shown: Delta): void {
    const step = this.#step;
    if (details !== undefined) {
      const readableDetails = details.flatMap((detail) => readable(detail) ?? []);
      append(
        step.opaque,
        details.flatMap((detail) => opaque(detail) ?? []),
      );
      if (readableDetails.length > 0)
        shown.reasoning_details = readableDetails.map((detail) => ({ ...detail, index: this.#detail(detail) }));
    }
    if (text == null) return;
    const isApart = text !== '' && !step.has_reasoning && this.#hasReasoned;
    shown.reasoning = isApart ? APART + text : text;
    step.has_reasoning ||= text !== '';
    this.#hasReasoned ||= text !== '';
  }

  /** The shown ordinal of a detail. Hidden details leave no gaps. */
  #detail({ index, type }: ReasoningDetail): number {
    const { details } = this.#step;
    let shown = details.get(index ?? type);
    if (shown === undefined) {
      shown = this.#details;
      this.#details += 1;
      details.set(index ?? type, shown);
    }
    return shown;
  }

  #call(call: NonNullable<Delta['tool_calls']>[number]): NonNullable<Delta['tool_calls']> {
    const step = this.#step;
    const name = call.function.name;
    if (!step.server.has(call.index) && !step.client.has(call.index)) {
      const tool = name === undefined ? undefined : this.#tools.byName.get(name);
      if (tool !== undefined) step.server.set(call.index, tool);
      else step.client.set(call.index, this.#calls + step.client.size);
    }
    const index = step.client.get(call.index);
    return index === undefined ? [] : [{ ...call, index }];
  }

  /** The result of the turn, after its last chunk. */
  stepEnd(): StepEnd {
    const step = this.#step;
    const { message } = this.completion().choices[0];
    const isOver = this.#isLast || step.client.size > 0 || step.server.size === 0;
    const isWhole = step.finish_reason === 'tool_calls' || step.finish_reason === 'stop';
    const calls = isOver || !isWhole ? [] : this.#serverCalls(message);
    return { message, finish_reason: step.finish_reason, calls };
  }

  #serverCalls({ tool_calls = [] }: Message): ServerCall[] {
    return tool_calls.flatMap((call) => {
      const tool = this.#tools.byName.get(call.function.name);
      return tool === undefined ? [] : [{ call, tool }];
    });
  }

  /** The turn as the model has produced it so far. */
  completion(): ChatCompletion {
    return this.#step.accumulator.result(0);
  }

  /** Ends the current turn: another one follows. */
  goOn(): void {
    const step = this.#step;
    this.#slots += step.slots;
    this.#calls += step.client.size;
    this.#isFirst = false;
    this.#step = new Step();
  }

  /** Sets whether the next turn ends the answer, without tools. */
  endIsNext(isNext: boolean): void {
    this.#isLast = isNext;
  }

  /** The opaque reasoning of the turn. */
  #opaque(): ChatChunk[] {
    const details = this.#step.opaque.map((detail) => ({ ...detail, index: this.#detail(detail) }));
    return details.length === 0 ? [] : [{ delta: { reasoning_details: details } }];
  }

  /** Reserves the ordinal of a block that the gateway adds between two turns. */
  takeSlot(): number {
    this.#slots += 1;
    return this.#slots - 1;
  }

  /** The shown turn with the opaque reasoning of its last step: the state to keep. */
  withState(shown: ChatCompletion): ChatCompletion {
    const [choice] = shown.choices;
    const { ext, reasoning_details = [], ...message } = choice.message;
    const made = this.completion().choices[0].message.reasoning_details ?? [];
    const own = new Map(made.map((one) => [this.#step.details.get(one.index ?? one.type), one]));
    const details = reasoning_details.map((detail) => {
      const stated = detail.index === undefined ? undefined : own.get(detail.index);
      return stated?.type === detail.type ? { ...stated, index: detail.index! } : detail;
    });
    // Blocks that the gateway added are for display only.
    const { natives: _, order, ...bare } = ext ?? { wire: CHAT_WIRE, rest: {} };
    const kept = order?.filter(({ kind }) => kind !== 'native');
    return {
      ...shown,
      choices: [
        {
          ...choice,
          message: {
            ...message,
            ...(details.length === 0 ? {} : { reasoning_details: details }),
            ...(kept === undefined ? {} : { ext: { ...bare, order: kept } }),
          },
        },
      ],
    };
  }

  /**
   * Returns the end that was held back, if the answer ends with this turn. If only calls of the gateway's tools remain, which are not
   * run, the turn ends with `stop`. `takesLate`: opaque reasoning of an answer without tool calls is added before the end.
   */
  finish(takesLate: boolean): ChatChunk[] {
    const step = this.#step;
    const { held } = step;
    step.held = [];
    if (step.server.size === 0) return this.#isFirst && takesLate ? [...this.#opaque(), ...held] : held;
    if (step.client.size > 0) return held;
    return held.map((chunk) => (chunk.finish_reason === 'tool_calls' ? { ...chunk, finish_reason: 'stop' } : chunk));
  }
}
