import { TextDecoder } from 'node:util';
import { limits } from '../../limits.ts';
import { type FetchedPage, MediaRefused } from '../../providers/transport/fetch-media.ts';
import { type PdfReader, PdfRefused } from '../files/pdf-reader.ts';
import { htmlText, type PageText } from './html-text.ts';

/** The beginning of a page, in which its encoding is declared. */
const PAGE_HEAD_BYTES = 2_048;

const TEXTS =
  /^(?:text\/|application\/(?:[\w.+-]*\+)?(?:json|xml|yaml|x-yaml|javascript|ecmascript|x-ndjson|rtf|toml|sql)$)/;

/** The media type without parameters, in lower case. Empty if not set. */
function plainType(declared: string | undefined): string {
  return (declared ?? '').split(';')[0]!.trim().toLowerCase();
}

function decoderOf(label: string | undefined): TextDecoder | undefined {
  if (label === undefined) return undefined;
  try {
    return new TextDecoder(label);
  } catch {
    return undefined;
  }
}

/**
 * Decodes bytes as text: by byte order mark, else by the server's charset, else by the page's (HTML Standard, "Determining the
 * character encoding"), else UTF-8. Yields to the event loop between pieces.
 */
export async function decodedText(bytes: Buffer, contentType: string | undefined): Promise<string> {
  const head = bytes.subarray(0, PAGE_HEAD_BYTES).toString('latin1');
  const markCharset = head.startsWith('\xff\xfe') ? 'utf-16le' : head.startsWith('\xfe\xff') ? 'utf-16be' : undefined;
  const serverCharset = /charset\s*=\s*"?([^\s";,]+)/i.exec(contentType ?? '')?.[1];
  const pageCharset =
    /<meta[^>]+charset\s*=\s*["']?([^\s"'/>;]+)/i.exec(head)?.[1] ??
    /<\?xml[^>]+encoding\s*=\s*["']([^"']+)/i.exec(head)?.[1];
  const decoder = decoderOf(markCharset) ?? decoderOf(serverCharset) ?? decoderOf(pageCharset) ?? new TextDecoder();
  let text = '';
  for (let at = 0; at < bytes.length; at += limits.page_slice_chars) {
    if (at > 0) await new Promise((resolve) => setImmediate(resolve));
    text += decoder.decode(bytes.subarray(at, at + limits.page_slice_chars), { stream: true });
  }
  return text + decoder.decode();
}

/** The text of a page of any readable type. Throws `MediaRefused` if it cannot be read. */
export async function pageText(
  page: FetchedPage,
  { pdfs, chars_max, owner, signal }: { pdfs: PdfReader; chars_max: number; owner: string; signal: AbortSignal },
): Promise<PageText> {
  const { bytes, content_type, url } = page;
  const type = plainType(content_type);
  if (bytes.subarray(0, 5).toString('latin1') === '%PDF-') {
    try {
      const { text } = await pdfs.read(bytes, { owner, signal });
      return { title: '', text: text.slice(0, chars_max) };
    } catch (error) {
      if (error instanceof PdfRefused) throw new MediaRefused(error.message, { cause: error });
      throw error;
    }
  }
  const hasNoType = type === '' || type === 'application/octet-stream';
  if (
    hasNoType ? bytes.subarray(0, PAGE_HEAD_BYTES).includes(0) : !TEXTS.test(type) && type !== 'application/xhtml+xml'
  ) {
    throw new MediaRefused(
      hasNoType ? 'it is not a text' : `it is ${type.slice(0, limits.error_field_chars_max)}, which is not text`,
    );
  }
  const text = await decodedText(bytes, content_type);
  const isHtml =
    type === 'text/html' ||
    type === 'application/xhtml+xml' ||
    (hasNoType && /^\s*<(?:!doctype html|html)/i.test(text));
  return isHtml ? await htmlText(text, { base: url, chars_max }) : { title: '', text: text.slice(0, chars_max) };
}
