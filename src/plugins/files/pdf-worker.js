// Plain JavaScript: a process that never sees TypeScript does not load the type stripper.

/** Reads PDFs in a separate process: its time and memory are bounded by the parent, and it has no environment. */

/** @typedef {{ bytes: Uint8Array, pages_max: number, chars_max: number, items_max: number, buffer_bytes_max: number }} Task */

/** The reason why a PDF has no text. */
class Refusal extends Error {}

const UNPACKS_TO_TOO_MUCH = 'it unpacks to too much';

let bufferBytesMax = Number.POSITIVE_INFINITY;

/** Bounds buffers: decompressed streams are outside of the heap, each in one buffer. */
function boundBuffers() {
  /** @type {Record<string, any>} */
  const globals = globalThis;
  for (const name of ['Uint8Array', 'Uint8ClampedArray', 'Uint16Array', 'Uint32Array', 'Int32Array', 'Float32Array']) {
    /** @type {any} */
    const bounded = new Proxy(globals[name], {
      /** @param {any} target @param {unknown[]} args @param {any} made @returns {object} */
      construct(target, args, made) {
        const [length] = args;
        if (typeof length === 'number' && length * target.BYTES_PER_ELEMENT > bufferBytesMax) {
          throw new Refusal(UNPACKS_TO_TOO_MUCH);
        }
        return Reflect.construct(target, args, made === bounded ? target : made);
      },
    });
    globals[name] = bounded;
  }
}

/** @type {Promise<typeof import('unpdf')> | undefined} */
let library;

function load() {
  if (library === undefined) {
    boundBuffers();
    library = import('unpdf');
  }
  return library;
}

/** @param {any} error */
function reasonOf(error) {
  // The library wraps errors in its own classes and keeps the message.
  if (error instanceof Refusal || error?.message === UNPACKS_TO_TOO_MUCH) return error.message;
  switch (error?.name) {
    case 'PasswordException':
      return 'it is encrypted, and needs a password';
    case 'InvalidPDFException':
    case 'MissingPDFException':
    case 'FormatError':
    case 'XRefEntryException':
    case 'XRefParseException':
      return 'it is not a whole PDF, or a broken one';
    case 'RangeError':
      return 'it is nested too deeply, or unpacks to too much';
    default:
      return 'it cannot be read';
  }
}

/** @param {any} page @param {number} itemsMax @param {number} charsMax */
async function textOfPage(page, itemsMax, charsMax) {
  const reader = page.streamTextContent({ includeMarkedContent: false }).getReader();
  const pieces = [];
  let chars = 0;
  let items = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    for (const { str = '', hasEOL } of read.value.items) {
      items += 1;
      chars += str.length + 1;
      if (items > itemsMax || chars > charsMax) throw new Refusal(`it holds more than ${charsMax} characters`);
      pieces.push(hasEOL ? `${str}\n` : str);
    }
  }
  // Replaces lone surrogates and removes NUL characters.
  return pieces.join('').toWellFormed().replaceAll('\0', '').trimEnd();
}

/** @param {Task} task */
async function read(task) {
  const { bytes, pages_max, chars_max, items_max } = task;
  const { getDocumentProxy } = await load();
  bufferBytesMax = task.buffer_bytes_max;
  const pdf = await getDocumentProxy(bytes, {
    enableXfa: false,
    useSystemFonts: false,
    disableFontFace: true,
    useWasm: false,
    stopAtErrors: false,
    verbosity: 0,
  });
  try {
    const { numPages } = pdf;
    // The page count comes from the file and is multiplied by prices.
    if (!Number.isSafeInteger(numPages) || numPages < 0) throw new Refusal('it is not a whole PDF, or a broken one');
    if (numPages > pages_max) throw new Refusal(`it has ${numPages} pages, of which at most ${pages_max} are read`);
    const pages = [];
    let charsLeft = chars_max;
    for (let number = 1; number <= numPages; number += 1) {
      const page = await pdf.getPage(number);
      const text = await textOfPage(page, items_max, charsLeft);
      charsLeft -= text.length;
      if (text !== '') pages.push(text);
      page.cleanup();
    }
    return { text: pages.join('\n\n'), pages: numPages };
  } finally {
    await pdf.loadingTask.destroy();
  }
}

/** @param {Task} task */
export default async function answer(task) {
  try {
    return await read(task);
  } catch (error) {
    return { refused: reasonOf(error) };
  }
}
