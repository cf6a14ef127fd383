import type { Annotation, OutputAudio, OutputImage } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { isObject, textOf } from './wire.ts';

/** The images of an answer, in either shape of their URL. */
export function imagesOf(value: unknown): OutputImage[] {
  if (!Array.isArray(value)) return [];
  const images: OutputImage[] = [];
  for (const entry of value) {
    const image = isObject(entry) ? entry['image_url'] : undefined;
    const url = textOf(isObject(image) ? image['url'] : image);
    if (url !== undefined) images.push({ type: 'image_url', image_url: { url } });
  }
  return images;
}

/** Audio output; undefined if every field has a zero value. */
export function audioOf(value: JsonObject): OutputAudio | undefined {
  const audio: OutputAudio = {};
  const id = textOf(value['id']);
  const data = textOf(value['data']);
  const transcript = textOf(value['transcript']);
  if (id !== undefined) audio.id = id;
  if (data !== undefined) audio.data = data;
  if (transcript !== undefined) audio.transcript = transcript;
  if (typeof value['expires_at'] === 'number' && value['expires_at'] > 0) audio.expires_at = value['expires_at'];
  return Object.keys(audio).length === 0 ? undefined : audio;
}

/** The annotations of kinds in the public schema. */
export function annotationsOf(value: unknown): Annotation[] {
  if (!Array.isArray(value)) return [];
  const annotations: Annotation[] = [];
  for (const entry of value) {
    if (!isObject(entry)) continue;
    const { type, url_citation: citation } = entry;
    if (type === 'file') annotations.push({ ...entry, type });
    if (type !== 'url_citation' || !isObject(citation)) continue;
    const url = textOf(citation['url']);
    if (url === undefined) continue;
    annotations.push(
      citationOf(url, citation, {
        start_index: offsetOf(citation['start_index']),
        end_index: offsetOf(citation['end_index']),
      }),
    );
  }
  return annotations;
}

/** Sources that the upstream lists, as URLs or objects, without a position in the text. */
export function citationsOf(results: unknown): Annotation[] {
  if (!Array.isArray(results)) return [];
  const annotations: Annotation[] = [];
  for (const result of results) {
    const url = textOf(isObject(result) ? result['url'] : result);
    if (url !== undefined)
      annotations.push(citationOf(url, isObject(result) ? result : {}, { start_index: 0, end_index: 0 }));
  }
  return annotations;
}

function citationOf(url: string, source: JsonObject, position: { start_index: number; end_index: number }): Annotation {
  const title = textOf(source['title']);
  const content = textOf(source['content']) ?? textOf(source['snippet']);
  return {
    type: 'url_citation',
    url_citation: {
      url,
      ...(title === undefined ? {} : { title }),
      ...(content === undefined ? {} : { content }),
      ...position,
    },
  };
}

function offsetOf(value: unknown): number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : 0;
}
