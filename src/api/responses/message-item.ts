import { restOf } from '../../providers/openai-responses/wire.ts';
import { asArray, asObject } from '../../providers/shared/json-shape.ts';
import { append } from '../../schemas/append.ts';
import type { ChatChunk, Ext } from '../../schemas/inner.ts';
import type { JsonObject, JsonValue } from '../../schemas/json.ts';
import { announce, type ItemContext, type ItemWriter, type Opening, type Place } from './item.ts';

/** One part of a message while it grows. */
interface Part {
  kind: 'text' | 'refusal';
  text: string;
  /** The text inside of a JSON string, where its events are read: written once, and told several times. */
  json: string;
  annotations: JsonObject[];
  logprobs: JsonValue[];
  /** What else it carried on this very wire. */
  rest: JsonObject;
  is_done: boolean;
  /** Place of its events, with the part's own. */
  place: string;
}

/** A message, which may also be cited, and told again, after its end. */
export interface MessageWriter extends ItemWriter {
  /** Another upstream goes on with the text: what opens next is not another part. */
  resume(): void;
  /** What it finished as, as JSON; where its events are read. */
  jsonOf(finished: JsonObject): string;
}

const RAW_ANNOTATION = 'response.output_text.annotation.added';

/** A message of the assistant: each block of text, or refusal, is a part of it (translation 3.4). */
export function createMessage(context: ItemContext): MessageWriter {
  const { events, citations } = context;
  const parts: Part[] = [];
  let rest: JsonObject = {};
  let place: Place | undefined;
  let opening: Opening | undefined;
  /** The part of the open block; one that is closed is still the last until another begins, as citations may follow. */
  let part: Part | undefined;
  let isResumed = false;
  let isClosed = false;
  /** What is remembered of the open block: told at its opening, or at its end. */
  let block: JsonObject = {};
  const partTold = (ext: Ext | undefined): JsonObject | undefined => asObject(restOf(ext)['part'] ?? block['part']);

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
      json: '',
      annotations: [],
      logprobs: [],
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
    const text = `"${ended.json}"`;
    if (ended.kind === 'refusal') events.send('response.refusal.done', `${ended.place},"refusal":${text}`);
    else {
      const logprobs = JSON.stringify(ended.logprobs);
      events.send('response.output_text.done', `${ended.place},"text":${text},"logprobs":${logprobs}`);
    }
    events.send('response.content_part.done', `${ended.place},"part":${partJson(ended)}`);
  }

  function say(kind: Part['kind'], text: string, logprobs: JsonValue | undefined): void {
    const to = opening !== undefined || part === undefined || part.kind !== kind ? beginPart(kind) : part;
    opening = undefined;
    to.text += text;
    const json = events.are_read ? JSON.stringify(text) : '';
    if (events.are_read) to.json += json.slice(1, -1);
    if (kind === 'refusal') {
      if (events.are_read) events.send('response.refusal.delta', `${to.place},"delta":${json}`);
      return;
    }
    const told = context.shows_logprobs ? logprobsOf(logprobs) : [];
    append(to.logprobs, told);
    if (!events.are_read) return;
    const shown = told.length === 0 ? '[]' : JSON.stringify(told);
    events.send('response.output_text.delta', `${to.place},"delta":${json},"logprobs":${shown}`);
  }

  function addAnnotation(to: Part, told: JsonObject): void {
    // Some providers of this wire leave out what its clients hold for certain.
    const annotation = told['type'] === 'url_citation' ? { title: '', start_index: 0, end_index: 0, ...told } : told;
    if (events.are_read) {
      const index = `,"annotation_index":${to.annotations.length}`;
      events.send(RAW_ANNOTATION, `${to.place}${index},"annotation":${JSON.stringify(annotation)}`);
    }
    to.annotations.push(annotation);
  }

  return {
    takes({ kind, ext }) {
      if (kind !== 'text' && kind !== 'refusal') return false;
      const told = restOf(ext);
      return told['id'] === rest['id'] && told['phase'] === rest['phase'];
    },
    open(told) {
      const kind = told.kind === 'refusal' ? 'refusal' : 'text';
      block = restOf(told.ext);
      if (isResumed && part?.kind === kind) {
        isResumed = false;
        return;
      }
      isResumed = false;
      if (place === undefined) {
        const { part: _, ...known } = restOf(told.ext);
        rest = known;
      }
      opening = told;
      // A part of this wire is one also where it is empty.
      if (restOf(told.ext)['id'] === undefined) return;
      beginPart(kind);
      opening = undefined;
    },
    say({ delta, ext, logprobs }) {
      if (delta.content) say('text', delta.content, logprobs);
      else if (logprobs != null && part?.kind === 'text' && context.shows_logprobs) {
        // Some providers tell them behind their text: its end has them.
        append(part.logprobs, logprobsOf(logprobs));
      }
      if (delta.refusal) say('refusal', delta.refusal, undefined);
      const raw = ext?.slot?.raw;
      if (raw?.['type'] === RAW_ANNOTATION) {
        const annotation = asObject(raw['annotation']);
        if (annotation !== undefined && part?.kind === 'text') addAnnotation(part, annotation);
      } else if (delta.annotations !== undefined && !isCited(partTold(ext?.slot?.close?.ext))) {
        citations.take(delta.annotations);
      }
    },
    close(told) {
      opening = undefined;
      if (part === undefined) return;
      const { id } = rest;
      for (const known of [block, restOf(told.ext)]) {
        for (const [name, value] of Object.entries(known)) if (name !== 'part') rest[name] = value;
      }
      if (id !== undefined) rest['id'] = id;
      const ofPart = partTold(told.ext);
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
    jsonOf({ content: _, ...finished }) {
      return `${JSON.stringify(finished).slice(0, -1)},"content":[${parts.map(partJson).join(',')}]}`;
    },
  };
}

/** The citations of a part of this very wire, as they came. */
function annotationsOf(part: JsonObject | undefined): JsonObject[] {
  const annotations = asArray(part?.['annotations']);
  return annotations.map(asObject).filter((one) => one !== undefined);
}

function isCited(part: JsonObject | undefined): boolean {
  return asArray(part?.['annotations']).some((one) => asObject(one) !== undefined);
}

function partOf({ kind, text, annotations, logprobs, rest }: Part): JsonObject {
  if (kind === 'refusal') return { ...rest, type: 'refusal', refusal: text };
  return {
    ...rest,
    type: 'output_text',
    annotations: [...annotations],
    logprobs: ofEachToken(logprobs, withBytes),
    text,
  };
}

/** The same as JSON. */
function partJson(part: Part): string {
  const name = part.kind === 'refusal' ? 'refusal' : 'text';
  const { [name]: _, ...told } = partOf(part);
  return `${JSON.stringify(told).slice(0, -1)},"${name}":"${part.json}"}`;
}

/** Of the chat wire's form; bytes that are not known are left out, as this API's events have none. */
function logprobsOf(value: ChatChunk['logprobs']): JsonObject[] {
  return ofEachToken(asArray(asObject(value)?.['content']), ({ bytes, ...told }) =>
    bytes == null ? told : { ...told, bytes },
  );
}

function ofEachToken(tokens: readonly JsonValue[], tell: (token: JsonObject) => JsonObject): JsonObject[] {
  return tokens.map((told) => {
    const { top_logprobs, ...token } = asObject(told) ?? {};
    return { ...tell(token), top_logprobs: asArray(top_logprobs).map((one) => tell(asObject(one) ?? {})) };
  });
}

const utf8 = new TextEncoder();

/** A piece of a character, which its bytes alone tell: OpenAI writes `bytes:\xe2\x80`. */
const BROKEN = /^bytes:|\ufffd/;

/** A token of a finished part has its bytes: those of its text, where the provider does not tell them and they are known. */
function withBytes(told: JsonObject): JsonObject {
  const { token } = told;
  const isKnown = told['bytes'] !== undefined || typeof token !== 'string' || BROKEN.test(token);
  return isKnown ? told : { ...told, bytes: [...utf8.encode(token)] };
}
