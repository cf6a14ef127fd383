import { isMarked } from '../../inference/reasoning/signed-text.ts';
import { OPENAI_FORMAT, restOf } from '../../providers/openai-responses/wire.ts';
import { asText } from '../../providers/shared/json-shape.ts';
import type { ReasoningDetail } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { announce, type ItemContext, type ItemWriter, type Place } from './item.ts';

/** One readable part: of the summary, or of the content. */
interface Part {
  kind: 'summary' | 'text';
  /** Which detail it is of. */
  detail: number | undefined;
  text: string;
  place: string;
}

/** Reasoning in the form of this API, be it OpenAI's own, Azure's or xAI's: it needs no envelope. */
function isOfThisApi(format: string | null | undefined): boolean {
  return format?.endsWith('-responses-v1') === true;
}

/**
 * A reasoning item: texts are its content, summaries its summary. Opaque state of this API is its `encrypted_content`; that of
 * another goes there in an envelope, with all that the block told: clients that send back no more than this field lose nothing.
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
    const { kind, place: where, text } = open;
    open = undefined;
    if (!events.are_read) return;
    const json = JSON.stringify(text);
    if (kind === 'summary') {
      events.send('response.reasoning_summary_text.done', `${where},"text":${json}`);
      events.send('response.reasoning_summary_part.done', `${where},"part":{"type":"summary_text","text":${json}}`);
    } else {
      events.send('response.reasoning_text.done', `${where},"text":${json}`);
      events.send('response.content_part.done', `${where},"part":{"type":"reasoning_text","text":${json}}`);
    }
  }

  function partFor(kind: Part['kind'], detail: number | undefined): Part {
    if (open?.kind === kind && open.detail === detail) return open;
    endPart();
    const { json } = begin();
    const of = kind === 'summary' ? summary : content;
    const index = kind === 'summary' ? 'summary_index' : 'content_index';
    open = { kind, detail, text: '', place: `${json},"${index}":${of.length}` };
    of.push(open);
    if (kind === 'summary') {
      events.send('response.reasoning_summary_part.added', `${open.place},"part":{"type":"summary_text","text":""}`);
    } else events.send('response.content_part.added', `${open.place},"part":{"type":"reasoning_text","text":""}`);
    return open;
  }

  function say(kind: Part['kind'], detail: number | undefined, text: string): void {
    const part = partFor(kind, detail);
    part.text += text;
    if (!events.are_read) return;
    const type = kind === 'summary' ? 'response.reasoning_summary_text.delta' : 'response.reasoning_text.delta';
    events.send(type, `${part.place},"delta":${JSON.stringify(text)}`);
  }

  function add(told: ReasoningDetail): void {
    remember(details, told);
    if (told.type === 'reasoning.text') {
      if (told.text) say(isSummary(told) ? 'summary' : 'text', told.index, told.text);
    } else if (told.type === 'reasoning.summary') {
      if (told.summary !== '') say('summary', told.index, told.summary);
    }
    // A signature, or what is encrypted, is told with the finished item.
    begin();
  }

  /** Clients of OpenAI read summaries alone: where one is asked for, what models of other APIs thought is told as one. */
  function isSummary({ format }: ReasoningDetail): boolean {
    return context.wants_summary && !isOfThisApi(format);
  }

  /** What only its maker can read, and the form of it; of another API always an envelope, without which clients send no item back. */
  function state(): JsonObject {
    const encrypted = details.filter((detail) => detail.type === 'reasoning.encrypted');
    const [only] = encrypted;
    const format = details[0]?.format ?? 'unknown';
    const isOwn = details.every((detail) => isOfThisApi(detail.format));
    const told: JsonObject = isOwn && format === OPENAI_FORMAT ? {} : { format };
    if (details.length === 0) return {};
    if (isOwn && only === undefined) return told;
    // Of several the item has no place but for one; what another gateway marked as its own would be taken for ours when it comes back.
    if (isOwn && encrypted.length === 1 && !isMarked(only!.data)) return { ...told, encrypted_content: only!.data };
    const [signed, ...others] = details.filter((one) => one.type === 'reasoning.text' && one.signature);
    if (signed?.type === 'reasoning.text' && others.length === 0) told['signature'] = asText(signed.signature);
    const wrapped = envelope.wrap(details);
    return wrapped === undefined ? told : { ...told, encrypted_content: wrapped };
  }

  return {
    // Blocks of this very API keep apart by their ids; of another they are one, as nothing tells them apart.
    takes: ({ kind, ext }) => kind === 'reasoning' && restOf(ext)['id'] === undefined && rest?.['id'] === undefined,
    open({ ext }) {
      rest ??= { ...restOf(ext) };
      if (rest['id'] !== undefined) begin();
    },
    say({ delta }) {
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
  };
}

function withoutStatus(rest: JsonObject | undefined): JsonObject {
  const { status: _, ...known } = rest ?? {};
  return known;
}

/** Joins the deltas of one detail. */
function remember(details: ReasoningDetail[], told: ReasoningDetail): void {
  const former = details.at(-1);
  const goesOn = former !== undefined && former.type === told.type && former.index === told.index;
  if (!goesOn || told.type === 'reasoning.encrypted') {
    details.push({ ...told });
    return;
  }
  if (former.type === 'reasoning.text' && told.type === 'reasoning.text') {
    if (told.text != null) former.text = (former.text ?? '') + told.text;
    if (told.signature != null) former.signature = told.signature;
  } else if (former.type === 'reasoning.summary' && told.type === 'reasoning.summary') {
    former.summary += told.summary;
  }
}
