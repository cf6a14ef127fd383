// Plain JavaScript: a process that never sees TypeScript does not load the type stripper.

/** What the process does that reads PDFs: its time and memory are bounded from outside; it has no environment. */

/** @typedef {{ bytes: Uint8Array, pages_max: number, chars_max: number, items_max: number, buffer_bytes_max: number }} Task */

/** What the reader tells: a text, or why there is none. */
class Refusal extends Error {}

const UNPACKS_TO_TOO_MUCH = 'it unpacks to too much';

let bufferBytesMax = Number.POSITIVE_INFINITY;

/** Unpacked streams grow outside of the heap, which has a bound of its own: each of these is one buffer. */
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
  // The library hands errors on as others of its own, with their text.
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
  // Half of a pair is no character; nothing prints the first of all.
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
    // What a file says of itself is multiplied with prices.
    if (!Number.isSafeInteger(numPages) || numPages < 0) throw new Refusal('it is not a whole PDF, or a broken one');
    if (numPages > pages_max) throw new Refusal(`it has ${numPages} pages, of which at most ${pages_max} are read`);
    const pages = [];
    let left = chars_max;
    for (let number = 1; number <= numPages; number += 1) {
      const page = await pdf.getPage(number);
      const text = await textOfPage(page, items_max, left);
      left -= text.length;
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
