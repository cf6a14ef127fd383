import { joinReasoning } from '../../schemas/accumulate.ts';
import { ByChoice, followed, ofChoice } from '../../schemas/by-choice.ts';
import type {
  Annotation,
  ChatChunk,
  ChatRequest,
  Delta,
  Ext,
  Native,
  ReasoningDetail,
  SlotEvent,
  UrlCitation,
} from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { CallFilter } from './call-filter.ts';
import { filteredJson } from './deep-filter.ts';
import { JsonScan, WrittenScan } from './json-filter.ts';
import { piecesOf, splitChunk, withText } from './split-chunk.ts';
import { type Finder, TextScan } from './stream-filter.ts';
import { type Held, type Places, TextLane } from './text-lane.ts';

/** Filters the chunks of one answer. */
export interface AnswerFilter {
  /** Takes chunks and returns the chunks that can be shown. */
  take(chunks: readonly ChatChunk[]): ChatChunk[];
  /** Another endpoint continues the answer: its blocks are numbered again from 0, the text continues. */
  reopen(): ChatChunk[];
  /** Returns the remaining chunks. */
  end(): ChatChunk[];
  /** Whether a blocking match ended the answer: later chunks are not shown. */
  hasEnded(): boolean;
  /** Whether part of the answer was replaced or cut off. */
  hasChanged(): boolean;
}

export interface AnswerFilterOptions {
  finder: Finder;
  /** Whether the content is JSON: its unescaped strings are filtered, and it stays valid JSON. */
  content_is_json: boolean;
  /** Whether signatures of changed reasoning are kept: the reasoning is restored before it reaches its signer. */
  keeps_signatures: boolean;
  /** Whether a detail is about the whole turn: it is dropped if any of the turn was changed. */
  isOfTurn(detail: ReasoningDetail): boolean;
}

/** Whether a request asks for JSON content. */
export function wantsJson({ response_format }: Pick<ChatRequest, 'response_format'>): boolean {
  return response_format?.type === 'json_object' || response_format?.type === 'json_schema';
}

type TextKind = 'content' | 'refusal' | 'reasoning' | 'transcript';

const RAW_ANNOTATION = 'response.output_text.annotation.added';

/**
 * Creates the filter of one answer. Each text is filtered over all its chunks and blocks: content, refusal, reasoning, transcript,
 * the arguments of each call. Text that could become a match is held back, with the chunks that follow it in the same
 * text. A block of another kind ends a text whose own block is closed. Several choices are filtered
 * separately; a blocking match in one of them ends the answer.
 */
export function createAnswerFilter(options: AnswerFilterOptions, choices = 1): AnswerFilter {
  if (choices === 1) return createChoiceFilter(options);
  const filters = new ByChoice(() => createChoiceFilter(options));
  const each = (rest: (filter: AnswerFilter) => ChatChunk[]) =>
    filters.all().flatMap((filter, choice) => ofChoice(choice, rest(filter)));
  return {
    take: (chunks) => followed(chunks, (choice) => (ofOneChoice) => filters.of(choice).take(ofOneChoice)),
    reopen: () => each((filter) => filter.reopen()),
    end: () => each((filter) => filter.end()),
    hasEnded: () => filters.all().some((filter) => filter.hasEnded()),
    hasChanged: () => filters.all().some((filter) => filter.hasChanged()),
  };
}

function createChoiceFilter(options: AnswerFilterOptions): AnswerFilter {
  const { written } = options.finder;
  const first = createOneFilter(options);
  if (!options.content_is_json || written === undefined) return first;
  const second = createOneFilter({ ...options, finder: written }, true);
  return {
    take: (chunks) => second.take(first.take(chunks)),
    reopen: () => [...second.take(first.reopen()), ...second.reopen()],
    end: () => [...second.take(first.end()), ...second.end()],
    hasEnded: () => first.hasEnded() || second.hasEnded(),
    hasChanged: () => first.hasChanged() || second.hasChanged(),
  };
}

/** A finder without matches. */
const NOTHING: Finder = { context_chars: 0, find: () => [], heldFrom: (text) => text.length, settled() {} };

/** `isSecond`: filters only the content, as JSON as written. */
function createOneFilter(
  { finder: requested, content_is_json, keeps_signatures, isOfTurn }: AnswerFilterOptions,
  isSecond = false,
): AnswerFilter {
  let isChanged = false;
  let isEnded = false;
  const watched = (by: Finder): Finder => ({
    context_chars: by.context_chars,
    find: (text, from) => by.find(text, from),
    heldFrom: (text, from) => by.heldFrom(text, from),
    settled(hit) {
      if (hit.text !== undefined) isChanged = true;
      if (hit.ends) isEnded = true;
      by.settled(hit);
    },
    ...(by.written === undefined ? {} : { written: watched(by.written) }),
  });
  const finder = watched(isSecond ? NOTHING : requested);
  const contentScan = () => {
    if (isSecond) return new WrittenScan(watched(requested));
    return content_is_json ? new JsonScan(finder) : new TextScan(finder);
  };
  const texts = new Map<TextKind, TextLane>();
  /** The kinds of open blocks by number. */
  let kinds = new Map<number, TextKind | 'pieces' | 'other'>();
  /** The number of open blocks of each text. */
  let openTexts = new Map<TextKind, number>();
  /** The offset of each block's text in the whole text, in code points. */
  let starts = new Map<number, number>();
  const changedDetails = new Set<string>();
  const calls = new CallFilter(finder, beside);

  function laneOf(kind: TextKind): TextLane {
    let lane = texts.get(kind);
    if (lane === undefined) {
      lane = new TextLane(kind === 'content' ? contentScan() : new TextScan(finder));
      texts.set(kind, lane);
    }
    return lane;
  }

  function json<T extends JsonValue | undefined>(value: T): T {
    return filteredJson(finder, value).value;
  }

  function endText(kind: TextKind, out: ChatChunk[]): void {
    const lane = texts.get(kind);
    if (lane === undefined || !lane.isWaiting()) return;
    lane.scan.flush();
    lane.release(out);
  }

  /** Another kind of block starts: ends the texts without an open block. */
  function endOthers(kind: TextKind | undefined, out: ChatChunk[]): void {
    for (const other of texts.keys()) if (other !== kind && !openTexts.has(other)) endText(other, out);
  }

  function endAll(out: ChatChunk[]): void {
    for (const kind of texts.keys()) endText(kind, out);
    calls.endAll(out);
  }

  function ext(original: Ext | undefined, n: number): Ext | undefined {
    if (original === undefined) return undefined;
    const rest = json(original.rest);
    const part = rest['part'];
    if (typeof part !== 'object' || part === null || Array.isArray(part) || !Array.isArray(part['annotations'])) {
      return rest === original.rest ? original : { ...original, rest };
    }
    const annotations = part['annotations'].map((one) => placedRaw(one as JsonObject, n));
    return { ...original, rest: { ...rest, part: { ...part, annotations } } };
  }

  function native(original: Native | undefined): Native | undefined {
    return original === undefined ? undefined : { ...original, block: json(original.block) };
  }

  function slotOf(slot: SlotEvent): SlotEvent {
    const { n, open, raw, close } = slot;
    const shown: SlotEvent = { n };
    if (open !== undefined) shown.open = { ...open, ...shownParts(open, n) };
    if (raw !== undefined) shown.raw = rawOf(raw, n);
    if (close !== undefined) shown.close = shownParts(close, n);
    return shown;
  }

  function shownParts(of: { ext?: Ext; native?: Native }, n: number): { ext?: Ext; native?: Native } {
    const shownExt = ext(of.ext, n);
    const shownNative = native(of.native);
    return {
      ...(shownExt === undefined ? {} : { ext: shownExt }),
      ...(shownNative === undefined ? {} : { native: shownNative }),
    };
  }

  function rawOf(raw: JsonObject, n: number): JsonObject {
    const shown = json(raw);
    const annotation = shown['annotation'];
    if (shown['type'] !== RAW_ANNOTATION || typeof annotation !== 'object' || annotation === null) return shown;
    return { ...shown, annotation: placedRaw(annotation as JsonObject, n) };
  }

  /** A citation of the Responses wire, whose offsets count from the start of its part. */
  function placedRaw(annotation: JsonObject, n: number): JsonObject {
    const lane = texts.get('content');
    const start = starts.get(n);
    if (lane === undefined || start === undefined) return annotation;
    const places = lane.places();
    const base = places.shown(start, false);
    const placed = { ...annotation };
    for (const field of ['start_index', 'end_index', 'index']) {
      const at = annotation[field];
      if (typeof at === 'number' && at > 0) placed[field] = places.shown(start + at, field === 'end_index') - base;
    }
    return placed;
  }

  function annotated(annotation: Annotation, places: Places | undefined): Annotation {
    if (annotation.type !== 'url_citation') return json(annotation as unknown as JsonObject) as unknown as Annotation;
    const { url_citation } = annotation as UrlCitation;
    const shown = json(url_citation as unknown as JsonObject) as unknown as UrlCitation['url_citation'];
    const { start_index, end_index } = url_citation;
    if (places === undefined || end_index === 0) return { type: 'url_citation', url_citation: shown };
    return {
      type: 'url_citation',
      url_citation: {
        ...shown,
        start_index: places.shown(start_index, false),
        end_index: places.shown(end_index, true),
      },
    };
  }

  /** A chunk with everything beside its text filtered. Called when the chunk is shown, since offsets are known then. */
  function beside(chunk: ChatChunk, isTouched: boolean): ChatChunk {
    const { delta, ext: originalExt, logprobs, error } = chunk;
    if (originalExt === undefined && delta.annotations === undefined && logprobs === undefined && error === undefined) {
      return chunk;
    }
    const shown: ChatChunk = { ...chunk };
    if (delta.annotations !== undefined) {
      const places = texts.get('content')?.places();
      shown.delta = { ...delta, annotations: delta.annotations.map((one) => annotated(one, places)) };
    }
    if (
      originalExt?.slot !== undefined &&
      (originalExt.slot.open ?? originalExt.slot.raw ?? originalExt.slot.close) !== undefined
    ) {
      shown.ext = { ...originalExt, slot: slotOf(originalExt.slot) };
    }
    if (originalExt?.response?.rest !== undefined) {
      shown.ext = { ...shown.ext, response: { ...originalExt.response, rest: json(originalExt.response.rest) } };
    }
    // Log probabilities contain the replaced tokens. Without text in the chunk it is unknown to which text they belong.
    if (logprobs !== undefined && (isTouched || (!chunk.delta.content && isChanged))) delete shown.logprobs;
    if (error !== undefined) shown.error = json(error as unknown as JsonObject) as unknown as typeof error;
    return shown;
  }

  function heldText(chunk: ChatChunk, kind: 'content' | 'refusal', text: string): Held {
    return {
      chunk,
      text,
      is_touched: false,
      render(of, take, isTouched) {
        const shown = take(of.delta[kind] ?? '');
        const made = beside(of, isTouched());
        const bare = shown === '' && text !== '';
        return withText({ ...made, delta: { ...made.delta, [kind]: shown } }, kind, bare);
      },
      split: (of, head) => splitChunk(of, { [kind]: head }, { [kind]: (of.delta[kind] ?? '').slice(head.length) }),
    };
  }

  function heldTranscript(chunk: ChatChunk, text: string): Held {
    return {
      chunk,
      text,
      is_touched: false,
      render(of, take, isTouched) {
        const audio = { ...of.delta.audio, transcript: take(of.delta.audio?.transcript ?? '') };
        const made = beside(of, isTouched());
        return { ...made, delta: { ...made.delta, audio } };
      },
      split: (of, head) =>
        splitChunk(
          of,
          { audio: { transcript: head } },
          { audio: { ...of.delta.audio, transcript: (of.delta.audio?.transcript ?? '').slice(head.length) } },
        ),
    };
  }

  function heldReasoning(chunk: ChatChunk): Held {
    const { reasoning_details: details, reasoning } = chunk.delta;
    if (details === undefined) {
      return {
        chunk,
        text: reasoning ?? '',
        is_touched: false,
        render(of, take, isTouched) {
          const made = beside(of, isTouched());
          return { ...made, delta: { ...made.delta, reasoning: take(of.delta.reasoning ?? '') } };
        },
        split: (of, head) =>
          splitChunk(of, { reasoning: head }, { reasoning: (of.delta.reasoning ?? '').slice(head.length) }),
      };
    }
    const [only] = details;
    const held: Held = {
      chunk,
      text: details.map(textOfDetail).join(''),
      is_touched: false,
      render(of, take, isTouched) {
        const shown = (of.delta.reasoning_details ?? []).flatMap((detail) => shownDetail(detail, take) ?? []);
        const made = beside(of, isTouched());
        const delta: Delta = { ...made.delta, reasoning_details: shown };
        const was = of.delta.reasoning;
        if (was != null) delta.reasoning = reasoningOf(was, of.delta.reasoning_details ?? [], shown);
        if (shown.length > 0) return { ...made, delta };
        delete delta.reasoning_details;
        return withText({ ...made, delta }, 'reasoning', true);
      },
    };
    if (details.length === 1 && only !== undefined && only.type !== 'reasoning.encrypted') {
      held.split = (of, head) => {
        const detail = of.delta.reasoning_details![0]!;
        const tail = textOfDetail(detail).slice(head.length);
        const { signature: _later, ...unsigned } = detail as ReasoningDetail & { signature?: string };
        const hasString = of.delta.reasoning != null;
        return splitChunk(
          of,
          { reasoning_details: [withDetailText(unsigned, head)], ...(hasString ? { reasoning: head } : {}) },
          { reasoning_details: [withDetailText(detail, tail)], ...(hasString ? { reasoning: tail } : {}) },
        );
      };
    }
    return held;
  }

  function shownDetail(detail: ReasoningDetail, take: (text: string) => string): ReasoningDetail | undefined {
    if (isOfTurn(detail)) return isChanged ? undefined : detail;
    if (detail.type === 'reasoning.encrypted') return detail;
    const key = `${detail.index}`;
    const text = textOfDetail(detail);
    const filteredTextOf = take(text);
    if (filteredTextOf !== text) changedDetails.add(key);
    const shown = filteredTextOf === text ? detail : withDetailText(detail, filteredTextOf);
    if (keeps_signatures || shown.type !== 'reasoning.text' || !shown.signature || !changedDetails.has(key)) {
      return text !== '' && filteredTextOf === '' && !hasSignature(shown) ? undefined : shown;
    }
    // The signature does not match the changed text: its signer would refuse it.
    const { signature: _, ...unsigned } = shown;
    return unsigned.text ? unsigned : undefined;
  }

  function pushText(kind: TextKind, held: Held, out: ChatChunk[]): void {
    const lane = laneOf(kind);
    lane.push(held);
    lane.release(out);
  }

  function kindOf({ content, refusal, reasoning, reasoning_details, audio }: Delta): TextKind | undefined {
    if (content) return 'content';
    if (refusal) return 'refusal';
    if (reasoning || reasoning_details?.length) return 'reasoning';
    return audio === undefined ? undefined : 'transcript';
  }

  function openBlock({ n, open }: SlotEvent, out: ChatChunk[]): void {
    if (open === undefined) return;
    const kind = TEXTS[open.kind];
    endOthers(kind, out);
    kinds.set(n, kind ?? (open.kind === 'call' || open.kind === 'native' ? 'pieces' : 'other'));
    if (kind !== undefined) openTexts.set(kind, (openTexts.get(kind) ?? 0) + 1);
    if (kind === 'content') starts.set(n, laneOf('content').points);
  }

  /** Closes a block: its text can end when another kind of block starts. */
  function closeBlock({ n, close: closing }: SlotEvent): void {
    if (closing === undefined) return;
    const kind = kinds.get(n);
    kinds.set(n, 'other');
    if (kind === undefined || kind === 'pieces' || kind === 'other') return;
    const stillOpen = (openTexts.get(kind) ?? 1) - 1;
    if (stillOpen > 0) openTexts.set(kind, stillOpen);
    else openTexts.delete(kind);
  }

  function takeOne(chunk: ChatChunk, out: ChatChunk[]): void {
    const { delta } = chunk;
    const slot = chunk.ext?.slot;
    if (slot !== undefined) openBlock(slot, out);
    const textKind = kindOf(delta);
    const slotKind = slot === undefined ? undefined : kinds.get(slot.n);
    const isAboutTurn = delta.reasoning_details?.some(isOfTurn) === true;
    if (isAboutTurn || chunk.finish_reason != null) endAll(out);
    else if (slot === undefined && (textKind !== undefined || delta.tool_calls !== undefined)) endOthers(textKind, out);
    // Ending the texts above can reveal a blocking match.
    if (isEnded) return;
    const kind = textKind ?? (slotKind === 'pieces' || slotKind === 'other' ? undefined : slotKind) ?? cites(chunk);
    if (slot?.close !== undefined && slotKind === 'pieces' && delta.tool_calls === undefined) {
      calls.endBlock(slot.n, out);
    }
    if (slot !== undefined) closeBlock(slot);
    if (delta.tool_calls?.length) calls.takeCall(chunk, out);
    else if (kind === 'content' || kind === 'refusal') pushText(kind, heldText(chunk, kind, delta[kind] ?? ''), out);
    else if (kind === 'reasoning') pushText(kind, heldReasoning(chunk), out);
    else if (kind === 'transcript') pushText(kind, heldTranscript(chunk, delta.audio?.transcript ?? ''), out);
    else if (slot?.raw !== undefined) calls.takeRaw(chunk, { ...slot, raw: slot.raw }, out);
    else out.push(beside(chunk, false));
    if (isAboutTurn || chunk.finish_reason != null) endAll(out);
  }

  function take(chunks: readonly ChatChunk[]): ChatChunk[] {
    const out: ChatChunk[] = [];
    for (const chunk of chunks) {
      if (isEnded) break;
      for (const one of piecesOf(chunk)) {
        takeOne(one, out);
        if (isEnded) break;
      }
    }
    if (isEnded) endAll(out);
    return out;
  }

  return {
    take,
    reopen() {
      const out: ChatChunk[] = [];
      for (const kind of texts.keys()) if (kind !== 'content') endText(kind, out);
      calls.endAll(out);
      const lane = texts.get('content');
      const text = lane?.takeText() ?? '';
      if (lane !== undefined && text !== '') lane.wait(heldText({ delta: { content: text } }, 'content', text));
      kinds = new Map();
      openTexts = new Map();
      starts = new Map();
      return out;
    },
    end() {
      const out: ChatChunk[] = [];
      if (!isEnded) endAll(out);
      return out;
    },
    hasEnded: () => isEnded,
    hasChanged: () => isChanged || isEnded,
  };
}

const TEXTS: Partial<Record<NonNullable<SlotEvent['open']>['kind'], TextKind>> = {
  text: 'content',
  refusal: 'refusal',
  reasoning: 'reasoning',
  audio: 'transcript',
};

/** Citations and log probabilities follow the content they belong to. */
function cites({ delta, logprobs }: ChatChunk): TextKind | undefined {
  return delta.annotations !== undefined || logprobs != null ? 'content' : undefined;
}

function textOfDetail(detail: ReasoningDetail): string {
  if (detail.type === 'reasoning.text') return detail.text ?? '';
  return detail.type === 'reasoning.summary' ? detail.summary : '';
}

function withDetailText(detail: ReasoningDetail, text: string): ReasoningDetail {
  if (detail.type === 'reasoning.text') return { ...detail, text };
  return detail.type === 'reasoning.summary' ? { ...detail, summary: text } : detail;
}

function hasSignature(detail: ReasoningDetail): boolean {
  return detail.type === 'reasoning.text' && Boolean(detail.signature);
}

/** The reasoning string, rebuilt from the shown details. */
function reasoningOf(was: string, before: readonly ReasoningDetail[], shown: readonly ReasoningDetail[]): string {
  const beforeText = joinReasoning(before) ?? '';
  const lead = was.endsWith(beforeText) ? was.slice(0, was.length - beforeText.length) : '';
  return (lead.trim() === '' ? lead : '') + (joinReasoning(shown) ?? '');
}
