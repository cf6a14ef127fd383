import { restOf } from '../../providers/openai-responses/wire.ts';
import { asArray, asObject } from '../../providers/shared/json-shape.ts';
import { append } from '../../schemas/append.ts';
import type { Ext } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import type { JsonPart } from '../shared/json-parts.ts';
import { announce, type ItemContext, type ItemWriter, type Opening, type Place } from './item.ts';
import { type Probabilities, ReceivedProbabilities, WrittenProbabilities } from './probabilities.ts';
import { TextPieces } from './text-pieces.ts';

/** One part of a message as it grows. */
interface Part {
  kind: 'text' | 'refusal';
  text: string;
  /** The text as the content of a JSON string, if events are used: encoded once, and sent several times. */
  json: TextPieces;
  annotations: JsonObject[];
  /** Undefined as long as there are none. */
  logprobs: Probabilities | undefined;
  /** The remainder of the part, if the upstream used this wire. */
  rest: JsonObject;
  is_done: boolean;
  /** The place in its events, including the index of the part. */
  place: string;
}

/** Writes a message. Citations may be added, and the message sent again, after its end. */
export interface MessageWriter extends ItemWriter {
  /** Another upstream continues the text: the next block continues the last part. */
  resume(): void;
}

const RAW_ANNOTATION = 'response.output_text.annotation.added';

/** Writes a message of the assistant: each block of text or refusal is a part of it (translation 3.4). */
export function createMessageWriter(context: ItemContext): MessageWriter {
  const { events, citations } = context;
  const parts: Part[] = [];
  let rest: JsonObject = {};
  let place: Place | undefined;
  let opening: Opening | undefined;
  /** The part of the open block. A closed part stays here until another begins, since citations may follow. */
  let part: Part | undefined;
  let isResumed = false;
  let isClosed = false;
  /** The remainder of the open block, from its opening or its end. */
  let block: JsonObject = {};
  const upstreamPart = (ext: Ext | undefined): JsonObject | undefined => asObject(restOf(ext)['part'] ?? block['part']);

  function beginPart(kind: Part['kind']): Part {
    if (part !== undefined) endPart(part);
    if (place === undefined) {
      const id = context.idOf('msg', rest['id']);
      const { id: _id, status: _status, ...known } = rest;
      place = announce(context, id, {
        ...known,
        id,
        type: 'message',
        status: 'in_progress',
        role: 'assistant',
        content: [],
      });
    }
    const made: Part = {
      kind,
      text: '',
      json: new TextPieces(),
      annotations: [],
      logprobs: undefined,
      rest: {},
      is_done: false,
      place: `${place.json},"content_index":${parts.length}`,
    };
    parts.push(made);
    if (kind === 'text') {
      citations.begin({
        text: () => made.text,
        isClosed: () => isClosed,
        cite: (annotation) => addAnnotation(made, annotation),
      });
    }
    if (events.are_read) {
      events.send('response.content_part.added', `${made.place},"part":${JSON.stringify(partOf(made))}`);
    }
    part = made;
    return made;
  }

  function endPart(ended: Part): void {
    if (ended.is_done) return;
    ended.is_done = true;
    if (!events.are_read) return;
    const text = ended.json.all();
    if (ended.kind === 'refusal') events.send('response.refusal.done', [`${ended.place},"refusal":"`, ...text, '"']);
    else {
      const logprobs = ended.logprobs?.shown() ?? [];
      events.send('response.output_text.done', [
        `${ended.place},"text":"`,
        ...text,
        '","logprobs":[',
        ...logprobs,
        ']',
      ]);
    }
    events.send('response.content_part.done', [`${ended.place},"part":`, ...writtenPart(ended)]);
  }

  function addText(kind: Part['kind'], text: string, logprobs: JsonValue | undefined): void {
    const to = opening !== undefined || part === undefined || part.kind !== kind ? beginPart(kind) : part;
    opening = undefined;
    to.text += text;
    const json = events.are_read ? JSON.stringify(text) : '';
    if (events.are_read) to.json.add(json.slice(1, -1));
    if (kind === 'refusal') {
      if (events.are_read) events.send('response.refusal.delta', `${to.place},"delta":${json}`);
      return;
    }
    const shown = context.shows_logprobs ? addLogprobs(to, logprobs) : '';
    if (events.are_read) {
      events.send('response.output_text.delta', `${to.place},"delta":${json},"logprobs":[${shown}]`);
    }
  }

  /** Returns the JSON text of the entries for their event. */
  function addLogprobs(to: Part, logprobs: JsonValue | undefined): string {
    if (logprobs == null) return '';
    to.logprobs ??= events.are_read ? new WrittenProbabilities() : new ReceivedProbabilities();
    return to.logprobs.add(logprobs);
  }

  function addAnnotation(to: Part, received: JsonObject): void {
    // Some providers of this wire omit fields that its clients require.
    const annotation =
      received['type'] === 'url_citation' ? { title: '', start_index: 0, end_index: 0, ...received } : received;
    if (events.are_read) {
      const index = `,"annotation_index":${to.annotations.length}`;
      events.send(RAW_ANNOTATION, `${to.place}${index},"annotation":${JSON.stringify(annotation)}`);
    }
    to.annotations.push(annotation);
  }

  return {
    takes({ kind, ext }) {
      if (kind !== 'text' && kind !== 'refusal') return false;
      const remainder = restOf(ext);
      return remainder['id'] === rest['id'] && remainder['phase'] === rest['phase'];
    },
    open(blockOpening) {
      const kind = blockOpening.kind === 'refusal' ? 'refusal' : 'text';
      block = restOf(blockOpening.ext);
      if (isResumed && part?.kind === kind) {
        isResumed = false;
        return;
      }
      isResumed = false;
      if (place === undefined) {
        const { part: _, ...known } = restOf(blockOpening.ext);
        rest = known;
      }
      opening = blockOpening;
      // A part of this wire exists also if it is empty.
      if (restOf(blockOpening.ext)['id'] === undefined) return;
      beginPart(kind);
      opening = undefined;
    },
    write({ delta, ext, logprobs }) {
      if (delta.content) addText('text', delta.content, logprobs);
      else if (logprobs != null && part?.kind === 'text' && context.shows_logprobs) {
        // Some providers send them after their text: the end of the part contains them.
        addLogprobs(part, logprobs);
      }
      if (delta.refusal) addText('refusal', delta.refusal, undefined);
      const raw = ext?.slot?.raw;
      if (raw?.['type'] === RAW_ANNOTATION) {
        const annotation = asObject(raw['annotation']);
        if (annotation !== undefined && part?.kind === 'text') addAnnotation(part, annotation);
      } else if (delta.annotations !== undefined && !isCited(upstreamPart(ext?.slot?.close?.ext))) {
        citations.take(delta.annotations);
      }
    },
    close(closing) {
      opening = undefined;
      if (part === undefined) return;
      const { id } = rest;
      for (const known of [block, restOf(closing.ext)]) {
        for (const [name, value] of Object.entries(known)) if (name !== 'part') rest[name] = value;
      }
      if (id !== undefined) rest['id'] = id;
      const ofPart = upstreamPart(closing.ext);
      const { annotations: _, ...further } = ofPart ?? {};
      part.rest = further;
      for (const annotation of annotationsOf(ofPart).slice(part.annotations.length)) addAnnotation(part, annotation);
    },
    resume() {
      isResumed = true;
    },
    finish(status) {
      if (place === undefined) return undefined;
      if (part !== undefined) endPart(part);
      isClosed = true;
      return {
        ...rest,
        id: place.id,
        type: 'message',
        status: rest['status'] ?? status,
        role: 'assistant',
        content: parts.map(partOf),
      };
    },
    partsOf({ content: _, ...finished }) {
      const isWritten = events.are_read;
      if (!isWritten && parts.every(({ logprobs }) => logprobs === undefined)) return undefined;
      const written: JsonPart[] = [`${JSON.stringify(finished).slice(0, -1)},"content":[`];
      for (const [at, one] of parts.entries()) {
        if (at > 0) written.push(',');
        append(written, isWritten ? writtenPart(one) : receivedPart(one));
      }
      written.push(']}');
      return written;
    },
  };
}

/** The citations in a part of this wire, unchanged. */
function annotationsOf(part: JsonObject | undefined): JsonObject[] {
  const annotations = asArray(part?.['annotations']);
  return annotations.map(asObject).filter((annotation) => annotation !== undefined);
}

function isCited(part: JsonObject | undefined): boolean {
  return asArray(part?.['annotations']).some((annotation) => asObject(annotation) !== undefined);
}

/** The part as it is without probabilities. */
function partOf({ kind, text, annotations, rest }: Part): JsonObject {
  if (kind === 'refusal') return { ...rest, type: 'refusal', refusal: text };
  return {
    ...rest,
    type: 'output_text',
    annotations: [...annotations],
    logprobs: [],
    text,
  };
}

/** The part as JSON, if events are used. */
function writtenPart(part: Part): readonly string[] {
  const text = part.json.all();
  if (part.kind === 'refusal') {
    const { refusal: _, ...others } = partOf(part);
    return [`${JSON.stringify(others).slice(0, -1)},"refusal":"`, ...text, '"}'];
  }
  const { text: _, logprobs: _logprobs, ...others } = partOf(part);
  const logprobs = (part.logprobs?.finished() ?? []) as readonly string[];
  return [`${JSON.stringify(others).slice(0, -1)},"logprobs":[`, ...logprobs, '],"text":"', ...text, '"}'];
}

/** The part as parts of JSON, if no events are used. */
function receivedPart(part: Part): readonly JsonPart[] {
  const { logprobs } = part;
  if (logprobs === undefined) return [{ value: partOf(part) }];
  const { text: _, logprobs: _logprobs, annotations, ...others } = partOf(part);
  return [
    `${JSON.stringify(others).slice(0, -1)},"annotations":`,
    { value: annotations! },
    ',"logprobs":[',
    ...logprobs.finished(),
    '],"text":',
    { value: part.text },
    '}',
  ];
}
