import { limits } from '../limits.ts';
import { STEP_PIECES, type Steps } from './steps.ts';

/** CRC-8 of a frame's header: polynomial x^8 + x^2 + x + 1 (RFC 9639, section 9.1.8). */
const CRC8 = Uint8Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = ((crc << 1) ^ (crc & 0x80 ? 0x07 : 0)) & 0xff;
  return crc;
});

/** Samples of a block by its code (RFC 9639, table 14); codes 6 and 7 store the count after the frame's number. */
function blockSamples(code: number, bytes: Buffer, at: number): number {
  if (code === 1) return 192;
  if (code <= 5) return 576 << (code - 2);
  if (code === 6) return (bytes[at] ?? 0) + 1;
  if (code === 7) return (((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)) + 1;
  return 256 << (code - 8);
}

/** The samples of the FLAC frame whose header is at this offset; 0 if there is no valid header. */
export function flacFrameSamples(bytes: Buffer, at: number): number {
  const third = bytes[at + 2] ?? 0;
  const code = third >> 4;
  const rateCode = third & 15;
  if (code === 0 || rateCode === 15) return 0;
  // The frame's number, coded like a character of UTF-8.
  const lead = bytes[at + 4] ?? 0xff;
  const numberBytes = lead < 0x80 ? 1 : Math.clz32(~(lead << 24));
  if (numberBytes > 7 || (lead >= 0x80 && lead < 0xc0)) return 0;
  const sizeAt = at + 4 + numberBytes;
  const rateAt = sizeAt + (code === 6 ? 1 : code === 7 ? 2 : 0);
  const end = rateAt + (rateCode === 12 ? 1 : rateCode === 13 || rateCode === 14 ? 2 : 0);
  if (end >= bytes.length) return 0;
  let crc = 0;
  for (let index = at; index < end; index += 1) crc = CRC8[crc ^ (bytes[index] ?? 0)] ?? 0;
  return crc === bytes[end] ? blockSamples(code, bytes, sizeAt) : 0;
}

/**
 * The seconds of a FLAC stream, by counting its frames: the sample count at its start is not trusted, and may be missing. A frame is
 * recognised by the fields that all headers of a stream share and by its checksum. Undefined if there is no frame.
 */
export function* flacSeconds(bytes: Buffer, start: number): Steps<number | undefined> {
  let at = start + 4;
  let rate = 0;
  for (let isLast = false, blocks = 0; !isLast; blocks += 1) {
    if (at + 4 > bytes.length || blocks > limits.sound_tags_max) return undefined;
    const head = bytes.readUInt32BE(at);
    isLast = head >>> 31 === 1;
    if (((head >>> 24) & 0x7f) === 0 && at + 18 <= bytes.length) rate = bytes.readUIntBE(at + 14, 3) >> 4;
    at += 4 + (head & 0xffffff);
  }
  if (rate === 0 || at + 5 > bytes.length) return undefined;
  const sync = bytes.readUInt16BE(at);
  const shared = bytes.readUInt16BE(at + 2) & 0x0f0e;
  if ((sync & 0xfffe) !== 0xfff8) return undefined;
  let samples = 0;
  let falseStarts = 0;
  const second = sync & 0xff;
  let candidates = 0;
  for (; at >= 0 && at + 5 < bytes.length; at = bytes.indexOf(0xff, at + 1)) {
    candidates += 1;
    if (candidates > limits.sound_looks_max) return undefined;
    if (candidates % STEP_PIECES === 0) yield;
    if (bytes[at + 1] !== second) continue;
    if ((bytes.readUInt16BE(at + 2) & 0x0f0e) !== shared) continue;
    const frameSamples = flacFrameSamples(bytes, at);
    if (frameSamples === 0) falseStarts += 1;
    if (falseStarts > limits.sound_false_starts_max) return undefined;
    samples += frameSamples;
  }
  return samples === 0 ? undefined : samples / rate;
}
