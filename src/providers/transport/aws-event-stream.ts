import { crc32 } from 'node:zlib';
import { type Frame, UpstreamError } from '../dialect.ts';
import type { Framer } from '../framer.ts';

// Layout of a message (https://docs.aws.amazon.com/transcribe/latest/dg/event-stream.html, the same in all AWS services):
// total length, headers' length, checksum of these two, headers, payload, checksum of all before it.
const PRELUDE_BYTES = 12;
const CHECKSUM_BYTES = 4;
/** Bytes of a header's value by its type. -1 for byte arrays and strings, which are preceded by their length. */
const VALUE_BYTES = [0, 0, 1, 2, 4, 8, -1, -1, 8, 16];
const STRING = 7;
const EMPTY = Buffer.alloc(0);

/**
 * Splits the binary event stream of AWS into frames. Both checksums are checked; a length is used only after its own checksum matches. A
 * frame's `event` is the type of the event or exception, its `data` the payload's text.
 */
export function createAwsEventStreamFramer(messageBytesMax: number): Framer {
  // The bytes of former reads: the first `heldBytes` of a buffer that grows by doubling, so that a large message in
  // small reads is copied a bounded number of times.
  let held = EMPTY;
  let heldBytes = 0;
  let needed = PRELUDE_BYTES;
  let failure: UpstreamError | undefined;

  function append(bytes: Uint8Array): void {
    const sum = heldBytes + bytes.length;
    if (sum > held.length) {
      const grown = Buffer.allocUnsafe(Math.max(sum, 2 * held.length));
      held.copy(grown, 0, 0, heldBytes);
      held = grown;
    }
    held.set(bytes, heldBytes);
    heldBytes = sum;
  }

  /** Reads the complete messages and keeps a copy of the rest: the reader may reuse its buffer. */
  function readMessages(bytes: Buffer, frames: Frame[]): void {
    let from = 0;
    needed = PRELUDE_BYTES;
    while (bytes.length - from >= PRELUDE_BYTES) {
      const total = totalLength(bytes.subarray(from, from + PRELUDE_BYTES), messageBytesMax);
      if (bytes.length - from < total) {
        needed = total;
        break;
      }
      frames.push(readMessage(bytes.subarray(from, from + total)));
      from += total;
    }
    held = Buffer.from(bytes.subarray(from));
    heldBytes = held.length;
  }

  return {
    push(bytes) {
      if (failure !== undefined) throw failure;
      const frames: Frame[] = [];
      const isFirst = heldBytes === 0;
      if (!isFirst) append(bytes);
      if (!isFirst && heldBytes < needed) return frames;
      const all = isFirst ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length) : held.subarray(0, heldBytes);
      try {
        readMessages(all, frames);
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error;
        failure = error;
        held = EMPTY;
      }
      // Frames before the error are part of the answer: return them, and throw on the next call.
      if (failure !== undefined && frames.length === 0) throw failure;
      return frames;
    },
    end() {
      if (failure !== undefined) throw failure;
      // The remaining bytes are an incomplete message: the decoder knows whether its answer is complete.
      return [];
    },
  };
}

function broken(reason: string): UpstreamError {
  return new UpstreamError('invalid_response', `The upstream sent a broken event stream: ${reason}.`);
}

function totalLength(prelude: Buffer, messageBytesMax: number): number {
  if (crc32(prelude.subarray(0, 8)) !== prelude.readUInt32BE(8)) throw broken('the checksum of a length is wrong');
  const total = prelude.readUInt32BE(0);
  if (total > messageBytesMax) {
    throw new UpstreamError('invalid_response', 'The upstream sent an event larger than this service reads.');
  }
  if (total < PRELUDE_BYTES + prelude.readUInt32BE(4) + CHECKSUM_BYTES) throw broken('the lengths do not fit');
  return total;
}

function readMessage(message: Buffer): Frame {
  const end = message.length - CHECKSUM_BYTES;
  if (crc32(message.subarray(0, end)) !== message.readUInt32BE(end)) throw broken('the checksum of an event is wrong');
  const headersEnd = PRELUDE_BYTES + message.readUInt32BE(4);
  const headers = readHeaders(message.subarray(PRELUDE_BYTES, headersEnd));
  const payload = message.toString('utf8', headersEnd, end);
  switch (headers.get(':message-type')) {
    case 'exception':
      return { event: headers.get(':exception-type'), data: payload, failure: true };
    case 'error':
      return {
        event: headers.get(':error-code'),
        data: JSON.stringify({ message: headers.get(':error-message') ?? payload }),
        failure: true,
      };
    default:
      return { event: headers.get(':event-type'), data: payload };
  }
}

/** The headers with string values; others are skipped. */
function readHeaders(bytes: Buffer): Map<string, string> {
  const headers = new Map<string, string>();
  let at = 0;
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw broken('a header is longer than all headers');
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const name = take(take(1).readUInt8()).toString('utf8');
    const type = take(1).readUInt8();
    const size = VALUE_BYTES[type];
    if (size === undefined) throw broken('a header has an unknown type');
    const value = take(size === -1 ? take(2).readUInt16BE() : size);
    if (type === STRING) headers.set(name, value.toString('utf8'));
  }
  return headers;
}
