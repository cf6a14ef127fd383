import type { ChatRequest, InnerPart, Message, RequestContents } from './inner.ts';

const KINDS: Readonly<Partial<Record<InnerPart['type'], string>>> = {
  image_url: 'image',
  input_audio: 'audio',
  video_url: 'video',
};

const NO_KINDS: readonly string[] = [];

/** Collects the facts of `RequestContents` from a list of messages. */
export class Contents implements RequestContents {
  readonly messages: readonly Message[];
  chars = 0;
  media = 0;
  images = 0;
  sounds = 0;
  has_files = false;
  kinds = NO_KINDS;
  has_natives = false;
  has_more = false;
  has_calls = false;
  is_stateful = false;
  is_issued = false;

  constructor(messages: readonly Message[]) {
    this.messages = messages;
    for (const { role, content, tool_calls, reasoning_details, images, ext } of messages) {
      if (typeof content === 'string') this.chars += content.length;
      else if (Array.isArray(content)) for (const part of content) this.#addPart(part);
      if (tool_calls?.length) this.has_calls = true;
      if (role === 'tool') this.has_calls = true;
      if (role === 'assistant' && (tool_calls?.length || reasoning_details?.length)) this.is_stateful = true;
      if (images?.length) this.has_more = true;
      if (ext === undefined) continue;
      if (ext.natives !== undefined) this.has_natives = true;
      if (ext.natives?.length) this.has_more = true;
      if (ext.issuer !== undefined) this.is_issued = true;
    }
  }

  #addPart(part: InnerPart): void {
    if (part.type === 'text') {
      this.chars += part.text.length;
      return;
    }
    this.has_more = true;
    if (part.type === 'native') {
      this.has_natives = true;
      return;
    }
    this.media += 1;
    if (part.type === 'file') this.has_files = true;
    else if (part.type === 'image_url') this.images += 1;
    else if (part.type === 'input_audio') this.sounds += 1;
    const kind = KINDS[part.type];
    if (kind !== undefined && !this.kinds.includes(kind)) this.kinds = [...this.kinds, kind];
  }
}

/**
 * The facts about the messages of a request. Copies of the request that keep its `ext` and its list of messages share one result
 * (`RequestExt.contents`); a new list is walked again.
 */
export function contentsOf({ messages, ext }: Pick<ChatRequest, 'messages' | 'ext'>): RequestContents {
  if (ext?.contents?.messages === messages) return ext.contents;
  const contents = new Contents(messages);
  if (ext?.contents !== undefined) ext.contents = contents;
  return contents;
}

/** Collects the facts about the messages of a request, and keeps them in its `ext` for `contentsOf`. */
export function noteContents({ messages, ext }: Pick<ChatRequest, 'messages' | 'ext'>): void {
  if (ext !== undefined) ext.contents = new Contents(messages);
}
