import { ByChoice, followed } from '../../schemas/by-choice.ts';
import type { ChatChunk, UrlCitation } from '../../schemas/inner.ts';
import { countCodePoints } from '../../schemas/text.ts';
import type { CitedSource } from './server-tools.ts';

/** The most citations of one answer. */
export const CITATIONS_MAX = 200;
/** The longest label of a markdown link that is a citation. */
const CITATION_LABEL_CHARS_MAX = 500;
/** The length of the excerpt of the source in a citation. */
const CITATION_CONTENT_CHARS_MAX = 1_000;

/** A mention of a source in a text. Offsets in UTF-16 units. */
interface Mention {
  source: CitedSource;
  start: number;
  end: number;
}

/** The identity of a page: its address without fragment, `utm_source` and trailing slash, with scheme and host in lower case. */
function keyOf(url: string): string {
  const whole = url.split('#', 1)[0]!;
  // A provider may send long addresses: each step reads the text once.
  const last = Math.max(whole.lastIndexOf('&'), 0);
  const source = whole.slice(last).search(/[?&]utm_source=/);
  const bare = source < 0 ? whole : whole.slice(0, last + source);
  const [, scheme = '', host = '', path = ''] = /^([a-z]+:\/\/)([^/?]*)(.*)$/is.exec(bare) ?? [];
  return `${scheme.toLowerCase()}${host.toLowerCase()}${path.replace(/\/$/, '')}` || bare;
}

const ADDRESS = /https?:\/\/[^\s<>"'`\\|^{}]+/gi;

/** An address without the punctuation of its sentence: marks at the end, and a bracket that it did not open. */
function trimmed(match: string): string {
  let end = match.length;
  let open = 0;
  for (let at = 0; at < end; at += 1) {
    const char = match[at];
    if (char === '(') open += 1;
    else if (char === ')' && open === 0) end = at;
    else if (char === ')') open -= 1;
    else if (char === '[' || char === ']') end = at;
  }
  while (end > 0 && /[.,;:!?*_~]/.test(match[end - 1]!)) end -= 1;
  return match.slice(0, end);
}

/** The start of the markdown link whose address is at `at`. Undefined if the address is not part of a link. */
function linkStart(text: string, at: number): number | undefined {
  const before = text[at - 1] === '<' ? at - 1 : at;
  if (text[before - 1] !== '(' || text[before - 2] !== ']') return undefined;
  let depth = 1;
  const least = Math.max(0, before - 3 - CITATION_LABEL_CHARS_MAX);
  for (let i = before - 3; i >= least; i -= 1) {
    if (text[i] === ']') depth += 1;
    else if (text[i] === '[') depth -= 1;
    if (depth === 0) return i;
  }
  return undefined;
}

const LINK_END = /^>?(?:\s+"[^"\n]{0,200}")?\)/;

/** The mentions of known sources: whole markdown links, or bare addresses. */
function mentionsIn(text: string, known: ReadonlyMap<string, CitedSource>): Mention[] {
  const mentions: Mention[] = [];
  for (const { 0: match, index } of text.matchAll(ADDRESS)) {
    const address = trimmed(match);
    const source = known.get(keyOf(address));
    if (source === undefined) continue;
    const after = index + address.length;
    const link = linkStart(text, index);
    const tail = link === undefined ? undefined : LINK_END.exec(text.slice(after, after + 220));
    mentions.push(
      link === undefined || tail == null
        ? { source, start: index, end: after }
        : { source, start: link, end: after + tail[0].length },
    );
    if (mentions.length >= CITATIONS_MAX) break;
  }
  return mentions;
}

function citationOf({ url, title, content }: CitedSource, startIndex: number, endIndex: number): UrlCitation {
  const excerpt = content.slice(0, CITATION_CONTENT_CHARS_MAX).toWellFormed();
  return {
    type: 'url_citation',
    url_citation: { url, title, content: excerpt, start_index: startIndex, end_index: endIndex },
  };
}

/** Adds citations of sources to the text of one answer, each time that a block of text is complete. */
export interface CitationExtractor {
  /** Returns the chunks with citations: after the block of text that they belong to, and before the end of the answer. */
  add(chunks: readonly ChatChunk[]): ChatChunk[];
}

/**
 * Creates the extractor of one answer. `sources` may grow during the answer. A markdown link or a bare address of a source is a
 * citation; its offsets are code points of the joined text. If the answer cites nothing, its end lists all sources without offsets.
 * Citations by the provider itself are kept. Several choices are independent of each other.
 */
export function createCitationExtractor(sources: readonly CitedSource[], choices = 1): CitationExtractor {
  if (choices === 1) return createChoiceExtractor(sources);
  const extractors = new ByChoice(() => createChoiceExtractor(sources));
  return { add: (chunks) => followed(chunks, (choice) => (ofChoice) => extractors.of(choice).add(ofChoice)) };
}

function createChoiceExtractor(sources: readonly CitedSource[]): CitationExtractor {
  const known = new Map<string, CitedSource>();
  /** The code points of the complete blocks. */
  let before = 0;
  let block = '';
  let blockN: number | undefined;
  let cited = 0;
  let hasCited = false;

  function endBlock(): UrlCitation[] {
    const text = block;
    const start = before;
    before += countCodePoints(text);
    block = '';
    blockN = undefined;
    if (text === '' || sources.length === 0 || cited >= CITATIONS_MAX) return [];
    for (const source of sources.slice(known.size))
      if (!known.has(keyOf(source.url))) known.set(keyOf(source.url), source);
    const mentions = mentionsIn(text, known);
    let [at, counted] = [0, start];
    const made = mentions.map((one) => {
      counted += countCodePoints(text.slice(at, one.start));
      const startIndex = counted;
      counted += countCodePoints(text.slice(one.start, one.end));
      at = one.end;
      return citationOf(one.source, startIndex, counted);
    });
    cited += made.length;
    hasCited ||= made.length > 0;
    return made;
  }

  function flush(out: ChatChunk[]): void {
    const n = blockN;
    const annotations = endBlock();
    if (annotations.length > 0)
      out.push({ delta: { annotations }, ...(n === undefined ? {} : { ext: { slot: { n } } }) });
  }

  function addOne(chunk: ChatChunk, out: ChatChunk[]): void {
    const { delta, ext } = chunk;
    const slot = ext?.slot;
    if (delta.annotations?.some(({ type }) => type === 'url_citation')) hasCited = true;
    if (delta.content) {
      if (block !== '' && slot?.n !== blockN) flush(out);
      blockN = slot?.n;
      block += delta.content;
    }
    const closes = slot?.close !== undefined && slot.n === blockN && block !== '';
    if (closes && delta.content) {
      const { close: _, ...open } = slot;
      out.push({ ...chunk, ext: { ...ext, slot: open } });
      flush(out);
      out.push({ delta: {}, ext: { slot: { n: slot.n, close: slot.close! } } });
      return;
    }
    if (closes) flush(out);
    if (chunk.finish_reason != null) {
      flush(out);
      if (!hasCited && sources.length > 0 && chunk.finish_reason !== 'error') {
        const all = [...new Map(sources.map((source) => [keyOf(source.url), source])).values()];
        const annotations = all.slice(0, CITATIONS_MAX).map((source) => citationOf(source, 0, 0));
        out.push({ delta: { annotations } });
        hasCited = true;
      }
    }
    out.push(chunk);
  }

  return {
    add(chunks) {
      const out: ChatChunk[] = [];
      for (const chunk of chunks) addOne(chunk, out);
      return out;
    },
  };
}
