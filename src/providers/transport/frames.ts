import { limits } from '../../limits.ts';
import { type ChatDialect, type Frame, UpstreamError } from '../dialect.ts';
import type { Framer } from '../framer.ts';
import { createAwsEventStreamFramer } from './aws-event-stream.ts';

/** The framer of one stream. `frameCharsMax` bounds the text of one frame in memory. */
export function createFramer(
  kind: ChatDialect['frames'],
  frameCharsMax: number = limits.stream_frame_bytes_max,
): Framer {
  return kind === 'sse' ? new EventStreamFramer(frameCharsMax) : createAwsEventStreamFramer(frameCharsMax);
}

const EMPTY = Buffer.alloc(0);
const LF = 10;
const SPACE = 32;

/**
 * The event stream of the WHATWG HTML standard, section 9.2.6, with two extensions. An event without its closing blank line still counts
 * at the end. A body that is not an event stream (a JSON error or an HTML page under a 200) is one frame at the end, so that the dialect
 * can describe the error; so is JSON without `data:` after the last event, with which Gemini reports a failure in the middle of an
 * answer. A class instead of closures, for speed: there is one for every stream.
 */
class EventStreamFramer implements Framer {
  readonly #frameCharsMax: number;
  #held: Uint8Array = EMPTY;
  #atStart = true;
  #skipLineFeed = false;
  /** The current incomplete line. Concatenation builds a rope that is flattened once, so that small reads cost no copying. */
  #partial = '';
  #data: string | undefined = undefined;
  /** Further `data` lines of the event, and their characters: a rope of many lines would be slow to read. */
  #lines: string[] | undefined = undefined;
  #linesChars = 0;
  #event: string | undefined = undefined;
  #sawData = false;
  #stray = '';
  #failure: UpstreamError | undefined = undefined;

  constructor(frameCharsMax: number) {
    this.#frameCharsMax = frameCharsMax;
  }

  #takeLine(line: string, frames: Frame[]): void {
    if (line.length === 0) {
      const data = this.#data;
      if (data !== undefined) {
        frames.push({ event: this.#event, data: this.#lines === undefined ? data : this.#joined(data, this.#lines) });
      }
      this.#data = undefined;
      this.#event = undefined;
      return;
    }
    if (line.startsWith('data:')) {
      const value = line.slice(line.charCodeAt(5) === SPACE ? 6 : 5);
      this.#sawData = true;
      this.#stray = '';
      if (this.#data === undefined) this.#data = value;
      else this.#addData(value);
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return;
    if (colon === -1 && line === 'data') {
      this.#sawData = true;
      if (this.#data === undefined) this.#data = '';
      else this.#addData('');
    } else if (line.startsWith('event:')) {
      this.#event = line.slice(line.charCodeAt(6) === SPACE ? 7 : 6) || undefined;
    } else if (
      (!this.#sawData || this.#stray !== '' || line.startsWith('{') || line.startsWith('[')) &&
      this.#stray.length < limits.upstream_error_bytes_max
    ) {
      this.#stray += `${line}\n`;
    }
  }

  /** A further `data` line of the event. */
  #addData(value: string): void {
    this.#lines ??= [];
    this.#lines.push(value);
    this.#linesChars += value.length + 1;
  }

  /** The data of the event, of which `first` is the first line. */
  #joined(first: string, lines: string[]): string {
    this.#lines = undefined;
    this.#linesChars = 0;
    return `${first}\n${lines.join('\n')}`;
  }

  #withinBound(extra: number): boolean {
    const chars = (this.#data === undefined ? 0 : this.#data.length) + this.#linesChars + extra;
    const isLong = this.#lines !== undefined && this.#lines.length >= limits.stream_frame_lines_max;
    if (chars <= this.#frameCharsMax && !isLong) return true;
    this.#failure = new UpstreamError(
      'invalid_response',
      isLong
        ? `The upstream sent an event of more than ${limits.stream_frame_lines_max} lines.`
        : 'The upstream sent an event larger than this service reads.',
    );
    return false;
  }

  #takeText(text: string, frames: Frame[]): void {
    let from = 0;
    if (this.#skipLineFeed) {
      if (text.charCodeAt(0) === LF) from = 1;
      this.#skipLineFeed = false;
    }
    let cr = text.indexOf('\r', from);
    let lf = text.indexOf('\n', from);
    for (;;) {
      // A text with one kind of line end is searched for the other only once.
      if (lf !== -1 && lf < from) lf = text.indexOf('\n', from);
      let end = lf;
      let next = end + 1;
      if (cr !== -1 && (end === -1 || cr < end)) {
        end = cr;
        next = cr + 1;
        if (next === text.length) this.#skipLineFeed = true;
        else if (text.charCodeAt(next) === LF) next += 1;
        cr = text.indexOf('\r', next);
      }
      if (end === -1) break;
      const chars = this.#partial.length + end - from;
      // The empty line that ends an event of one line is within the bound, as its line was.
      const isShort =
        this.#data === undefined ? chars <= this.#frameCharsMax : chars === 0 && this.#lines === undefined;
      if (!isShort && !this.#withinBound(chars)) return;
      const line = text.slice(from, end);
      if (this.#partial.length === 0) this.#takeLine(line, frames);
      else {
        const whole = this.#partial + line;
        this.#partial = '';
        this.#takeLine(whole, frames);
      }
      from = next;
    }
    if (from < text.length) {
      if (!this.#withinBound(this.#partial.length + text.length - from)) return;
      this.#partial += from === 0 ? text : text.slice(from);
    }
  }

  #decode(bytes: Uint8Array, isLast: boolean): string {
    let whole = bytes;
    if (this.#held.length > 0) {
      whole = Buffer.concat([this.#held, bytes]);
      this.#held = EMPTY;
    }
    const endsInAscii = whole.length > 0 && whole[whole.length - 1]! < 0x80;
    const complete = isLast || endsInAscii ? whole.length : completeLength(whole);
    // A copy: the reader may reuse its buffer.
    if (complete < whole.length) this.#held = Uint8Array.prototype.slice.call(whole, complete);
    const buffer = Buffer.isBuffer(whole) ? whole : Buffer.from(whole.buffer, whole.byteOffset, whole.byteLength);
    const text = buffer.toString('utf8', 0, complete);
    if (!this.#atStart || text.length === 0) return text;
    this.#atStart = false;
    return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  }

  push(bytes: Uint8Array): Frame[] {
    if (this.#failure !== undefined) throw this.#failure;
    const frames: Frame[] = [];
    const text = this.#decode(bytes, false);
    if (text.length > 0) this.#takeText(text, frames);
    // Frames before the error are part of the answer: return them, and throw on the next call.
    if (this.#failure !== undefined && frames.length === 0) throw this.#failure;
    return frames;
  }

  end(): Frame[] {
    if (this.#failure !== undefined) throw this.#failure;
    const frames: Frame[] = [];
    const text = this.#decode(EMPTY, true);
    if (text.length > 0) this.#takeText(text, frames);
    if (this.#failure !== undefined) throw this.#failure;
    const last = this.#partial;
    this.#partial = '';
    if (last.length > 0) this.#takeLine(last, frames);
    this.#takeLine('', frames);
    if (this.#stray.length > 0 && (!this.#sawData || isJson(this.#stray))) {
      frames.push({ event: undefined, data: this.#stray });
    }
    return frames;
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * The number of bytes that end on a character boundary. A split before a lead byte never changes the result of UTF-8 decoding,
 * even if the sequence is invalid.
 */
function completeLength(bytes: Uint8Array): number {
  const length = bytes.length;
  for (let back = 1; back <= 3 && back <= length; back += 1) {
    const byte = bytes[length - back]!;
    if (byte < 0x80) return length;
    if (byte >= 0xc0) {
      const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return needed > back ? length - back : length;
    }
  }
  return length;
}
