import { isMarked } from '../../inference/reasoning/signed-text.ts';
import { OPENAI_FORMAT, restOf } from '../../providers/openai-responses/wire.ts';
import { asText } from '../../providers/shared/json-shape.ts';
import type { ReasoningDetail } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { announce, type ItemContext, type ItemWriter, type Place } from './item.ts';
import { TextPieces } from './text-pieces.ts';

/** A readable part of the summary or the content. */
interface Part {
  kind: 'summary' | 'text';
  /** The index of its detail. */
  detail: number | undefined;
  text: string;
  /** The text as the content of a JSON string, if events are used: encoded once, and sent several times. */
  json: TextPieces;
  place: string;
}

/** Whether reasoning has a format of this API, of OpenAI, Azure or xAI, and so needs no envelope. */
function isOfThisApi(format: string | null | undefined): boolean {
  return format?.endsWith('-responses-v1') === true;
}

/**
 * Writes a reasoning item: texts are its content, summaries its summary. Opaque state of this API is its `encrypted_content`; that of
 * another API is put there in an envelope with the whole block, since some clients send back only this field.
 */
export function createReasoning(context: ItemContext): ItemWriter {
  const { events, envelope } = context;
  const summary: Part[] = [];
  const content: Part[] = [];
  const details: ReasoningDetail[] = [];
  let rest: JsonObject | undefined;
  let place: Place | undefined;
  let open: Part | undefined;

  function begin(): Place {
    if (place !== undefined) return place;
    const id = context.idOf('rs', rest?.['id']);
    place = announce(context, id, { ...withoutStatus(rest), id, type: 'reasoning', summary: [] });
    return place;
  }

  function endPart(): void {
    if (open === undefined) return;
    const { kind, place: where, json: encoded } = open;
    open = undefined;
    if (!events.are_read) return;
    const json = ['"', ...encoded.all(), '"'];
    if (kind === 'summary') {
      events.send('response.reasoning_summary_text.done', [`${where},"text":`, ...json]);
      events.send('response.reasoning_summary_part.done', [
        `${where},"part":{"type":"summary_text","text":`,
        ...json,
        '}',
      ]);
    } else {
      events.send('response.reasoning_text.done', [`${where},"text":`, ...json]);
      events.send('response.content_part.done', [`${where},"part":{"type":"reasoning_text","text":`, ...json, '}']);
    }
  }

  function partFor(kind: Part['kind'], detail: number | undefined): Part {
    if (open?.kind === kind && open.detail === detail) return open;
    endPart();
    const { json } = begin();
    const of = kind === 'summary' ? summary : content;
    const index = kind === 'summary' ? 'summary_index' : 'content_index';
    open = { kind, detail, text: '', json: new TextPieces(), place: `${json},"${index}":${of.length}` };
    of.push(open);
    if (kind === 'summary') {
      events.send('response.reasoning_summary_part.added', `${open.place},"part":{"type":"summary_text","text":""}`);
    } else events.send('response.content_part.added', `${open.place},"part":{"type":"reasoning_text","text":""}`);
    return open;
  }

  function addText(kind: Part['kind'], detail: number | undefined, text: string): void {
    const part = partFor(kind, detail);
    part.text += text;
    if (!events.are_read) return;
    const type = kind === 'summary' ? 'response.reasoning_summary_text.delta' : 'response.reasoning_text.delta';
    const json = JSON.stringify(text);
    part.json.add(json.slice(1, -1));
    events.send(type, `${part.place},"delta":${json}`);
  }

  function add(detail: ReasoningDetail): void {
    mergeDetail(details, detail);
    if (detail.type === 'reasoning.text') {
      if (detail.text) addText(isSummary(detail) ? 'summary' : 'text', detail.index, detail.text);
    } else if (detail.type === 'reasoning.summary') {
      if (detail.summary !== '') addText('summary', detail.index, detail.summary);
    }
    // Signatures and encrypted data are sent with the finished item.
    begin();
  }

  /** Whether a text is sent as a summary. Clients of OpenAI read only summaries: if one is requested, reasoning of other APIs becomes one. */
  function isSummary({ format }: ReasoningDetail): boolean {
    return context.wants_summary && !isOfThisApi(format);
  }

  /** The opaque state and its format. State of another API is always in an envelope: clients return no item without one. */
  function state(): JsonObject {
    const encrypted = details.filter((detail) => detail.type === 'reasoning.encrypted');
    const [only] = encrypted;
    const format = details[0]?.format ?? 'unknown';
    const isOwn = details.every((detail) => isOfThisApi(detail.format));
    const fields: JsonObject = isOwn && format === OPENAI_FORMAT ? {} : { format };
    if (details.length === 0) return {};
    if (isOwn && only === undefined) return fields;
    // The item has a place for only one. State with the mark of another gateway is wrapped, or it would be mistaken for this one's when it comes back.
    if (isOwn && encrypted.length === 1 && !isMarked(only!.data)) return { ...fields, encrypted_content: only!.data };
    const [signed, ...others] = details.filter((detail) => detail.type === 'reasoning.text' && detail.signature);
    if (signed?.type === 'reasoning.text' && others.length === 0) fields['signature'] = asText(signed.signature);
    const wrapped = envelope.wrap(details);
    return wrapped === undefined ? fields : { ...fields, encrypted_content: wrapped };
  }

  return {
    // Blocks of this API are separate items by their ids; blocks of other APIs have none, and are one item.
    takes: ({ kind, ext }) => kind === 'reasoning' && restOf(ext)['id'] === undefined && rest?.['id'] === undefined,
    open({ ext }) {
      rest ??= { ...restOf(ext) };
      if (rest['id'] !== undefined) begin();
    },
    write({ delta }) {
      if (delta.reasoning_details !== undefined) delta.reasoning_details.forEach(add);
      else if (delta.reasoning) add({ type: 'reasoning.text', text: delta.reasoning, format: 'unknown' });
    },
    close({ ext }) {
      const id = rest?.['id'];
      rest = Object.assign(rest ?? {}, restOf(ext));
      if (id !== undefined) rest['id'] = id;
    },
    finish(status) {
      if (place === undefined) return undefined;
      endPart();
      const isOwn = rest?.['id'] !== undefined;
      return {
        ...rest,
        id: place.id,
        type: 'reasoning',
        summary: summary.map(({ text }) => ({ type: 'summary_text', text })),
        ...(content.length === 0 ? {} : { content: content.map(({ text }) => ({ type: 'reasoning_text', text })) }),
        ...state(),
        ...(isOwn ? {} : { status }),
      };
    },
    partsOf({ summary: _summary, content: _content, ...finished }) {
      if (!events.are_read) return undefined;
      const texts = content.length === 0 ? [] : [',"content":[', ...writtenParts(content, 'reasoning_text'), ']'];
      const summaries = writtenParts(summary, 'summary_text');
      return [`${JSON.stringify(finished).slice(0, -1)},"summary":[`, ...summaries, ']', ...texts, '}'];
    },
  };
}

function writtenParts(parts: readonly Part[], type: string): string[] {
  const comma = (at: number) => (at === 0 ? '' : ',');
  return parts.flatMap(({ json }, at) => [`${comma(at)}{"type":"${type}","text":"`, ...json.all(), '"}']);
}

function withoutStatus(rest: JsonObject | undefined): JsonObject {
  const { status: _, ...known } = rest ?? {};
  return known;
}

/** Appends a delta to its detail. */
function mergeDetail(details: ReasoningDetail[], delta: ReasoningDetail): void {
  const former = details.at(-1);
  const continues = former !== undefined && former.type === delta.type && former.index === delta.index;
  if (!continues || delta.type === 'reasoning.encrypted') {
    details.push({ ...delta });
    return;
  }
  if (former.type === 'reasoning.text' && delta.type === 'reasoning.text') {
    if (delta.text != null) former.text = (former.text ?? '') + delta.text;
    if (delta.signature != null) former.signature = delta.signature;
  } else if (former.type === 'reasoning.summary' && delta.type === 'reasoning.summary') {
    former.summary += delta.summary;
  }
}
