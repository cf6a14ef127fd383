import { limits } from '../../limits.ts';
import type { Annotation, Message } from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';

/** File annotations of earlier answers that are read. */
const FILE_ANNOTATIONS_MAX = 256;

/** The text of a file in an answer. A client that sends it back saves reading the file again. */
export interface FileAnnotation {
  /** SHA-256 of the bytes, in hex. */
  hash: string;
  name: string;
  text: string;
}

/** The annotation in the public API (its documentation, "PDF inputs"). */
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
    // An annotation with images is from another reader.
    if (!isObject(part) || part['type'] !== 'text' || typeof part['text'] !== 'string') return undefined;
    text += part['text'];
    if (text.length > limits.pdf_chars_max) return undefined;
  }
  return text === '' ? undefined : text;
}

/**
 * The texts of files in the answers of a conversation, by hash. They are sent by the client, so a false text deceives only the
 * client. Annotations of another form are skipped.
 */
export function annotatedFiles(messages: readonly Message[]): ReadonlyMap<string, string> {
  const textsByHash = new Map<string, string>();
  let checked = 0;
  for (const { role, annotations } of messages) {
    if (role !== 'assistant' || !Array.isArray(annotations)) continue;
    for (const annotation of annotations as unknown[]) {
      if (checked >= FILE_ANNOTATIONS_MAX) return textsByHash;
      if (!isObject(annotation) || annotation['type'] !== 'file') continue;
      checked += 1;
      const { file } = annotation;
      if (!isObject(file) || typeof file['hash'] !== 'string') continue;
      const text = textOf(file['content']);
      if (text !== undefined) textsByHash.set(file['hash'], text);
    }
  }
  return textsByHash;
}
