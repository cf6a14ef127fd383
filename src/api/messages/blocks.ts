import type { Envelope } from '../../inference/state/envelope.ts';
import { isMarked } from '../../inference/state/signed-text.ts';
import type { Annotation, ChatChunk, Ext, ReasoningDetail, SlotEvent, ToolCallDelta } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { shownCallId } from './tool-ids.ts';

export const WIRE = 'anthropic-messages';
const OWN_FORMAT = 'anthropic-claude-v1';

/** What blocks are written to: one is open at a time. */
export interface BlockSink {
  start(block: JsonObject): void;
  text(piece: string): void;
  thinking(piece: string): void;
  signature(signature: string): void;
  /** A piece of a tool's input, as text. */
  input(piece: string): void;
  /** A delta of a native block, as its wire told it. */
  raw(delta: JsonObject): void;
  cite(citation: JsonObject): void;
  stop(): void;
}

/** `omitted`: blocks without their text, so that what is opaque comes back; `hidden`: none. */
export type ReasoningShown = 'shown' | 'omitted' | 'hidden';

export interface BlockOptions {
  envelope: Envelope;
  reasoning: ReasoningShown;
}

/** Turns the chunks of a turn, block after block, into blocks of the Messages API. */
export interface BlockWriter {
  add(chunk: ChatChunk): void;
  /** Closes what is open. */
  end(): void;
  /** Another endpoint goes on with the text. */
  continue(): void;
  /** Whether the model refused in words. */
  hasRefused(): boolean;
}

/** Whether a block of this kind has a place in a Messages answer. */
export function isShownBlock({ kind, native }: NonNullable<SlotEvent['open']>): boolean {
  if (kind === 'native') return native?.wire === WIRE;
  return kind !== 'image' && kind !== 'audio';
}

type OpenBlock =
  | {
      kind: 'text' /** Only what is cited may still come. */;
      is_over: boolean;
      citations: JsonObject[];
      is_cited: boolean;
    }
  | { kind: 'thinking'; index: number | undefined }
  | { kind: 'call'; index: number }
  | { kind: 'native' };

/** The remainder of a block that came over this very wire. */
function ownRest(ext: Ext | undefined): JsonObject {
  return ext?.wire === WIRE ? ext.rest : {};
}

/** One of this wire's own details, which its clients send back as they are. */
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

/** The details without the text that their block shows, where it can only be one detail's. */
function withoutShown(details: readonly ReasoningDetail[]): readonly ReasoningDetail[] {
  if (details.filter((detail) => detail.type !== 'reasoning.encrypted').length !== 1) return details;
  return details.map((detail): ReasoningDetail => {
    if (detail.type === 'reasoning.encrypted') return detail;
    return detail.type === 'reasoning.summary' ? { ...detail, summary: '' } : { ...detail, text: '' };
  });
}

export function createBlockWriter(sink: BlockSink, { envelope, reasoning }: BlockOptions): BlockWriter {
  let open: OpenBlock | undefined;
  /** The details of the thinking block that grows, foreign or unseen: what its signature will stand for. */
  let group: ReasoningDetail[] = [];
  /** Whether some of the group's text was shown. */
  let is_group_shown = false;
  /** The remainder of the slot that was opened last. */
  let rest: JsonObject = {};
  /** What cites a text that is not there yet. */
  let early: JsonObject[] = [];
  let refused = false;
  let goes_on = false;

  function stop(): void {
    if (open === undefined) return;
    if (open.kind === 'text') for (const citation of open.citations) sink.cite(citation);
    open = undefined;
    sink.stop();
  }

  function start(block: JsonObject, next: OpenBlock): void {
    stop();
    goes_on = false;
    open = next;
    sink.start(block);
  }

  function textBlock(is_cited = false): OpenBlock & { kind: 'text' } {
    endGroup();
    if (open?.kind === 'text' && (!open.is_over || goes_on)) {
      open.is_over = false;
      return open;
    }
    const is_known = is_cited || rest['citations'] !== undefined;
    const block: OpenBlock & { kind: 'text' } = { kind: 'text', is_over: false, citations: early, is_cited: is_known };
    early = [];
    start({ ...(is_cited ? { citations: [] } : {}), ...rest, type: 'text', text: '' }, block);
    return block;
  }

  // ---- Reasoning.

  /** Ends a group of details with the text that stands for them. */
  function endGroup(): void {
    if (group.length === 0) return;
    const details = group;
    const is_shown = is_group_shown;
    group = [];
    is_group_shown = false;
    const data = envelope.wrap(is_shown ? withoutShown(details) : details);
    if (is_shown) {
      if (data !== undefined) sink.signature(data);
      stop();
    } else if (data !== undefined && details.some((detail) => readable(detail) !== '')) {
      start({ type: 'thinking', thinking: '', signature: '' }, { kind: 'thinking', index: undefined });
      sink.signature(data);
      stop();
    } else if (data !== undefined) {
      start({ type: 'redacted_thinking', data }, { kind: 'native' });
      stop();
    }
  }

  /** Whether a detail is one with the group: the same detail, or of the same item (translation R6). */
  function isOfGroup(detail: ReasoningDetail): boolean {
    const last = group.at(-1);
    if (last === undefined || (last.format ?? '') !== (detail.format ?? '')) return false;
    if (isSameDetail(last, detail)) return true;
    return last.type !== 'reasoning.encrypted' && Boolean(detail.format?.endsWith('responses-v1'));
  }

  function collect(detail: ReasoningDetail): { is_new: boolean } {
    if (!isOfGroup(detail)) endGroup();
    const last = group.at(-1);
    if (last === undefined || !isSameDetail(last, detail)) {
      group.push({ ...detail });
      return { is_new: true };
    }
    if (last.type === 'reasoning.summary' && detail.type === 'reasoning.summary') last.summary += detail.summary;
    if (last.type === 'reasoning.text' && detail.type === 'reasoning.text') {
      if (detail.text != null) last.text = (last.text ?? '') + detail.text;
      if (detail.signature != null) last.signature = detail.signature;
    }
    return { is_new: false };
  }

  function addForeign(detail: ReasoningDetail): void {
    const { is_new } = collect(detail);
    const text = readable(detail);
    if (reasoning === 'omitted' || text === '') return;
    if (!is_group_shown)
      start({ type: 'thinking', thinking: '', signature: '' }, { kind: 'thinking', index: undefined });
    sink.thinking(is_group_shown && is_new ? `\n\n${text}` : text);
    is_group_shown = true;
  }

  /** What another gateway marked as its own would be taken for ours when it comes back. */
  function throughUs(opaque: string, detail: ReasoningDetail): string | undefined {
    return isMarked(opaque) ? envelope.wrap([detail]) : opaque;
  }

  function addOwn(detail: ReasoningDetail): void {
    if (detail.type === 'reasoning.encrypted') {
      endGroup();
      const data = throughUs(detail.data, detail);
      if (data === undefined) return;
      start({ ...rest, type: 'redacted_thinking', data }, { kind: 'native' });
      stop();
      return;
    }
    if (detail.type !== 'reasoning.text') return;
    // A text that is not to be seen goes back with its signature all the same.
    if (reasoning === 'omitted' && (detail.text || group.length > 0)) {
      collect(detail);
      return;
    }
    if (open?.kind !== 'thinking' || open.index !== detail.index) {
      endGroup();
      start({ ...rest, type: 'thinking', thinking: '', signature: '' }, { kind: 'thinking', index: detail.index });
    }
    if (detail.text) sink.thinking(detail.text);
    if (detail.signature) sink.signature(throughUs(detail.signature, { ...detail, text: '' }) ?? '');
  }

  function addDetails(details: readonly ReasoningDetail[]): void {
    if (reasoning === 'hidden') return;
    for (const detail of details) {
      const last = group.at(-1);
      // The signature of a detail that is collected belongs to it, whatever it begins with.
      if (isOwn(detail) && !(last !== undefined && isSameDetail(last, detail))) addOwn(detail);
      else addForeign(detail);
    }
  }

  // ---- Calls, citations, natives.

  function addCall({ index, id, function: { name = '', arguments: piece } }: ToolCallDelta): void {
    endGroup();
    if (id !== undefined) {
      start({ ...rest, type: 'tool_use', id: shownCallId(id), name, input: {} }, { kind: 'call', index });
    }
    if (piece && open?.kind === 'call' && open.index === index) sink.input(piece);
  }

  /** Where the wire's own citations came, the annotations say the same once more. */
  function annotate(annotations: readonly Annotation[]): void {
    if (open?.kind === 'text' && open.is_cited) return;
    for (const annotation of annotations) {
      if (annotation.type !== 'url_citation') continue;
      const { url, title, content } = (annotation as Extract<Annotation, { type: 'url_citation' }>).url_citation;
      (open?.kind === 'text' ? open.citations : early).push({
        type: 'web_search_result_location',
        cited_text: content ?? '',
        url,
        title: title ?? null,
        encrypted_index: '',
      });
    }
  }

  function addRaw(raw: JsonObject): void {
    if (raw['type'] === 'citations_delta') {
      const block = textBlock(true);
      block.is_cited = true;
      sink.cite(raw['citation'] as JsonObject);
    } else if (open?.kind === 'native') sink.raw(raw);
  }

  function openSlot({ kind, ext, native }: NonNullable<SlotEvent['open']>): void {
    endGroup();
    rest = ownRest(ext);
    if (open?.kind === 'text') open.is_over = true;
    if (kind === 'native' && native !== undefined) start(native.block, { kind: 'native' });
  }

  function closeSlot(): void {
    endGroup();
    // Text may still be cited; it is closed when something else begins.
    if (open?.kind === 'text') open.is_over = true;
    else stop();
    rest = {};
  }

  return {
    add({ delta, ext }) {
      const slot = ext?.slot;
      if (slot?.open !== undefined) openSlot(slot.open);
      if (delta.content) {
        textBlock();
        sink.text(delta.content);
      }
      if (delta.reasoning_details !== undefined) addDetails(delta.reasoning_details);
      else if (delta.reasoning) addDetails([{ type: 'reasoning.text', text: delta.reasoning, format: 'unknown' }]);
      if (delta.refusal) {
        refused = true;
        textBlock();
        sink.text(delta.refusal);
      }
      if (delta.tool_calls !== undefined) for (const call of delta.tool_calls) addCall(call);
      if (slot?.raw !== undefined) addRaw(slot.raw);
      if (delta.annotations !== undefined) annotate(delta.annotations);
      if (slot?.close !== undefined) closeSlot();
    },
    end() {
      endGroup();
      stop();
    },
    continue() {
      endGroup();
      if (open?.kind === 'text') goes_on = true;
      else stop();
      rest = {};
    },
    hasRefused: () => refused,
  };
}
