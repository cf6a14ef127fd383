import { GatewayError } from '../../errors.ts';
import type { FilePart, ImagePart, InnerPart } from '../../schemas/inner.ts';
import { decodeText } from '../../schemas/text-file.ts';
import { readDataUrl } from '../shared/data-url.ts';
import type { Encoding } from './encoding.ts';
import type { WireDocument, WireImage, WireText, WireUserPart } from './wire.ts';

/** A part of a user message; undefined if empty. Throws `GatewayError` 400 for kinds that the wire does not have. */
export function encodeUserPart(part: InnerPart, field: string, encoding: Encoding): WireUserPart | undefined {
  switch (part.type) {
    case 'text':
      return textPart(part.text);
    case 'image_url':
      return imagePart(part);
    case 'file': {
      const file = readFile(part, field);
      if (file.kind === 'image') return imagePart({ type: 'image_url', image_url: { url: file.url } });
      encoding.addReport('changed', field, 'a text file is sent as text');
      return textPart(file.name === undefined ? file.text : `${file.name}:\n${file.text}`);
    }
    case 'native':
      encoding.addReport('dropped', field, `an object of ${part.wire} cannot be expressed in this provider's API`);
      return undefined;
    default:
      throw new GatewayError(400, `${field}: this model's provider does not accept ${part.type} parts.`);
  }
}

/** A part of a tool's result: text, or a document that the answer can cite. Images must follow in a user message. */
export function encodeResultPart(
  part: InnerPart,
  field: string,
  encoding: Encoding,
): WireText | WireDocument | WireImage | undefined {
  if (part.type === 'file') {
    const file = readFile(part, field);
    if (file.kind === 'text') {
      // https://docs.cohere.com/v2/docs/tool-use-overview: results as documents, whose keys and values the model reads.
      const data = file.name === undefined ? { text: file.text } : { title: file.name, text: file.text };
      return { type: 'document', document: { data } };
    }
  }
  return encodeUserPart(part, field, encoding);
}

function textPart(text: string): WireText | undefined {
  return text === '' ? undefined : { type: 'text', text };
}

const DETAILS = ['auto', 'low', 'high'] as const;

function imagePart({ image_url: { url, detail } }: ImagePart): WireImage {
  const known = DETAILS.find((one) => one === detail);
  return { type: 'image_url', image_url: { url, ...(known === undefined ? {} : { detail: known }) } };
}

/** Reads a file as text or image, the only kinds of the wire. Throws `GatewayError` 400 for others. */
function readFile(
  { file: { file_data: fileData, filename } }: FilePart,
  field: string,
): { kind: 'text'; text: string; name: string | undefined } | { kind: 'image'; url: string } {
  const data = readDataUrl(fileData ?? '');
  if (data?.media_type.startsWith('image/')) return { kind: 'image', url: fileData! };
  if (data?.media_type.startsWith('text/') || data?.media_type === 'application/json') {
    return { kind: 'text', text: decodeText(Buffer.from(data.base64, 'base64')), name: filename || undefined };
  }
  throw new GatewayError(400, `${field}: this model's provider accepts text and image files only.`);
}
