import { createHash } from 'node:crypto';
import type { Endpoint, Model } from '../../catalog/model.ts';
import { GatewayError } from '../../errors.ts';
import { CallCancelled } from '../../inference/attempt/upstream-call.ts';
import type { Call } from '../../inference/call.ts';
import type { Adapter, CallAdapter, Preparation } from '../../inference/prepare/adapters.ts';
import { inClientsWords } from '../../inference/prepare/client-fields.ts';
import { type CallMedia, createCallMedia } from '../../inference/prepare/media.ts';
import type { Fees } from '../../inference/tools/server-tools.ts';
import { limits } from '../../limits.ts';
import type { Media } from '../../providers/dialect.ts';
import { readDataUrl } from '../../providers/shared/data-url.ts';
import type { MediaFetcher } from '../../providers/transport/fetch-media.ts';
import { isPdf, mediaTypeOf } from '../../providers/transport/media-type.ts';
import { acceptsInput } from '../../routing/needs.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { ChatRequest, FilePart, Message, TextPart } from '../../schemas/inner.ts';
import type { Stage } from '../../schemas/routing-metadata.ts';
import { decodeText } from '../../schemas/text-file.ts';
import { asksFor, type PdfEngine, pdfEngineOf } from '../plugin-options.ts';
import { annotatedFiles, type FileAnnotation } from './file-annotations.ts';
import type { OcrReader } from './ocr.ts';
import { type PdfReader, PdfRefused, type PdfText } from './pdf-reader.ts';

/** A file's name in the text. */
const FILE_NAME_CHARS_MAX = 200;

/** Reads files for endpoints without file input: the text of PDFs, and text files. */
export interface FileParser {
  /** Reads files that no endpoint of the call's models accepts, before planning, so that the length of the prompt is known. */
  preparation: Preparation;
  /** Reads the other files for endpoints that do not accept them. */
  adapter: Adapter;
  /** Whether a call has files that may be read. */
  isFor(call: Call): boolean;
  /** The PDFs that were read for a call, without those whose text its client sent. */
  annotations(call: Call): FileAnnotation[];
  /** Skips fetching or all reading for a call that is only explained or routed. */
  skip(call: Call, what: 'fetching' | 'reading'): void;
}

const WEB_URL = /^https?:\/\//i;
/** The base64 of `%PDF-`, without the character that depends on the next byte. Some clients send bare base64 instead of a data URL. */
const PDF_BASE64 = 'JVBERi';

/** The kinds of files to read. */
interface FileKinds {
  pdf: boolean;
  text: boolean;
}

interface PlacedFile {
  part: FilePart;
  /** Its path in the inner language. */
  field: string;
}

/** The context of reading one file. */
interface ReadContext {
  media: Media;
  fees: Fees | undefined;
  signal: AbortSignal;
}

/** The bytes of a file and its declared type. */
interface Content {
  bytes: Buffer;
  declared: string | undefined;
}

function* filesOf(messages: readonly Message[]): Generator<PlacedFile> {
  for (const [i, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const [j, part] of content.entries()) {
      if (part.type === 'file') yield { part, field: `messages[${i}].content[${j}]` };
    }
  }
}

function takesFiles(endpoint: Endpoint): boolean {
  return acceptsInput(endpoint, 'file');
}

function nameOf({ file: { file_data, filename } }: FilePart, otherwise: string): string {
  const name = filename || (WEB_URL.test(file_data ?? '') ? lastSegment(file_data!) : undefined) || otherwise;
  return name.slice(0, FILE_NAME_CHARS_MAX).toWellFormed();
}

function lastSegment(url: string): string | undefined {
  const segment = url.slice(0, limits.media_url_chars_max).split(/[?#]/)[0]!.split('/').at(-1)!;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The text part for a file: its name and text. */
function inPrompt({ cache_control }: FilePart, name: string, text: string): TextPart {
  const quoted = name.replaceAll(/["<>\r\n]/g, "'");
  const part: TextPart = { type: 'text', text: `<file name="${quoted}">\n${text}\n</file>` };
  return cache_control === undefined ? part : { ...part, cache_control };
}

/** Replaces files by their texts. Returns the same request if none was read. */
function withTexts(
  request: ChatRequest,
  texts: ReadonlyMap<FilePart, TextPart>,
  kinds: FileKinds,
  isPdf: Set<FilePart>,
) {
  if (texts.size === 0) return request;
  const readAs = (part: FilePart) => {
    const isWanted = isPdf.has(part) ? kinds.pdf : kinds.text;
    return isWanted ? texts.get(part) : undefined;
  };
  let hasChanged = false;
  const messages = request.messages.map((message) => {
    const { content } = message;
    if (!Array.isArray(content)) return message;
    if (!content.some((part) => part.type === 'file' && readAs(part) !== undefined)) return message;
    hasChanged = true;
    return { ...message, content: content.map((part) => (part.type === 'file' ? (readAs(part) ?? part) : part)) };
  });
  return hasChanged ? { ...request, messages } : request;
}

/** The files of one call. Each is read once for all attempts. */
class CallFiles {
  readonly annotations: FileAnnotation[] = [];
  readonly #texts = new Map<FilePart, TextPart>();
  readonly #pdfs = new Set<FilePart>();
  readonly #checked = new Set<FilePart>();
  /** The kinds of files that are read, by request. */
  readonly #done = new WeakMap<ChatRequest, FileKinds>();
  readonly #readByHash = new Map<string, string>();
  readonly #ocr: OcrReader;
  readonly #call: Call;
  readonly #reader: PdfReader;
  readonly #media: CallMedia;
  readonly #annotated: ReadonlyMap<string, string>;
  #stage: Stage | undefined;
  #engine: PdfEngine = 'pdf-text';
  #chars = 0;
  #pages = 0;
  #reused = 0;
  skips: 'fetching' | 'reading' | undefined = undefined;

  constructor(call: Call, { reader, fetcher, ocr }: FileParserOptions) {
    this.#ocr = ocr;
    this.#call = call;
    this.#reader = reader;
    // Texts are filtered when they are read, not when files are fetched.
    const { screening: _, ...unread } = call;
    this.#media = createCallMedia(unread, fetcher);
    this.#annotated = annotatedFiles(call.request.messages);
  }

  fit(request: ChatRequest, kinds: FileKinds): ChatRequest {
    return withTexts(request, this.#texts, kinds, this.#pdfs);
  }

  /** Whether all files of these kinds are read. */
  isRead(request: ChatRequest, kinds: FileKinds): boolean {
    const done = this.#done.get(request);
    return done !== undefined && (done.pdf || !kinds.pdf) && (done.text || !kinds.text);
  }

  /** Reads the unread files of these kinds. With `fees`, PDFs are read by the OCR engine. */
  async read(request: ChatRequest, kinds: FileKinds, fees?: Fees): Promise<void> {
    if (this.skips === 'reading') return;
    const files = [...filesOf(request.messages)].filter(
      ({ part }) => !this.#texts.has(part) && !(this.#checked.has(part) && !this.#isRequested(part, kinds)),
    );
    if (files.length === 0) return;
    const controller = new AbortController();
    const unsubscribe = this.#call.cancellation.onCancel(() =>
      controller.abort(new CallCancelled({ may_be_billed: false })),
    );
    try {
      const urls = files.flatMap(({ part }) => (WEB_URL.test(part.file.file_data ?? '') ? [part.file.file_data!] : []));
      const fetches = this.skips === 'fetching' ? [] : urls.map((url) => ({ url, kind: 'file' as const }));
      const media = await this.#media.gather(fetches);
      for (const file of files) await this.#readOne(file, kinds, { media, fees, signal: controller.signal });
      this.#done.set(request, kinds);
    } catch (error) {
      throw error instanceof GatewayError ? inClientsWords(error, this.#call) : error;
    } finally {
      unsubscribe();
    }
  }

  #isRequested(part: FilePart, kinds: FileKinds): boolean {
    return this.#pdfs.has(part) ? kinds.pdf : kinds.text;
  }

  async #readOne(file: PlacedFile, kinds: FileKinds, reading: ReadContext): Promise<void> {
    const { part, field } = file;
    const content = contentOf(part, reading.media);
    if (content === undefined) return;
    const isPdfFile = isPdf(content.bytes);
    this.#checked.add(part);
    if (isPdfFile) this.#pdfs.add(part);
    if (!this.#isRequested(part, kinds) && (isPdfFile || !isDeclaredPdf(part, content))) return;
    if (this.#texts.size >= limits.parsed_files_max) {
      throw new GatewayError(400, `${field}: the gateway reads at most ${limits.parsed_files_max} files of a request`);
    }
    if (!isPdfFile && isDeclaredPdf(part, content)) {
      if (kinds.pdf) throw new GatewayError(400, `${field}: the file is not a PDF, although it claims to be one`);
      return;
    }
    const text = isPdfFile ? await this.#textOfPdf(file, content, reading) : await this.#plainText(file, content);
    if (text !== undefined) this.#texts.set(part, text);
  }

  async #textOfPdf({ part, field }: PlacedFile, { bytes }: Content, reading: ReadContext): Promise<TextPart> {
    const hash = createHash('sha256').update(bytes).digest('hex');
    const name = nameOf(part, 'document.pdf');
    const known = this.#readByHash.get(hash);
    if (known !== undefined) return inPrompt(part, name, known);
    const annotated = this.#annotated.get(hash);
    const { text: source, pages } =
      annotated === undefined ? await this.#readPdf(bytes, field, reading) : { text: annotated, pages: 0 };
    const text = await this.#filtered(source, field);
    this.#readByHash.set(hash, text);
    if (annotated === undefined) this.annotations.push({ hash, name, text });
    else this.#reused += 1;
    this.#pages += pages;
    this.#addStage();
    return inPrompt(part, name, text);
  }

  async #readPdf(bytes: Buffer, field: string, { fees, signal }: ReadContext): Promise<PdfText> {
    const owner = this.#call.principal.key_hash ?? this.#call.principal.kind;
    try {
      await this.#call.room?.take(bytes.length * 2);
      const read = await this.#reader.read(bytes, { owner, signal });
      const result =
        fees === undefined || read.pages === 0 ? read : await this.#ocr.read(bytes, read.pages, fees, signal);
      if (result !== read) this.#engine = 'mistral-ocr';
      if (result.text !== '') return result;
    } catch (error) {
      if (!(error instanceof PdfRefused)) throw error;
      if (error.is_busy) throw new GatewayError(503, error.message, { headers: { 'retry-after': '1' }, cause: error });
      throw new GatewayError(400, `${field}: the PDF cannot be read here: ${error.message}`, { cause: error });
    }
    throw new GatewayError(
      400,
      `${field}: the PDF contains images but no text; use a model with file input, or an engine that reads images`,
    );
  }

  async #plainText({ part, field }: PlacedFile, { bytes, declared }: Content): Promise<TextPart | undefined> {
    const decoded = textOf(bytes, declared);
    if (decoded === undefined) return undefined;
    const text = await this.#filtered(decoded, field);
    this.#addStage();
    return inPrompt(part, nameOf(part, 'file.txt'), text);
  }

  /** Applies the caller's filters. */
  async #filtered(text: string, field: string): Promise<string> {
    this.#chars += text.length;
    if (this.#chars > limits.parsed_chars_max) {
      throw new GatewayError(
        400,
        `${field}: the files of a request may have at most ${limits.parsed_chars_max} characters`,
      );
    }
    const { screening } = this.#call;
    return screening === undefined ? text : (await screening.texts([text]))[0]!;
  }

  #addStage(): void {
    if (this.#stage === undefined) {
      this.#stage = { type: 'plugin', name: 'file-parser' };
      this.#call.stages.push(this.#stage);
    }
    const files = this.#readByHash.size + [...this.#texts.keys()].filter((part) => !this.#pdfs.has(part)).length;
    this.#stage.data = {
      engine: this.#engine,
      pdfs: this.#readByHash.size,
      pages: this.#pages,
      characters: this.#chars,
      reused: this.#reused,
    };
    this.#stage.summary = `files=${files}`;
  }
}

/** The text of a text file. Undefined if it is not text. Content that is not UTF-8 is text if it is declared as text. */
function textOf(bytes: Buffer, declared: string | undefined): string | undefined {
  const type = mediaTypeOf(bytes, declared);
  if (type !== undefined) return /^text\/|^application\/json$/.test(type) ? decodeText(bytes) : undefined;
  if (!/^text\//.test(declared ?? '')) return undefined;
  const text = decodeText(bytes);
  return text.includes('\0') ? undefined : text;
}

function isDeclaredPdf({ file: { filename } }: FilePart, { declared }: Content): boolean {
  return declared === 'application/pdf' || /\.pdf$/i.test(filename ?? '');
}

/** The content of a file. Undefined for an id, a URL that was not fetched, or an unknown form. */
function contentOf({ file: { file_data: data } }: FilePart, media: Media): Content | undefined {
  if (!data) return undefined;
  const fetched = media.get(data);
  if (fetched !== undefined) return { bytes: Buffer.from(fetched.base64, 'base64'), declared: fetched.mime_type };
  if (data.startsWith(PDF_BASE64)) return { bytes: Buffer.from(data, 'base64'), declared: 'application/pdf' };
  const dataUrl = readDataUrl(data);
  return dataUrl && { bytes: Buffer.from(dataUrl.base64, 'base64'), declared: dataUrl.media_type };
}

export interface FileParserOptions {
  reader: PdfReader;
  /** Reads scanned pages, for requests that name the OCR engine. */
  ocr: OcrReader;
  fetcher: MediaFetcher;
}

/** Creates the parser. Endpoints with file input receive files unchanged, unless the request names an engine of the gateway. */
export function createFileParser(options: FileParserOptions): FileParser {
  /** By the list of stages, which all copies of a call share. */
  const calls = new WeakMap<Stage[], CallFiles>();

  function of(call: Call): CallFiles {
    const known = calls.get(call.stages);
    if (known !== undefined) return known;
    const made = new CallFiles(call, options);
    calls.set(call.stages, made);
    return made;
  }

  /** The kinds of files that an endpoint needs as text. */
  function kindsFor(engine: PdfEngine | undefined, takesFileInput: boolean): FileKinds {
    if (takesFileInput) return { pdf: engine !== undefined && engine !== 'native', text: false };
    return { pdf: engine !== 'native', text: true };
  }

  function isFor({ request }: Call): boolean {
    return contentsOf(request).has_files && asksFor(request, 'file-parser') !== false;
  }

  async function readBefore(call: Call, kinds: FileKinds): Promise<Call> {
    const files = of(call);
    await files.read(call.request, kinds);
    const request = files.fit(call.request, kinds);
    return request === call.request ? call : { ...call, request };
  }

  return {
    isFor,

    preparation: {
      of: 'files',
      prepare(call, models: readonly Model[]) {
        if (!isFor(call)) return call;
        const endpoints = models.flatMap((model) => model.endpoints);
        const engine = pdfEngineOf(call.request);
        const kinds = kindsFor(engine, endpoints.some(takesFiles));
        // The OCR engine costs money, so it runs only for a chosen endpoint.
        if (engine === 'mistral-ocr') kinds.pdf = false;
        return kinds.pdf || kinds.text ? readBefore(call, kinds) : call;
      },
    },

    adapter: {
      of: 'files',
      create(call, resources): CallAdapter | undefined {
        if (!isFor(call)) return undefined;
        const engine = pdfEngineOf(call.request);
        const files = of(call);
        const kindsAt = ({ endpoint }: { endpoint: Endpoint }) => kindsFor(engine, takesFiles(endpoint));
        return {
          ready(candidate, isBeside) {
            const kinds = kindsAt(candidate);
            if ((!kinds.pdf && !kinds.text) || files.isRead(call.request, kinds)) return undefined;
            // A hedged attempt reads nothing, since reading may cost money. The promise keeps it from being sent.
            if (isBeside === true) return Promise.resolve();
            return files.read(call.request, kinds, engine === 'mistral-ocr' ? resources.fees : undefined);
          },
          fit: (request, candidate) => ({ request: files.fit(request, kindsAt(candidate)), report: [] }),
        };
      },
    },

    annotations: ({ stages }) => calls.get(stages)?.annotations ?? [],

    skip(call, what) {
      if (isFor(call)) of(call).skips = what;
    },
  };
}
