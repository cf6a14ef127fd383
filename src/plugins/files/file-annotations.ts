import { limits } from '../../limits.ts';
import type { Annotation, Message } from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';

/** A file that was read, as an answer tells of it: who sends that back spares the next turn the reading. */
export interface FileAnnotation {
  /** SHA-256 of the bytes, in hex. */
  hash: string;
  name: string;
  text: string;
}

/** As the public service shows it (its documentation, "PDF inputs"). */
export function shownAnnotation({ hash, name, text }: FileAnnotation): Annotation {
  return { type: 'file', file: { hash, name, content: [{ type: 'text', text }] } };
}

function isObject(value: unknown): value is Record<string, JsonValue> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function textOf(content: unknown): string | undefined {
  if (!Array.isArray(content)) return undefined;
  let text = '';
  for (const part of content as unknown[]) {
    // What holds pictures was read by another reader than ours.
    if (!isObject(part) || part['type'] !== 'text' || typeof part['text'] !== 'string') return undefined;
    text += part['text'];
    if (text.length > limits.pdf_chars_max) return undefined;
  }
  return text === '' ? undefined : text;
}

/**
 * What the answers of a conversation say that files hold, by their hash: what the client sends back, so nobody but the client is
 * deceived by what is not true of it. What has another shape is passed over.
 */
export function annotatedFiles(messages: readonly Message[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  let looked = 0;
  for (const { role, annotations } of messages) {
    if (role !== 'assistant' || !Array.isArray(annotations)) continue;
    for (const annotation of annotations as unknown[]) {
      if (looked >= limits.file_annotations_max) return found;
      if (!isObject(annotation) || annotation['type'] !== 'file') continue;
      looked += 1;
      const { file } = annotation;
      if (!isObject(file) || typeof file['hash'] !== 'string') continue;
      const text = textOf(file['content']);
      if (text !== undefined) found.set(file['hash'], text);
    }
  }
  return found;
}
