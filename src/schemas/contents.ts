import type { ChatRequest, InnerPart, Message } from './inner.ts';

const KINDS: Readonly<Partial<Record<InnerPart['type'], string>>> = {
  image_url: 'image',
  input_audio: 'audio',
  video_url: 'video',
};

const NO_KINDS: readonly string[] = [];

/** What the messages of a request hold, found in one walk over them: most hold text alone, and most steps have nothing to do for that. */
export class Contents {
  readonly messages: readonly Message[];
  /** Characters of the texts in their contents. */
  chars = 0;
  /** Parts that are neither text nor a wire's own, and which of them are images and sounds. */
  media = 0;
  images = 0;
  sounds = 0;
  has_files = false;
  /** Modalities of their parts beside text and files, each once, in order. */
  kinds = NO_KINDS;
  /** Objects of one wire, as parts or beside them. */
  has_natives = false;
  /** Anything but text: parts, pictures that a model made, objects of one wire. */
  has_more = false;
  /** Calls of tools, or results of them. */
  has_calls = false;
  /** Reasoning or calls of a model's former turn. */
  is_stateful = false;
  /** It is known whose account made the opaque state of a turn. */
  is_issued = false;

  constructor(messages: readonly Message[]) {
    this.messages = messages;
    for (let at = 0; at < messages.length; at += 1) this.#look(messages[at]!);
  }

  #look({ role, content, tool_calls, reasoning_details, images, ext }: Message): void {
    if (typeof content === 'string') this.chars += content.length;
    else if (Array.isArray(content)) for (const part of content) this.#lookAt(part);
    if (tool_calls?.length) this.has_calls = true;
    if (role === 'tool') this.has_calls = true;
    if (role === 'assistant' && (tool_calls?.length || reasoning_details?.length)) this.is_stateful = true;
    if (images?.length) this.has_more = true;
    if (ext === undefined) return;
    if (ext.natives !== undefined) this.has_natives = true;
    if (ext.natives?.length) this.has_more = true;
    if (ext.issuer !== undefined) this.is_issued = true;
  }

  #lookAt(part: InnerPart): void {
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

/** What the messages of a request hold. Its door has room for it (`RequestExt.contents`): all copies of the request with the same messages ask there. */
export function contentsOf({ messages, ext }: Pick<ChatRequest, 'messages' | 'ext'>): Contents {
  if (ext?.contents?.messages === messages) return ext.contents;
  const found = new Contents(messages);
  // Whoever changes messages makes a new list of them.
  if (ext?.contents !== undefined) ext.contents = found;
  return found;
}

/** Keeps what the messages of a request hold from now on. */
export function noteContents({ messages, ext }: Pick<ChatRequest, 'messages' | 'ext'>): void {
  if (ext !== undefined) ext.contents = new Contents(messages);
}
