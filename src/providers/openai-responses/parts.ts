import { GatewayError } from '../../errors.ts';
import type { FilePart, InnerPart, TextPart } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { Quirks } from '../quirks.ts';
import type { AddReport } from '../shared/reports.ts';
import { restOf, WIRE, type WireItem } from './wire.ts';

/** What the parts of one request's encoding share. */
export interface Encoding {
  quirks: Quirks;
  strip_state: boolean;
  /** Ids of the reasoning items that are in the request: none may be there twice (translation R11). */
  reasoning_ids: Set<string>;
  /** The name as this wire takes it; remembered for the way back. */
  toolName(name: string): string;
  report: AddReport;
}

const WEB_URL = /^https?:\/\//i;
/** `%PDF-`, as far as its base64 does not depend on what follows: some clients send bare base64 in place of a data URL. */
const PDF_BASE64 = 'JVBERi';

/**
 * A part of a user, system or tool message as this wire's input content; undefined where it has no place here. A part of
 * this wire that is no content but an item of its own (`mcp_approval_response`) is for the caller to tell apart.
 */
export function encodePart(part: InnerPart, field: string, encoding: Encoding): WireItem | undefined {
  switch (part.type) {
    case 'native':
      if (part.wire === WIRE) return part.block as WireItem;
      encoding.report('dropped', field, `an object of ${part.wire} cannot be expressed in this provider's API`);
      return undefined;
    case 'text':
      return { ...restOf(part.ext), type: 'input_text', text: part.text, ...breakpoint(part, encoding) };
    case 'image_url': {
      const detail = part.image_url.detail;
      return {
        ...restOf(part.ext),
        type: 'input_image',
        image_url: part.image_url.url,
        // The type says that it is always there (https://platform.openai.com/docs/api-reference/responses/create).
        detail: detail === 'low' || detail === 'high' || detail === 'original' ? detail : 'auto',
        ...breakpoint(part, encoding),
      };
    }
    case 'file':
      return { ...encodeFile(part, field), ...breakpoint(part, encoding) };
    default:
      throw new GatewayError(400, `${field}: this model's provider takes no ${part.type} parts.`);
  }
}

/**
 * The hint of where to cache up to, in this wire's words; models before GPT-5.6 refuse it. Who said it in these words has it sent
 * as it was.
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
  // Clients write null or nothing for what they leave out.
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
  // A name must stand beside the data, and its ending tells the kind.
  return { ...rest, type: 'input_file', filename: filename ?? nameOf(fileData), file_data: fileData };
}

function nameOf(dataUrl: string): string {
  const subtype = /^data:[^/,;]+\/([a-z0-9]+)[;,]/i.exec(dataUrl)?.[1]?.toLowerCase() ?? 'pdf';
  return `file.${subtype === 'plain' ? 'txt' : subtype}`;
}
