import { GatewayError } from '../../errors.ts';
import type { FilePart, InnerPart, TextPart } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { Quirks } from '../quirks.ts';
import type { AddReport } from '../shared/reports.ts';
import { restOf, WIRE, type WireItem } from './wire.ts';

/** The state that the steps of one encoding share. */
export interface Encoding {
  quirks: Quirks;
  strip_state: boolean;
  /** Ids of the reasoning items in the request, which must be unique (translation R11). */
  reasoning_ids: Set<string>;
  /** The tool's name on this wire. A changed name is recorded for the decoder. */
  toolName(name: string): string;
  addReport: AddReport;
}

const WEB_URL = /^https?:\/\//i;
/** The base64 of `%PDF-`, as far as it does not depend on the following bytes: some clients send bare base64 instead of a data URL. */
const PDF_BASE64 = 'JVBERi';

/**
 * A part of a user, system or tool message as this wire's input content; undefined if it cannot be sent. The caller separates parts
 * that are items of their own (`mcp_approval_response`).
 */
export function encodePart(part: InnerPart, field: string, encoding: Encoding): WireItem | undefined {
  switch (part.type) {
    case 'native':
      if (part.wire === WIRE) return part.block as WireItem;
      encoding.addReport('dropped', field, `an object of ${part.wire} cannot be expressed in this provider's API`);
      return undefined;
    case 'text':
      return { ...restOf(part.ext), type: 'input_text', text: part.text, ...breakpoint(part, encoding) };
    case 'image_url': {
      const detail = part.image_url.detail;
      return {
        ...restOf(part.ext),
        type: 'input_image',
        image_url: part.image_url.url,
        // Required by the type (https://platform.openai.com/docs/api-reference/responses/create).
        detail: detail === 'low' || detail === 'high' || detail === 'original' ? detail : 'auto',
        ...breakpoint(part, encoding),
      };
    }
    case 'file':
      return { ...encodeFile(part, field), ...breakpoint(part, encoding) };
    default:
      throw new GatewayError(400, `${field}: this model's provider does not accept ${part.type} parts.`);
  }
}

/**
 * The cache breakpoint on this wire, which models before GPT-5.6 refuse. A breakpoint that the client set on this wire is sent
 * unchanged.
 */
function breakpoint(
  { cache_control: hint, ext }: Pick<TextPart, 'cache_control' | 'ext'>,
  { quirks }: Encoding,
): { prompt_cache_breakpoint?: JsonObject } {
  if ('prompt_cache_breakpoint' in restOf(ext)) return {};
  return quirks.cache_control && hint?.type === 'ephemeral' ? { prompt_cache_breakpoint: { mode: 'explicit' } } : {};
}

function encodeFile(part: FilePart, field: string): WireItem {
  const rest = restOf(part.ext);
  // Clients send null or nothing for unset fields.
  const data = part.file.file_data || undefined;
  const fileId = part.file.file_id || undefined;
  const filename = part.file.filename || undefined;
  if (data === undefined) {
    if (fileId === undefined) throw new GatewayError(400, `${field}: the file has neither data nor an id.`);
    return { ...rest, type: 'input_file', file_id: fileId };
  }
  if (WEB_URL.test(data)) return { ...rest, type: 'input_file', file_url: data };
  if (/^data:image\//i.test(data)) return { ...rest, type: 'input_image', image_url: data, detail: 'auto' };
  const fileData = data.startsWith(PDF_BASE64) ? `data:application/pdf;base64,${data}` : data;
  if (!/^data:/i.test(fileData)) {
    throw new GatewayError(400, `${field}: the address must be an http(s) or a data URL.`);
  }
  // The data require a filename, whose extension determines the kind.
  return { ...rest, type: 'input_file', filename: filename ?? nameOf(fileData), file_data: fileData };
}

function nameOf(dataUrl: string): string {
  const subtype = /^data:[^/,;]+\/([a-z0-9]+)[;,]/i.exec(dataUrl)?.[1]?.toLowerCase() ?? 'pdf';
  return `file.${subtype === 'plain' ? 'txt' : subtype}`;
}
