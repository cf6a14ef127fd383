import { limits } from '../../limits.ts';
import { createWorkerPool, WorkFailed } from '../worker-pool.ts';

/** The bytes of one buffer of a reader, and of all: a decompressed stream is one buffer. */
const PDF_BUFFER_BYTES_MAX = 64 * 1024 * 1024;
const PDF_BUFFERS_BYTES_MAX = 256 * 1024 * 1024;
const PDF_PAGE_ITEMS_MAX = 500_000;
/** How long a file waits for a reader. */
const PDF_WAIT_MS_MAX = 30_000;

/** The text of a PDF. */
export interface PdfText {
  text: string;
  pages: number;
}

/** A PDF that is not read. The message may be shown to the client. */
export class PdfRefused extends Error {
  override readonly name = 'PdfRefused';
  /** Whether the reason is load: the PDF may be sent again later. */
  readonly is_busy: boolean;

  constructor(message: string, details: { is_busy?: boolean; cause?: unknown } = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.is_busy = details.is_busy === true;
  }
}

/** Reads the text of untrusted PDFs. */
export interface PdfReader {
  /** Reads one PDF for a request of `owner`. Rejects with `PdfRefused`, or the reason of the signal. */
  read(bytes: Buffer, options: { owner: string; signal: AbortSignal }): Promise<PdfText>;
  stop(): Promise<void>;
}

function refusalOf(error: WorkFailed): PdfRefused {
  switch (error.reason) {
    case 'busy':
      return new PdfRefused('too many files are being read; try again soon', { is_busy: true, cause: error });
    case 'late':
      return new PdfRefused(`reading it takes longer than ${limits.pdf_ms_max} ms`, { cause: error });
    case 'large':
      return new PdfRefused('reading it takes too much memory', { cause: error });
    case 'died':
      return new PdfRefused('it cannot be read', { cause: error });
  }
}

/** Creates a reader with separate processes, which start with the first file. */
export function createPdfReader(bounds: { ms_max?: number } = {}): PdfReader {
  const pool = createWorkerPool({
    script: new URL('./pdf-worker.js', import.meta.url),
    processes_max: limits.pdf_readers_max,
    waiting_max: limits.pdf_waiting_max,
    waiting_per_owner_max: limits.pdf_waiting_per_owner_max,
    wait_ms_max: PDF_WAIT_MS_MAX,
    ms_max: bounds.ms_max ?? limits.pdf_ms_max,
    heap_mb_max: limits.pdf_heap_mb_max,
    buffers_bytes_max: PDF_BUFFERS_BYTES_MAX,
  });
  return {
    async read(file, { owner, signal }) {
      if (file.length > limits.pdf_bytes_max) {
        throw new PdfRefused(`it has ${file.length} bytes, of which at most ${limits.pdf_bytes_max} are read`);
      }
      const task = {
        bytes: new Uint8Array(file.buffer, file.byteOffset, file.length),
        pages_max: limits.pdf_pages_max,
        chars_max: limits.pdf_chars_max,
        items_max: PDF_PAGE_ITEMS_MAX,
        buffer_bytes_max: PDF_BUFFER_BYTES_MAX,
      };
      try {
        const answer = (await pool.run(task, { owner, signal })) as PdfText | { refused: string };
        if ('refused' in answer) throw new PdfRefused(answer.refused);
        return answer;
      } catch (error) {
        throw error instanceof WorkFailed ? refusalOf(error) : error;
      }
    },
    stop: () => pool.stop(),
  };
}
