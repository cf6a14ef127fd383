import type { ChatChunk, Delta, SlotEvent } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { createJsonFilter } from './json-filter.ts';
import { createStreamFilter, type Finder, type StreamFilter } from './stream-filter.ts';

/** The filter of one streamed text: the arguments of a call, or one text of a native block. */
interface Piece {
  /** The number of the block, if the wire has blocks. */
  n: number | undefined;
  filter: StreamFilter;
  /** Returns a chunk with the rest of the text. */
  renderRest(rest: string): ChatChunk;
}

/** Members of native deltas that contain streamed text. */
const FIELDS = ['delta', 'partial_json', 'text', 'thinking', 'content'] as const;

/**
 * Filters the tool calls of one answer: the arguments of each call, and the streamed texts of native blocks. Each of
 * these texts is filtered over all its chunks; text that could become a match is held back until its block ends.
 */
export class CallFilter {
  readonly #finder: Finder;
  /** Returns the chunk with everything beside its streamed text filtered. */
  readonly #beside: (chunk: ChatChunk, isTouched: boolean) => ChatChunk;
  readonly #pieces = new Map<string, Piece>();
  /** The keys of `#pieces` by block. */
  readonly #keysOf = new Map<number, Set<string>>();

  constructor(finder: Finder, beside: (chunk: ChatChunk, isTouched: boolean) => ChatChunk) {
    this.#finder = finder;
    this.#beside = beside;
  }

  /** Takes a chunk with one part of one call, and appends to `out` what can be shown of it. */
  takeCall(chunk: ChatChunk, out: ChatChunk[]): void {
    const [call] = chunk.delta.tool_calls!;
    const { index } = call!;
    const n = chunk.ext?.slot?.n;
    const key = `call ${index}`;
    let piece = this.#pieces.get(key);
    if (piece === undefined) {
      piece = {
        n,
        filter: createJsonFilter(this.#finder),
        renderRest: (rest) => ({
          delta: { tool_calls: [{ index, function: { arguments: rest } }] },
          ...(n === undefined ? {} : { ext: { slot: { n } } }),
        }),
      };
      this.#keep(key, piece);
    }
    const argumentsText = call!.function.arguments;
    const shown = argumentsText === undefined ? undefined : piece.filter.push(argumentsText);
    const closes = chunk.ext?.slot?.close !== undefined;
    let rest = '';
    if (closes) {
      this.#forget(key, piece.n);
      rest = piece.filter.end();
    }
    const text = shown === undefined && rest === '' ? undefined : (shown ?? '') + rest;
    const hasNews = call!.id !== undefined || call!.function.name !== undefined || text !== '';
    const made = this.#beside(chunk, text !== argumentsText);
    const filteredFunction = { ...call!.function, ...(text === undefined ? {} : { arguments: text }) };
    const delta: Delta = { ...made.delta, tool_calls: [{ ...call!, function: filteredFunction }] };
    if (!hasNews) delete delta.tool_calls;
    const isShown = hasNews || chunk.finish_reason != null || chunk.ext?.slot?.open !== undefined || closes;
    if (isShown) out.push({ ...made, delta });
  }

  /** Takes a delta of a native block, whose text continues the text of the deltas before, and appends to `out` what can be shown. */
  takeRaw(chunk: ChatChunk, slot: SlotEvent & { raw: JsonObject }, out: ChatChunk[]): void {
    const { raw, n } = slot;
    const type = String(raw['type'] ?? '');
    const field = type.endsWith('delta') ? FIELDS.find((name) => typeof raw[name] === 'string') : undefined;
    if (field === undefined) {
      out.push(this.#beside(chunk, false));
      return;
    }
    const key = `raw ${n} ${type}`;
    let piece = this.#pieces.get(key);
    if (piece === undefined) {
      const isJson = field === 'partial_json' || type.includes('arguments');
      piece = {
        n,
        filter: isJson ? createJsonFilter(this.#finder) : createStreamFilter(this.#finder),
        renderRest: (rest) => ({ delta: {}, ext: { slot: { n, raw: { ...raw, [field]: rest } } } }),
      };
      this.#keep(key, piece);
    }
    const shown = piece.filter.push(String(raw[field]));
    const { [field]: _, ...others } = raw;
    const made = this.#beside({ ...chunk, ext: { ...chunk.ext, slot: { ...slot, raw: others } } }, false);
    const { slot: madeSlot } = made.ext!;
    if (shown !== '' || slot.open !== undefined || slot.close !== undefined) {
      out.push({ ...made, ext: { ...made.ext, slot: { ...madeSlot!, raw: { ...madeSlot!.raw, [field]: shown } } } });
    }
  }

  /** Ends the texts of one block, and appends what they held back. */
  endBlock(n: number, out: ChatChunk[]): void {
    for (const key of [...(this.#keysOf.get(n) ?? [])]) this.#end(key, out);
  }

  /** Ends all texts, and appends what they held back. The filter can be used for further blocks. */
  endAll(out: ChatChunk[]): void {
    for (const key of [...this.#pieces.keys()]) this.#end(key, out);
  }

  #end(key: string, out: ChatChunk[]): void {
    const piece = this.#pieces.get(key);
    if (piece === undefined) return;
    this.#forget(key, piece.n);
    const rest = piece.filter.end();
    if (rest !== '') out.push(piece.renderRest(rest));
  }

  #keep(key: string, piece: Piece): void {
    this.#pieces.set(key, piece);
    if (piece.n === undefined) return;
    const known = this.#keysOf.get(piece.n);
    if (known === undefined) this.#keysOf.set(piece.n, new Set([key]));
    else known.add(key);
  }

  #forget(key: string, n: number | undefined): void {
    this.#pieces.delete(key);
    if (n === undefined) return;
    const known = this.#keysOf.get(n);
    known?.delete(key);
    if (known?.size === 0) this.#keysOf.delete(n);
  }
}
