import type { Annotation, UrlCitation } from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';
import { asObject, asText } from '../shared/json-shape.ts';

/** Annotations for citations with an address, over their whole block; citations of documents have no public form. */
export function annotationsOf(citations: readonly JsonValue[], startIndex: number, endIndex: number): Annotation[] {
  const annotations: Annotation[] = [];
  for (const value of citations) {
    const citation = asObject(value);
    if (citation === undefined) continue;
    // A search result that the client supplied names its origin as `source`, often an address.
    const url = asText(citation['url']) || asText(citation['source']);
    if (!/^https?:\/\//i.test(url)) continue;
    const urlCitation: UrlCitation['url_citation'] = { url, start_index: startIndex, end_index: endIndex };
    if (typeof citation['title'] === 'string') urlCitation.title = citation['title'];
    if (typeof citation['cited_text'] === 'string') urlCitation.content = citation['cited_text'];
    annotations.push({ type: 'url_citation', url_citation: urlCitation });
  }
  return annotations;
}
