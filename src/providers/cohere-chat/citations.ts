import type { Annotation, UrlCitation } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import { asArray, asObject, asText } from '../shared/json-shape.ts';

/**
 * The sources of a citation that have an address, for the text that they support. `start` is the offset of the citation's text in
 * the joined text; offsets count Unicode code points. Sources without an address have no public form.
 */
export function annotationsOf(citation: JsonObject, start: number): Annotation[] {
  const annotations: Annotation[] = [];
  for (const value of asArray(citation['sources'])) {
    const source = asObject(value);
    // A document of the request or a tool's output; the fields of both are the caller's own.
    const origin = asObject(source?.['document']) ?? asObject(source?.['tool_output']);
    const url = asText(origin?.['url']);
    if (!/^https?:\/\//i.test(url)) continue;
    const urlCitation: UrlCitation['url_citation'] = {
      url,
      start_index: start + offsetOf(citation['start']),
      end_index: start + offsetOf(citation['end']),
    };
    const title = asText(origin?.['title']);
    if (title !== '') urlCitation.title = title;
    const content = asText(origin?.['snippet']) || asText(origin?.['text']);
    if (content !== '') urlCitation.content = content;
    annotations.push({ type: 'url_citation', url_citation: urlCitation });
  }
  return annotations;
}

function offsetOf(value: unknown): number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : 0;
}
