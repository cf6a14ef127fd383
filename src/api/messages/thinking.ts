import type { Envelope } from '../../inference/reasoning/envelope.ts';
import { isMarked } from '../../inference/reasoning/signed-text.ts';
import type { ReasoningDetail } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { BlockSink } from './block-sink.ts';

const OWN_FORMAT = 'anthropic-claude-v1';

/** `omitted`: blocks without text, for their opaque state; `hidden`: no blocks. */
export type ReasoningShown = 'shown' | 'omitted' | 'hidden';

export interface ThinkingOptions {
  envelope: Envelope;
  reasoning: ReasoningShown;
}

/** Writes reasoning as blocks: reasoning of this wire unchanged, that of other wires with an envelope for what only they can read. */
export interface ThinkingWriter {
  /** `rest` is the remainder of a block that arrived over this wire. */
  add(details: readonly ReasoningDetail[], rest: JsonObject): void;
  /** The details so far are complete. */
  end(): void;
}

/** Whether a detail has this wire's format. Clients send such details back unchanged. */
function isOwn(detail: ReasoningDetail): boolean {
  return detail.format === OWN_FORMAT && detail.type !== 'reasoning.summary';
}

function isSameDetail(a: ReasoningDetail, b: ReasoningDetail): boolean {
  return a.index === b.index && a.type === b.type && a.type !== 'reasoning.encrypted';
}

function readable(detail: ReasoningDetail): string {
  if (detail.type === 'reasoning.text') return detail.text ?? '';
  return detail.type === 'reasoning.summary' ? detail.summary : '';
}

function addPiece(detail: ReasoningDetail, piece: ReasoningDetail): void {
  if (detail.type === 'reasoning.summary' && piece.type === 'reasoning.summary') detail.summary += piece.summary;
  if (detail.type === 'reasoning.text' && piece.type === 'reasoning.text') {
    if (piece.text != null) detail.text = (detail.text ?? '') + piece.text;
    if (piece.signature != null) detail.signature = piece.signature;
  }
}

/** The details without the text that is in their block, if it is that of a single detail. */
function withoutShown(details: readonly ReasoningDetail[]): readonly ReasoningDetail[] {
  if (details.filter((detail) => detail.type !== 'reasoning.encrypted').length !== 1) return details;
  return details.map((detail): ReasoningDetail => {
    if (detail.type === 'reasoning.encrypted') return detail;
    return detail.type === 'reasoning.summary' ? { ...detail, summary: '' } : { ...detail, text: '' };
  });
}

/** Makes the writer of one turn. `start` closes the open block first. */
export function createThinkingWriter(
  { start, sink, stop }: { start(block: JsonObject): void; sink: BlockSink; stop(): void },
  { envelope, reasoning }: ThinkingOptions,
): ThinkingWriter {
  /** The open block of this wire. */
  let own: ReasoningDetail | undefined;
  /** Details for one envelope: of other wires, or without visible text. */
  let group: ReasoningDetail[] = [];
  /** Whether any text of the group was written. */
  let isShown = false;

  const startThinking = (rest: JsonObject = {}) => start({ ...rest, type: 'thinking', thinking: '', signature: '' });

  function end(): void {
    own = undefined;
    if (group.length === 0) return;
    const data = envelope.wrap(isShown ? withoutShown(group) : group);
    const hasText = group.some((detail) => readable(detail) !== '');
    if (!isShown && data !== undefined) {
      if (hasText) startThinking();
      else start({ type: 'redacted_thinking', data });
    }
    if (hasText && data !== undefined) sink.signature(data);
    if (isShown || data !== undefined) stop();
    group = [];
    isShown = false;
  }

  /** Whether a detail belongs to the group: it is of the same item (translation R6). */
  function isOfGroup(detail: ReasoningDetail): boolean {
    const last = group.at(-1);
    if (last === undefined || last.type === 'reasoning.encrypted' || last.format !== detail.format) return false;
    return Boolean(detail.format?.endsWith('responses-v1'));
  }

  function collect(detail: ReasoningDetail): void {
    const last = group.at(-1);
    const isMore = last !== undefined && isSameDetail(last, detail);
    const hasBegun = isMore && readable(last) !== '';
    if (isMore) addPiece(last, detail);
    else {
      if (!isOfGroup(detail)) end();
      group.push({ ...detail });
    }
    const text = readable(detail);
    if (reasoning === 'omitted' || text === '') return;
    if (!isShown) startThinking();
    sink.thinking(isShown && !hasBegun ? `\n\n${text}` : text);
    isShown = true;
  }

  /** Wraps opaque state that carries the mark of a gateway: if it came back unwrapped, it would be mistaken for this gateway's. */
  function throughUs(opaque: string, detail: ReasoningDetail): string | undefined {
    return isMarked(opaque) ? envelope.wrap([detail]) : opaque;
  }

  function addOwn(detail: ReasoningDetail, rest: JsonObject): void {
    if (detail.type === 'reasoning.encrypted') {
      end();
      const data = throughUs(detail.data, detail);
      if (data === undefined) return;
      start({ ...rest, type: 'redacted_thinking', data });
      stop();
    } else if (detail.type === 'reasoning.text' && (detail.text || detail.signature)) {
      if (own === undefined || !isSameDetail(own, detail)) {
        end();
        startThinking(rest);
        own = detail;
      }
      if (detail.text) sink.thinking(detail.text);
      const signature = detail.signature ? throughUs(detail.signature, { ...detail, text: '' }) : undefined;
      if (signature !== undefined) sink.signature(signature);
    }
  }

  /** Whether a detail goes into an envelope; also one of this wire if its text must not be shown. */
  function isCollected(detail: ReasoningDetail): boolean {
    const last = group.at(-1);
    if (last !== undefined && isSameDetail(last, detail)) return true;
    return !isOwn(detail) || (reasoning === 'omitted' && readable(detail) !== '');
  }

  return {
    add(details, rest) {
      if (reasoning === 'hidden') return;
      for (const detail of details) {
        if (isCollected(detail)) collect(detail);
        else addOwn(detail, rest);
      }
    },
    end,
  };
}
