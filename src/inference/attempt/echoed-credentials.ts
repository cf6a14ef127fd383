/**
 * The shortest part of a credential of several parts that is redacted in an upstream's text. Shorter parts are names, such as
 * regions.
 */
const CREDENTIAL_PART_CHARS_MIN = 16;
/** Characters of a credential that are searched for in a provider's text, in every encoding of it. */
export const CREDENTIAL_ECHO_CHARS_MAX = 4_096;

/**
 * Finds a credential in a provider's text in any spelling: in another case, spaced or chunked, as base64 or base64url (alone
 * or beside a user's name), as hexadecimal, in a URL, in JSON or in HTML. It also finds a part of one, as in a truncated echo.
 *
 * Text and credential are reduced to letters and digits without case; a run of `SHARED_CHARS` of these that both contain belongs to the credential.
 * The work is one look-up for each character of both.
 */
const SHARED_CHARS = 12;

/** Shorter credentials occur in words: only their exact spelling is searched for. */
const SHARED_CHARS_MIN = 8;

const MARK = '[redacted]';

/** The letters and digits of a text in lower case, and the offset of each. */
function reduced(text: string): { chars: string; at: number[] } {
  const at: number[] = [];
  let chars = '';
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    const isDigit = code >= 48 && code <= 57;
    const isLetter = (code >= 65 && code <= 90) || (code >= 97 && code <= 122);
    if (!isDigit && !isLetter) continue;
    chars += text[i];
    at.push(i);
  }
  return { chars: chars.toLowerCase(), at };
}

/** Escapes of one character in URLs, JSON, scripts and HTML. */
const ESCAPE = /%([0-9a-f]{2})|\\u00([0-9a-f]{2})|\\x([0-9a-f]{2})|&#x([0-9a-f]{2});|&#([0-9]{2,3});|&[a-z]{2,6};/gi;

/** A text, and the place of each of its characters in the text that it was made of. */
interface View {
  text: string;
  at: readonly number[];
}

/** The view with escapes replaced by their characters: encoders differ in which characters they escape. Undefined if it has none. */
function unescaped({ text, at }: View): View | undefined {
  const places: number[] = [];
  let made = '';
  let from = 0;
  const add = (piece: string, start: number) => {
    made += piece;
    for (let i = 0; i < piece.length; i += 1) places.push(at[start + i]!);
  };
  for (const match of text.matchAll(ESCAPE)) {
    const [written, percent, unicode, hex, entity, decimal] = match;
    add(text.slice(from, match.index), from);
    const code = percent ?? unicode ?? hex ?? entity;
    made += String.fromCharCode(code === undefined ? Number(decimal ?? 0) : Number.parseInt(code, 16));
    places.push(at[match.index]!);
    from = match.index + written.length;
  }
  if (from === 0) return undefined;
  add(text.slice(from), from);
  return { text: made, at: places };
}

const escapes: readonly ((code: string) => string)[] = [
  (code) => code,
  (code) => `25${code}`,
  (code) => `u00${code}`,
  (code) => `x${code}`,
  (code) => String(Number.parseInt(code, 16)),
];

/** The encodings of a credential, reduced to letters and digits. */
function* writings(secret: string): Generator<string, void, undefined> {
  const bytes = Buffer.from(secret);
  yield reduced(secret).chars;
  yield bytes.toString('hex');
  // Base64 depends on the number of bytes before the credential: a user's name, or none.
  for (let before = 0; before < 3; before += 1) {
    yield reduced(Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')).chars.slice(before === 0 ? 0 : 2);
  }
  if (/^[A-Za-z0-9]*$/.test(secret)) return;
  for (const written of escapes) {
    yield reduced(secret.replace(/[^A-Za-z0-9]/g, (char) => written(char.charCodeAt(0).toString(16).padStart(2, '0'))))
      .chars;
  }
}

const TOKEN = /[A-Za-z0-9+/_-]/;

/** Replaces the parts of a text that it shares with a credential by a mark. */
function withoutEcho(text: string, secret: string): string {
  const whole = reduced(secret).chars;
  if (whole.length < SHARED_CHARS_MIN) return text;
  const length = Math.min(SHARED_CHARS, whole.length);
  const isEcho = new Uint8Array(text.length);
  let hasEcho = markShared(reduced(text), writings(secret), length, isEcho);
  if (/[^A-Za-z0-9]/.test(secret)) {
    // Also finds a credential in a text that was escaped twice.
    let view: View | undefined = { text, at: Array.from({ length: text.length }, (_none, i) => i) };
    for (let time = 0; time < 2 && view !== undefined; time += 1) {
      view = unescaped(view);
      if (view === undefined) break;
      const { at } = view;
      const { chars, at: kept } = reduced(view.text);
      hasEcho = markShared({ chars, at: kept.map((i) => at[i]!) }, [whole], length, isEcho) || hasEcho;
    }
  }
  return hasEcho ? marked(text, isEcho) : text;
}

/** Marks in `isEcho` the places of a text that share `length` characters with one of the writings; true if there are any. */
function markShared(
  { chars, at }: { chars: string; at: readonly number[] },
  writtenForms: Iterable<string>,
  length: number,
  isEcho: Uint8Array,
): boolean {
  if (chars.length < length) return false;
  const places = new Map<string, number[]>();
  for (let i = 0; i + length <= chars.length; i += 1) {
    const gram = chars.slice(i, i + length);
    const known = places.get(gram);
    if (known === undefined) places.set(gram, [i]);
    else known.push(i);
  }
  let hasEcho = false;
  for (const writing of writtenForms) {
    for (let i = 0; i + length <= writing.length; i += 1) {
      const gram = writing.slice(i, i + length);
      const matches = places.get(gram);
      if (matches === undefined) continue;
      hasEcho = true;
      // Once is enough, however often the credential repeats itself.
      places.delete(gram);
      for (const place of matches) isEcho.fill(1, at[place], at[place + length - 1]! + 1);
    }
  }
  return hasEcho;
}

/** The text with a mark for each run, and for the rest of a word that a run ends or begins in. */
function marked(text: string, isEcho: Uint8Array): string {
  let made = '';
  for (let i = 0; i < text.length; ) {
    let end = i;
    while (end < text.length && (isEcho[end] === 1 || TOKEN.test(text[end]!))) end += 1;
    if (end === i) {
      made += text[i];
      i += 1;
      continue;
    }
    let hasEcho = false;
    for (let k = i; k < end; k += 1) if (isEcho[k] === 1) hasEcho = true;
    made += hasEcho ? MARK : text.slice(i, end);
    i = end;
  }
  return made;
}

/** The longer parts of a credential that is JSON text: upstreams quote single parts. */
function partsOf(credential: string): string[] {
  if (!credential.trimStart().startsWith('{')) return [credential];
  const parts: string[] = [credential];
  try {
    JSON.parse(credential, (_name, value: unknown) => {
      if (typeof value === 'string' && value.length >= CREDENTIAL_PART_CHARS_MIN) parts.push(value);
      return value;
    });
  } catch {
    // A credential that is not JSON has no parts: its whole text is redacted.
  }
  return parts;
}

/** Names and addresses in a credential are no secrets by themselves: parts of them stand in many messages. */
const isRandom = (part: string) => !part.includes('@') && !part.includes('://') && !part.trimStart().startsWith('{');

/** A provider's text without the credential that was sent to it. */
export function withoutCredential(text: string, credential: string | undefined): string {
  if (credential === undefined || credential.length < 4) return text;
  let shown = text;
  for (const part of partsOf(credential)) {
    shown = shown.replaceAll(part, MARK);
    if (isRandom(part)) shown = withoutEcho(shown, part.slice(0, CREDENTIAL_ECHO_CHARS_MAX));
  }
  return shown;
}
