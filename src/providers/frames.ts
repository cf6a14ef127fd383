import { limits } from '../limits.ts';
import { createAwsEventStreamFramer } from './aws-event-stream.ts';
import { type ChatDialect, type Frame, UpstreamError } from './dialect.ts';

/** Cuts the bytes of one stream into frames. The same bytes in any split give the same frames. */
export interface Framer {
  /** Throws `UpstreamError` (`invalid_response`) for a frame over the bound, after the frames before it were handed out. */
  push(bytes: Uint8Array): Frame[];
  /** What the bytes hold when no more come: the last event, if its closing blank line is missing. */
  end(): Frame[];
}

/** Makes the framer of one stream. `frame_chars_max` bounds what one frame may hold in memory. */
export function createFramer(
  kind: ChatDialect['frames'],
  frame_chars_max: number = limits.stream_frame_bytes_max,
): Framer {
  return kind === 'sse' ? createEventStreamFramer(frame_chars_max) : createAwsEventStreamFramer(frame_chars_max);
}

const EMPTY = Buffer.alloc(0);
const LF = 10;
const SPACE = 32;

/**
 * The event stream of the WHATWG HTML standard, section 9.2.6, with two liberties: an event without its closing blank
 * line still counts at the end, and a body that is no event stream at all (a JSON error or an HTML page under a 200)
 * comes as one frame at the end, so that the dialect can tell what went wrong.
 */
function createEventStreamFramer(frame_chars_max: number): Framer {
  let held: Uint8Array = EMPTY;
  let atStart = true;
  let skipLineFeed = false;
  // The line that no read has ended yet. Concatenation is a rope, flattened once, so small reads cost no copying.
  let partial = '';
  let data: string | undefined;
  let event: string | undefined;
  let sawData = false;
  let stray = '';
  let failure: UpstreamError | undefined;

  function takeLine(line: string, frames: Frame[]): void {
    if (line.length === 0) {
      if (data !== undefined) frames.push({ event, data });
      data = undefined;
      event = undefined;
      return;
    }
    const colon = line.startsWith('data:') ? 4 : line.indexOf(':');
    if (colon === 0) return;
    if (colon === 4 && line.startsWith('data')) {
      const value = valueAfter(line, 4);
      data = data === undefined ? value : `${data}\n${value}`;
      sawData = true;
    } else if (colon === -1 && line === 'data') {
      data = data === undefined ? '' : `${data}\n`;
      sawData = true;
    } else if (colon === 5 && line.startsWith('event')) {
      event = valueAfter(line, 5) || undefined;
    } else if (!sawData && stray.length < limits.upstream_error_bytes_max) {
      stray += `${line}\n`;
    }
  }

  function withinBound(extra: number): boolean {
    if ((data === undefined ? 0 : data.length) + extra <= frame_chars_max) return true;
    failure = new UpstreamError('invalid_response', 'The upstream sent an event larger than this service reads.');
    return false;
  }

  function takeText(text: string, frames: Frame[]): void {
    let from = 0;
    if (skipLineFeed) {
      if (text.charCodeAt(0) === LF) from = 1;
      skipLineFeed = false;
    }
    let cr = text.indexOf('\r', from);
    for (;;) {
      let end = text.indexOf('\n', from);
      let next = end + 1;
      if (cr !== -1 && (end === -1 || cr < end)) {
        end = cr;
        next = cr + 1;
        if (next === text.length) skipLineFeed = true;
        else if (text.charCodeAt(next) === LF) next += 1;
        cr = text.indexOf('\r', next);
      }
      if (end === -1) break;
      if (!withinBound(partial.length + end - from)) return;
      const line = text.slice(from, end);
      if (partial.length === 0) takeLine(line, frames);
      else {
        const whole = partial + line;
        partial = '';
        takeLine(whole, frames);
      }
      from = next;
    }
    if (from < text.length) {
      if (!withinBound(partial.length + text.length - from)) return;
      partial += from === 0 ? text : text.slice(from);
    }
  }

  function decode(bytes: Uint8Array, isLast: boolean): string {
    let whole = bytes;
    if (held.length > 0) {
      whole = Buffer.concat([held, bytes]);
      held = EMPTY;
    }
    const complete = isLast ? whole.length : completeLength(whole);
    // A copy: the reader may use its buffer again.
    if (complete < whole.length) held = Uint8Array.prototype.slice.call(whole, complete);
    const buffer = Buffer.isBuffer(whole) ? whole : Buffer.from(whole.buffer, whole.byteOffset, whole.byteLength);
    const text = buffer.toString('utf8', 0, complete);
    if (!atStart || text.length === 0) return text;
    atStart = false;
    return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  }

  return {
    push(bytes) {
      if (failure !== undefined) throw failure;
      const frames: Frame[] = [];
      const text = decode(bytes, false);
      if (text.length > 0) takeText(text, frames);
      // Frames before the fault are the upstream's answer too: hand them out, fail on the next call.
      if (failure !== undefined && frames.length === 0) throw failure;
      return frames;
    },
    end() {
      if (failure !== undefined) throw failure;
      const frames: Frame[] = [];
      const text = decode(EMPTY, true);
      if (text.length > 0) takeText(text, frames);
      if (failure !== undefined) throw failure;
      const last = partial;
      partial = '';
      if (last.length > 0) takeLine(last, frames);
      takeLine('', frames);
      if (!sawData && stray.length > 0) frames.push({ event: undefined, data: stray });
      return frames;
    },
  };
}

function valueAfter(line: string, colon: number): string {
  return line.slice(line.charCodeAt(colon + 1) === SPACE ? colon + 2 : colon + 1);
}

/**
 * How many of the bytes end on a character boundary. A cut before a lead byte never changes what UTF-8 decoding gives,
 * also where the sequence turns out to be broken.
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
