import { GatewayError } from '../../errors.ts';
import type { Fees } from '../../inference/tools/server-tools.ts';
import { limits } from '../../limits.ts';
import { ServiceFailed, type Services } from '../../providers/transport/services.ts';
import { parseServiceJson } from '../../schemas/json-structure.ts';
import type { OcrSettings } from '../../schemas/ocr.ts';
import type { PdfText } from './pdf-reader.ts';

/** The time and the answer's length of the OCR engine. */
const OCR_MS_MAX = 120_000;
const OCR_ANSWER_BYTES_MAX = 32 * 1024 * 1024;

/** Reads scanned pages with the operator's OCR engine. */
export interface OcrReader {
  /** Whether an engine is configured. */
  isOn(): boolean;
  /**
   * Reads the text of a PDF of `pages` pages, paid by the call. Rejects with a `GatewayError` 502 if the engine
   * fails, the ledger's 402 if the pages cannot be paid, or the reason of the signal.
   */
  read(bytes: Buffer, pages: number, fees: Fees, signal: AbortSignal): Promise<PdfText>;
}

interface OcrAnswer {
  text: string;
  pages_billed: number | undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** An answer of Mistral's OCR API: a list of pages as Markdown (https://docs.mistral.ai/api/endpoint/ocr). */
function answerOf(body: Buffer): OcrAnswer | undefined {
  let answer: unknown;
  try {
    answer = parseServiceJson(body.toString('utf8'));
  } catch {
    return undefined;
  }
  if (!isObject(answer) || !Array.isArray(answer['pages'])) return undefined;
  const pages: string[] = [];
  for (const page of answer['pages'] as unknown[]) {
    if (!isObject(page) || typeof page['markdown'] !== 'string') return undefined;
    pages.push(page['markdown'].trim());
  }
  const { usage_info } = answer;
  const billed = isObject(usage_info) ? usage_info['pages_processed'] : undefined;
  return {
    text: pages
      .filter((page) => page !== '')
      .join('\n\n')
      .toWellFormed(),
    pages_billed: Number.isSafeInteger(billed) && (billed as number) >= 0 ? (billed as number) : undefined,
  };
}

function failed(reason: string, cause?: unknown): GatewayError {
  return new GatewayError(502, `The OCR engine failed: ${reason}`, { cause });
}

/** Creates the reader. `settings` is called for each file, so that a reload takes effect at once. */
export function createOcr(services: Pick<Services, 'ask'>, settings: () => OcrSettings | undefined): OcrReader {
  async function ask(
    bytes: Buffer,
    count: number,
    { base_url, api_key, model }: OcrSettings,
    signal: AbortSignal,
  ): Promise<OcrAnswer> {
    const documentUrl = `data:application/pdf;base64,${bytes.toString('base64')}`;
    const document = { type: 'document_url', document_url: documentUrl };
    // Only the paid pages: a file may declare fewer pages than it has.
    const pages = Array.from({ length: count }, (_, at) => at);
    const pending = services.ask({
      url: `${base_url}/ocr`,
      headers: {
        'content-type': 'application/json',
        ...(api_key === undefined ? {} : { authorization: `Bearer ${api_key}` }),
      },
      body: JSON.stringify({ model, document, pages, include_image_base64: false }),
      bytes_max: OCR_ANSWER_BYTES_MAX,
      timeout_ms: OCR_MS_MAX,
      signal,
    });
    const { status, body } = await pending.catch((error: unknown) => {
      throw error instanceof ServiceFailed ? failed(error.message, error) : error;
    });
    if (status !== 200) throw failed(`it answered with status ${status}`);
    const answer = answerOf(body);
    if (answer === undefined) throw failed('its answer does not have the format of the OCR API');
    return answer;
  }

  return {
    isOn: () => settings() !== undefined,

    read(bytes, pages, fees, signal) {
      const settingsNow = settings();
      // A reload removed the engine after the request was accepted.
      if (settingsNow === undefined) return Promise.reject(failed('it is no longer configured'));
      const fee = { name: 'file_parser', cost_nano_max: pages * settingsNow.page_nano };
      return fees.spend(fee, async () => {
        const { text, pages_billed } = await ask(bytes, pages, settingsNow, signal);
        const costNano = Math.min(pages, pages_billed ?? pages) * settingsNow.page_nano;
        return { value: { text: text.slice(0, limits.pdf_chars_max).toWellFormed(), pages }, cost_nano: costNano };
      });
    },
  };
}
