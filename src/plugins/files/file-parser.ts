import { createHash } from 'node:crypto';
import type { Endpoint, Model } from '../../catalog/model.ts';
import { GatewayError } from '../../errors.ts';
import { CallCancelled } from '../../inference/attempt/exchange.ts';
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
import { takesInput } from '../../routing/needs.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { ChatRequest, FilePart, Message, TextPart } from '../../schemas/inner.ts';
import type { Stage } from '../../schemas/routing-metadata.ts';
import { decodeText } from '../../schemas/text-file.ts';
import { asksFor, type PdfEngine, pdfEngineOf } from '../plugin-options.ts';
import { annotatedFiles, type FileAnnotation } from './file-annotations.ts';
import type { OcrReader } from './ocr.ts';
import { type PdfReader, PdfRefused, type PdfText } from './pdf-reader.ts';

/** Reads files for endpoints that take none: PDFs as their text, text files as they are. */
export interface FileParser {
  /** Reads what no endpoint of the call's models takes, so that the plan knows its length. */
  prepare: Preparation;
  /** Reads the rest when its turn comes: what some endpoints take and others do not. */
  adapter: Adapter;
  /** Whether a call holds files that may be read. */
  isFor(call: Call): boolean;
  /** The PDFs that were read for a call, and not told by its client. */
  annotations(call: Call): FileAnnotation[];
  /** Nothing is to be fetched for this call, or nothing read at all: it is explained, or refused. */
  spare(call: Call, what: 'fetching' | 'reading'): void;
}

const WEB_URL = /^https?:\/\//i;
/** `%PDF-`, as far as its base64 does not depend on what follows: some clients send bare base64 in place of a data URL. */
const PDF_BASE64 = 'JVBERi';

/** Which files are read. */
interface ModelVariant {
  pdf: boolean;
  text: boolean;
}

interface PlacedFile {
  part: FilePart;
  /** Where it stands, by the names of the inner language. */
  field: string;
}

/** What a file is read with. */
interface Reading {
  media: Media;
  fees: Fees | undefined;
  signal: AbortSignal;
}

/** A file's bytes, and what it says of itself. */
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
  return takesInput(endpoint, 'file');
}

function nameOf({ file: { file_data, filename } }: FilePart, otherwise: string): string {
  const said = filename || (WEB_URL.test(file_data ?? '') ? lastSegment(file_data!) : undefined) || otherwise;
  return said.slice(0, limits.file_name_chars_max).toWellFormed();
}

function lastSegment(url: string): string | undefined {
  const segment = url.slice(0, limits.media_url_chars_max).split(/[?#]/)[0]!.split('/').at(-1)!;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** A file in a prompt: its name, and what it holds. */
function inPrompt({ cache_control }: FilePart, name: string, text: string): TextPart {
  const quoted = name.replaceAll(/["<>\r\n]/g, "'");
  const part: TextPart = { type: 'text', text: `<file name="${quoted}">\n${text}\n</file>` };
  return cache_control === undefined ? part : { ...part, cache_control };
}

/** The request with texts in place of files; the same where none was read. */
function withTexts(
  request: ChatRequest,
  texts: ReadonlyMap<FilePart, TextPart>,
  wish: ModelVariant,
  isPdf: Set<FilePart>,
) {
  if (texts.size === 0) return request;
  const readAs = (part: FilePart) => {
    const isWanted = isPdf.has(part) ? wish.pdf : wish.text;
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

/** The files of one call: each is read once, whichever attempts need it. */
class CallFiles {
  readonly annotations: FileAnnotation[] = [];
  readonly #texts = new Map<FilePart, TextPart>();
  readonly #pdfs = new Set<FilePart>();
  readonly #looked = new Set<FilePart>();
  /** Of which requests everything that is wished for is read. */
  readonly #done = new WeakMap<ChatRequest, ModelVariant>();
  readonly #readByHash = new Map<string, string>();
  readonly #ocr: OcrReader;
  readonly #call: Call;
  readonly #reader: PdfReader;
  readonly #media: CallMedia;
  readonly #told: ReadonlyMap<string, string>;
  #stage: Stage | undefined;
  #engine: PdfEngine = 'pdf-text';
  #chars = 0;
  #pages = 0;
  #reused = 0;
  spares: 'fetching' | 'reading' | undefined = undefined;

  constructor(call: Call, { reader, fetcher, ocr }: FileParserOptions) {
    this.#ocr = ocr;
    this.#call = call;
    this.#reader = reader;
    // What is read is held against the filters where it is read.
    const { screening: _, ...unread } = call;
    this.#media = createCallMedia(unread, fetcher);
    this.#told = annotatedFiles(call.request.messages);
  }

  fit(request: ChatRequest, wish: ModelVariant): ChatRequest {
    return withTexts(request, this.#texts, wish, this.#pdfs);
  }

  /** Whether nothing is left to be read. */
  isRead(request: ChatRequest, wish: ModelVariant): boolean {
    const done = this.#done.get(request);
    return done !== undefined && (done.pdf || !wish.pdf) && (done.text || !wish.text);
  }

  /** Reads those files of the request that are wished for and not read yet. `fees`: PDFs are read by the engine that reads pictures. */
  async read(request: ChatRequest, wish: ModelVariant, fees?: Fees): Promise<void> {
    if (this.spares === 'reading') return;
    const files = [...filesOf(request.messages)].filter(
      ({ part }) => !this.#texts.has(part) && !(this.#looked.has(part) && !this.#isWished(part, wish)),
    );
    if (files.length === 0) return;
    const ending = new AbortController();
    const forget = this.#call.cancellation.onCancel(() => ending.abort(new CallCancelled({ may_be_billed: false })));
    try {
      const urls = files.flatMap(({ part }) => (WEB_URL.test(part.file.file_data ?? '') ? [part.file.file_data!] : []));
      const fetches = this.spares === 'fetching' ? [] : urls.map((url) => ({ url, kind: 'file' as const }));
      const media = await this.#media.gather(fetches);
      for (const file of files) await this.#readOne(file, wish, { media, fees, signal: ending.signal });
      this.#done.set(request, wish);
    } catch (error) {
      throw error instanceof GatewayError ? inClientsWords(error, this.#call) : error;
    } finally {
      forget();
    }
  }

  #isWished(part: FilePart, wish: ModelVariant): boolean {
    return this.#pdfs.has(part) ? wish.pdf : wish.text;
  }

  async #readOne(file: PlacedFile, wish: ModelVariant, reading: Reading): Promise<void> {
    const { part, field } = file;
    const content = contentOf(part, reading.media);
    if (content === undefined) return;
    const is_pdf = isPdf(content.bytes);
    this.#looked.add(part);
    if (is_pdf) this.#pdfs.add(part);
    if (!this.#isWished(part, wish) && (is_pdf || !isCalledPdf(part, content))) return;
    if (this.#texts.size >= limits.parsed_files_max) {
      throw new GatewayError(400, `${field}: the gateway reads at most ${limits.parsed_files_max} files of a request`);
    }
    if (!is_pdf && isCalledPdf(part, content)) {
      if (wish.pdf) throw new GatewayError(400, `${field}: the file is not a PDF, although it claims to be one`);
      return;
    }
    const text = is_pdf ? await this.#textOfPdf(file, content, reading) : await this.#plainText(file, content);
    if (text !== undefined) this.#texts.set(part, text);
  }

  async #textOfPdf({ part, field }: PlacedFile, { bytes }: Content, reading: Reading): Promise<TextPart> {
    const hash = createHash('sha256').update(bytes).digest('hex');
    const name = nameOf(part, 'document.pdf');
    const known = this.#readByHash.get(hash);
    if (known !== undefined) return inPrompt(part, name, known);
    const told = this.#told.get(hash);
    const { text: found, pages } =
      told === undefined ? await this.#readPdf(bytes, field, reading) : { text: told, pages: 0 };
    const text = await this.#passed(found, field);
    this.#readByHash.set(hash, text);
    if (told === undefined) this.annotations.push({ hash, name, text });
    else this.#reused += 1;
    this.#pages += pages;
    this.#tell();
    return inPrompt(part, name, text);
  }

  async #readPdf(bytes: Buffer, field: string, { fees, signal }: Reading): Promise<PdfText> {
    const owner = this.#call.principal.key_hash ?? this.#call.principal.kind;
    try {
      await this.#call.room?.take(bytes.length * 2);
      const read = await this.#reader.read(bytes, { owner, signal });
      const found =
        fees === undefined || read.pages === 0 ? read : await this.#ocr.read(bytes, read.pages, fees, signal);
      if (found !== read) this.#engine = 'mistral-ocr';
      if (found.text !== '') return found;
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
    const found = textOf(bytes, declared);
    if (found === undefined) return undefined;
    const text = await this.#passed(found, field);
    this.#tell();
    return inPrompt(part, nameOf(part, 'file.txt'), text);
  }

  /** What the caller's filters let through of it. */
  async #passed(text: string, field: string): Promise<string> {
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

  #tell(): void {
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

/** What a text file says; undefined for what is none. What is no UTF-8 is a text where it is declared as one. */
function textOf(bytes: Buffer, declared: string | undefined): string | undefined {
  const type = mediaTypeOf(bytes, declared);
  if (type !== undefined) return /^text\/|^application\/json$/.test(type) ? decodeText(bytes) : undefined;
  if (!/^text\//.test(declared ?? '')) return undefined;
  const text = decodeText(bytes);
  return text.includes('\0') ? undefined : text;
}

function isCalledPdf({ file: { filename } }: FilePart, { declared }: Content): boolean {
  return declared === 'application/pdf' || /\.pdf$/i.test(filename ?? '');
}

/** What is at hand of a file; undefined: an id, an address that was not fetched, or nothing that is known here. */
function contentOf({ file: { file_data: data } }: FilePart, media: Media): Content | undefined {
  if (!data) return undefined;
  const fetched = media.get(data);
  if (fetched !== undefined) return { bytes: Buffer.from(fetched.base64, 'base64'), declared: fetched.mime_type };
  if (data.startsWith(PDF_BASE64)) return { bytes: Buffer.from(data, 'base64'), declared: 'application/pdf' };
  const told = readDataUrl(data);
  return told && { bytes: Buffer.from(told.base64, 'base64'), declared: told.media_type };
}

export interface FileParserOptions {
  reader: PdfReader;
  /** What reads pictures of pages, for those who ask for it. */
  ocr: OcrReader;
  fetcher: MediaFetcher;
}

/** Files are left to endpoints that take them, unless the request names an engine of the gateway's. */
export function createFileParser(options: FileParserOptions): FileParser {
  /** By the list that all copies of a call share. */
  const calls = new WeakMap<Stage[], CallFiles>();

  function of(call: Call): CallFiles {
    const known = calls.get(call.stages);
    if (known !== undefined) return known;
    const made = new CallFiles(call, options);
    calls.set(call.stages, made);
    return made;
  }

  /** Which files an endpoint must be given as text. */
  function wishFor(engine: PdfEngine | undefined, takes_files: boolean): ModelVariant {
    if (takes_files) return { pdf: engine !== undefined && engine !== 'native', text: false };
    return { pdf: engine !== 'native', text: true };
  }

  function isFor({ request }: Call): boolean {
    return contentsOf(request).has_files && asksFor(request, 'file-parser') !== false;
  }

  async function readBefore(call: Call, wish: ModelVariant): Promise<Call> {
    const files = of(call);
    await files.read(call.request, wish);
    const request = files.fit(call.request, wish);
    return request === call.request ? call : { ...call, request };
  }

  return {
    isFor,

    prepare(call, models: readonly Model[]) {
      if (!isFor(call)) return call;
      const endpoints = models.flatMap((model) => model.endpoints);
      const engine = pdfEngineOf(call.request);
      const wish = wishFor(engine, endpoints.some(takesFiles));
      // What costs money is done when there is an endpoint to go to.
      if (engine === 'mistral-ocr') wish.pdf = false;
      return wish.pdf || wish.text ? readBefore(call, wish) : call;
    },

    adapter(call): CallAdapter | undefined {
      if (!isFor(call)) return undefined;
      const engine = pdfEngineOf(call.request);
      const files = of(call);
      const wishAt = ({ endpoint }: { endpoint: Endpoint }) => wishFor(engine, takesFiles(endpoint));
      return {
        ready(candidate, isBeside) {
          const wish = wishAt(candidate);
          if ((!wish.pdf && !wish.text) || files.isRead(call.request, wish)) return undefined;
          // A second attempt is not sent where there is something to wait for: nothing is read, and paid, for it.
          if (isBeside === true) return Promise.resolve();
          return files.read(call.request, wish, engine === 'mistral-ocr' ? call.fees : undefined);
        },
        fit: (request, candidate) => ({ request: files.fit(request, wishAt(candidate)), report: [] }),
      };
    },

    annotations: ({ stages }) => calls.get(stages)?.annotations ?? [],

    spare(call, what) {
      if (isFor(call)) of(call).spares = what;
    },
  };
}
