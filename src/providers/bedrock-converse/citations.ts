import type { Annotation, UrlCitation } from '../../schemas/inner.ts';
import type { JsonValue } from '../../schemas/json.ts';
import { asArray, asObject, asText } from '../shared/json-shape.ts';

/**
 * Annotations for citations of web pages, over their whole block; citations of documents have no public form
 * (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Citation.html).
 */
export function annotationsOf(citations: readonly JsonValue[], startIndex: number, endIndex: number): Annotation[] {
  const annotations: Annotation[] = [];
  for (const value of citations) {
    const citation = asObject(value);
    if (citation === undefined) continue;
    const url = asText(asObject(asObject(citation['location'])?.['web'])?.['url']) || asText(citation['source']);
    if (!/^https?:\/\//i.test(url)) continue;
    const urlCitation: UrlCitation['url_citation'] = { url, start_index: startIndex, end_index: endIndex };
    if (typeof citation['title'] === 'string') urlCitation.title = citation['title'];
    const quoted = asArray(citation['sourceContent']).map((part) => asText(asObject(part)?.['text']));
    if (quoted.some((text) => text !== '')) urlCitation.content = quoted.join('');
    annotations.push({ type: 'url_citation', url_citation: urlCitation });
  }
  return annotations;
}
