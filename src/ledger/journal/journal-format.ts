import { crc32 } from 'node:zlib';
import type { JournalRecord } from '../records.ts';
import { type AttemptLine, attemptIn, wholeAttemptLine } from './attempt-line.ts';
import type { ContextFields } from './record-context.ts';
import {
  type ChargedValues,
  chargedOf,
  chargesText,
  type GenerationValues,
  generationOf,
  type OpenValues,
  openOf,
  recordText,
} from './record-values.ts';

/**
 * Raised when older readers would misread; part of every `S` record. In 1, the record of an attempt included an (empty) end.
 * Until 3, records and charges were objects, and the id of an attempt or outcome was stored beside its record as well. Until
 * 4, each attempt had the whole beginning of its record; since then, what calls have in common is written once in a file.
 */
export const JOURNAL_FORMAT = 4;

/** Eight hex digits of length, a space, eight of CRC-32, a space; then the JSON and a line feed. */
const HEADER_BYTES = 18;
const NEWLINE = 10;
const SPACE = 32;

/** Writes eight lower-case hex digits. */
function putHex(bytes: Buffer, at: number, value: number): void {
  for (let digit = 7, rest = value; digit >= 0; digit--, rest >>>= 4) {
    const nibble = rest & 15;
    bytes[at + digit] = nibble < 10 ? 48 + nibble : 87 + nibble;
  }
}

/**
 * Lines gathered for one write. Each is encoded once, directly into the buffer. JSON never contains a line feed, so a reader
 * finds the next line even after a damaged one.
 */
export class LineBuffer {
  #bytes = Buffer.allocUnsafe(64 * 1024);
  /** Gathered bytes. */
  used = 0;

  /** Adds a line of JSON, which is given in parts: a text that is joined first is copied once more. */
  add(...parts: readonly string[]): void {
    let chars = 0;
    for (let at = 0; at < parts.length; at += 1) chars += parts[at]!.length;
    // A UTF-16 unit takes at most three bytes in UTF-8.
    const room = HEADER_BYTES + chars * 3 + 1;
    if (this.used + room > this.#bytes.length) {
      const larger = Buffer.allocUnsafe((this.used + room) * 2);
      this.#bytes.copy(larger, 0, 0, this.used);
      this.#bytes = larger;
    }
    const start = this.used + HEADER_BYTES;
    const bytes = this.#bytes;
    let length = 0;
    for (let at = 0; at < parts.length; at += 1) length += bytes.write(parts[at]!, start + length);
    putHex(bytes, this.used, length);
    bytes[this.used + 8] = SPACE;
    putHex(bytes, this.used + 9, crc32(bytes.subarray(start, start + length)));
    bytes[this.used + 17] = SPACE;
    bytes[start + length] = NEWLINE;
    this.used = start + length + 1;
  }

  /** The gathered bytes, valid until the next `add`; empties the buffer. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.used);
    this.used = 0;
    return taken;
  }
}

/** The line of an outcome in parts, from the texts that the store keeps too. */
export function outcomeLine(charges: string, record: string): string[] {
  return ['{"t":"O","charges":', charges, ',"record":', record, '}'];
}

/** The JSON of a record, without length and checksum; readable without any other. */
export function lineOf(entry: JournalRecord): string {
  switch (entry.t) {
    case 'A':
      return wholeAttemptLine(entry);
    case 'O':
      return outcomeLine(chargesText(entry.charges ?? []), recordText(entry.record)).join('');
    default:
      return JSON.stringify(entry);
  }
}

/** The record in a line of this format or an older one. `contexts`: see `attemptIn`. */
function recordIn(line: Buffer, contexts: Map<number, ContextFields>): JournalRecord | undefined {
  const entry = JSON.parse(line.toString()) as JournalRecord | AttemptLine;
  if ('v' in entry) return attemptIn(entry, contexts);
  if (entry.t === 'A' && Array.isArray(entry.record)) {
    const record = openOf(entry.record as unknown as OpenValues);
    return { ...entry, id: record.id, record };
  }
  if (entry.t === 'O' && Array.isArray(entry.record)) {
    const record = generationOf(entry.record as unknown as GenerationValues);
    const charges = (entry.charges as unknown as ChargedValues[]).map(chargedOf);
    return { t: 'O', id: record.id, charges, record };
  }
  return entry;
}

interface Line {
  json: Buffer;
  end: number;
  terminated: boolean;
}

/** The line that starts at `at`; undefined if none does. */
function readLine(bytes: Buffer, at: number): Line | undefined {
  const start = at + HEADER_BYTES;
  const header = bytes.toString('latin1', at, start);
  if (!/^[0-9a-f]{8} [0-9a-f]{8} $/.test(header)) return undefined;
  const end = start + Number.parseInt(header.slice(0, 8), 16);
  if (end > bytes.length) return undefined;
  const json = bytes.subarray(start, end);
  if (crc32(json) !== Number.parseInt(header.slice(9, 17), 16)) return undefined;
  return { json, end, terminated: bytes[end] === NEWLINE };
}

/** The offset of the kind in a line: `{"t":"O"`. */
const KIND_BYTE = 6;

/**
 * Reads the records of a segment, of some kinds or of all. A torn end, as a crash leaves it, is dropped. Damage that is
 * followed by a valid line has another cause: `damaged_at` is the offset of the first. `whole_bytes`: where the last record ends.
 */
export function scanSegment(
  bytes: Buffer,
  kinds?: readonly JournalRecord['t'][],
): { records: JournalRecord[]; damaged_at: number | undefined; whole_bytes: number } {
  const records: JournalRecord[] = [];
  const contexts = new Map<number, ContextFields>();
  let wholeBytes = 0;
  let suspect: number | undefined;
  let damagedAt: number | undefined;
  for (let at = 0; at < bytes.length; ) {
    const line = readLine(bytes, at);
    const isWhole = line?.terminated === true;
    const isTorn = line !== undefined && !line.terminated && line.end === bytes.length;
    if (line !== undefined && !isTorn) damagedAt ??= suspect;
    // A valid line with garbage in place of its line feed is torn as well.
    if (!isWhole) suspect ??= at;
    if (isWhole) {
      suspect = undefined;
      wholeBytes = line.end + 1;
      const kind = String.fromCharCode(line.json[KIND_BYTE] ?? 0) as JournalRecord['t'];
      if (kinds === undefined || kinds.includes(kind)) {
        const record = recordIn(line.json, contexts);
        if (record === undefined) damagedAt ??= at;
        else records.push(record);
      }
    }
    const newline = line?.end ?? bytes.indexOf(NEWLINE, at);
    if (newline === -1) break;
    at = newline + 1;
  }
  return { records, damaged_at: damagedAt, whole_bytes: wholeBytes };
}

/**
 * As `scanSegment`, for segments that a restart needs: throws on damage, with a message that names file and offset.
 * `whole_bytes`: where the last record ends.
 */
export function readSegment(
  bytes: Buffer,
  file: string,
  kinds?: readonly JournalRecord['t'][],
): { records: JournalRecord[]; whole_bytes: number } {
  const { records, damaged_at, whole_bytes } = scanSegment(bytes, kinds);
  if (damaged_at === undefined) return { records, whole_bytes };
  throw new Error(
    `The journal ${file} is damaged at byte ${damaged_at}, and not at the end, where a crash would tear it. ` +
      'Restore the file, or move it away to start without the requests it records.',
  );
}
