import { isOwn, restOf } from '../../providers/anthropic-messages/wire.ts';
import { append } from '../../schemas/append.ts';
import type { Annotation, ChatChunk, SlotEvent, ToolCallDelta, UrlCitation } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { BlockSink } from './block-sink.ts';
import { createThinkingWriter, type ThinkingOptions } from './thinking.ts';
import { shownCallId } from './tool-ids.ts';

/** Writes the chunks of a turn, block after block, as blocks of the Messages API. */
export interface BlockWriter {
  add(chunk: ChatChunk): void;
  /** Closes the open block. */
  end(): void;
  /** Another endpoint continues the text. */
  continue(): void;
  /** Whether the model refused in words. */
  hasRefused(): boolean;
}

/** Whether a Messages answer can contain a block of this kind. */
export function isShownBlock({ kind, native }: NonNullable<SlotEvent['open']>): boolean {
  if (kind === 'native') return isOwn(native);
  return kind !== 'image' && kind !== 'audio';
}

type OpenBlock =
  | {
      kind: 'text' /** Whether only citations may follow. */;
      is_over: boolean;
      citations: JsonObject[];
      is_cited: boolean;
    }
  | { kind: 'call'; index: number }
  | { kind: 'thinking' | 'native' };

function isUrlCitation(annotation: Annotation): annotation is UrlCitation {
  return annotation.type === 'url_citation';
}

/** A citation of another wire, without fields that only its provider can read. */
function citationOf({ url_citation: { url, title, content } }: UrlCitation): JsonObject {
  return {
    type: 'web_search_result_location',
    cited_text: content ?? '',
    url,
    title: title ?? null,
    encrypted_index: '',
  };
}

/** Makes the writer of one turn. Its chunks must be ordered by block (`createBlockOrder`). */
export function createBlockWriter(sink: BlockSink, options: ThinkingOptions): BlockWriter {
  let open: OpenBlock | undefined;
  /** The remainder of the last opened slot. */
  let rest: JsonObject = {};
  /** Citations that arrived before their text. */
  let early: JsonObject[] = [];
  let refused = false;
  let goesOn = false;
  const thinking = createThinkingWriter({ start: (block) => start(block, { kind: 'thinking' }), sink, stop }, options);

  function stop(): void {
    if (open === undefined) return;
    if (open.kind === 'text') for (const citation of open.citations) sink.cite(citation);
    open = undefined;
    sink.stop();
  }

  function start(block: JsonObject, next: OpenBlock): void {
    stop();
    goesOn = false;
    open = next;
    sink.start(block);
  }

  function textBlock(isCited = false): OpenBlock & { kind: 'text' } {
    thinking.end();
    if (open?.kind === 'text' && (!open.is_over || goesOn)) {
      open.is_over = false;
      return open;
    }
    const isKnown = isCited || rest['citations'] !== undefined;
    const block: OpenBlock & { kind: 'text' } = { kind: 'text', is_over: false, citations: early, is_cited: isKnown };
    early = [];
    start({ ...(isCited ? { citations: [] } : {}), ...rest, type: 'text', text: '' }, block);
    return block;
  }

  function addCall({ index, id, function: { name = '', arguments: piece } }: ToolCallDelta): void {
    thinking.end();
    if (id !== undefined) {
      start({ ...rest, type: 'tool_use', id: shownCallId(id), name, input: {} }, { kind: 'call', index });
    }
    if (piece && open?.kind === 'call' && open.index === index) sink.input(piece);
  }

  function addRaw(raw: JsonObject): void {
    if (raw['type'] === 'citations_delta') {
      textBlock(true).is_cited = true;
      sink.cite(raw['citation'] as JsonObject);
    } else if (open?.kind === 'native') sink.raw(raw);
  }

  function annotate(annotations: readonly Annotation[]): void {
    const text = open?.kind === 'text' ? open : undefined;
    // The wire's own citations contain the same as the annotations.
    if (text?.is_cited) return;
    append(text?.citations ?? early, annotations.filter(isUrlCitation).map(citationOf));
  }

  function openSlot({ kind, ext, native }: NonNullable<SlotEvent['open']>): void {
    thinking.end();
    rest = restOf(ext);
    if (open?.kind === 'text') open.is_over = true;
    if (kind === 'native' && native !== undefined) start(native.block, { kind: 'native' });
  }

  function closeSlot(): void {
    thinking.end();
    // Citations of the text may follow; it is closed when another block begins.
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
      if (delta.reasoning_details !== undefined) thinking.add(delta.reasoning_details, rest);
      else if (delta.reasoning)
        thinking.add([{ type: 'reasoning.text', text: delta.reasoning, format: 'unknown' }], {});
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
      thinking.end();
      stop();
    },
    continue() {
      thinking.end();
      if (open?.kind === 'text') goesOn = true;
      else stop();
      rest = {};
    },
    hasRefused: () => refused,
  };
}
