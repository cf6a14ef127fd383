import { limits } from '../limits.ts';
import { flacFrameSamples } from './flac.ts';
import { opusPacketSeconds } from './opus.ts';
import { STEP_PIECES, type Steps } from './steps.ts';
import { longModes, type VorbisSetup, vorbisBlock } from './vorbis.ts';

/** One logical stream of a file. Its packets are added in order. */
interface Stream {
  codec: 'opus' | 'vorbis' | 'flac' | undefined;
  /** Samples per second, the unit of positions. */
  rate: number;
  /** Samples to skip before the audio (RFC 7845, section 4.2). */
  pre_skip: number;
  vorbis: VorbisSetup | undefined;
  packets: number;
  /** The pieces of the current header packet, up to a bound, and its full length. */
  header: Buffer[];
  header_bytes: number;
  /** The offset of the current audio packet, and the length of its first contiguous piece; negative if there is none. */
  at: number;
  size: number;
  /** Counted from packets. */
  samples: number;
  last_block: number;
  /** The end position of the last page. */
  end: number;
}

function newStream(): Stream {
  return {
    codec: undefined,
    rate: 0,
    pre_skip: 0,
    vorbis: undefined,
    packets: 0,
    header: [],
    header_bytes: 0,
    at: -1,
    size: 0,
    samples: 0,
    last_block: 0,
    end: 0,
  };
}

/** `OggS` */
const OGGS = 0x4f676753;
const HEADERS = { opus: 2, vorbis: 3, flac: 1 };
/** The last page may shorten its last block: within this difference, its position is more exact than the packets. */
const LAST_BLOCK_S = 0.2;

function readFirstHeader(stream: Stream, packet: Buffer): void {
  if (packet.toString('latin1', 0, 8) === 'OpusHead' && packet.length >= 12) {
    stream.codec = 'opus';
    stream.rate = 48_000;
    stream.pre_skip = packet.readUInt16LE(10);
  } else if (packet.toString('latin1', 0, 7) === '\x01vorbis' && packet.length >= 29) {
    stream.codec = 'vorbis';
    stream.rate = packet.readUInt32LE(12);
    const sizes = packet[28] ?? 0;
    stream.vorbis = { blocks: [1 << (sizes & 15), 1 << (sizes >> 4)], long_modes: undefined };
  } else if (packet.toString('latin1', 0, 5) === '\x7fFLAC' && packet.length >= 30) {
    stream.codec = 'flac';
    stream.rate = packet.readUIntBE(27, 3) >> 4;
  }
}

/** The samples that a packet adds, by its first bytes. Packets are not copied: there may be millions. */
function packetSamples(stream: Stream, bytes: Buffer): number {
  const { at, size, codec } = stream;
  if (size === 0) return 0;
  const first = bytes[at] ?? 0;
  if (codec === 'opus') return opusPacketSeconds(first, size > 1 ? (bytes[at + 1] ?? 0) : 0) * stream.rate;
  if (codec === 'flac') return first === 0xff ? flacFrameSamples(bytes, at) : 0;
  const block = stream.vorbis === undefined ? 0 : vorbisBlock(first, stream.vorbis);
  // Blocks overlap by half: the first alone gives no samples (Vorbis I, section 4.3.8).
  const added = block === 0 || stream.last_block === 0 ? 0 : (stream.last_block + block) / 4;
  if (block !== 0) stream.last_block = block;
  return added;
}

function endHeader(stream: Stream, header: Buffer): void {
  if (stream.packets === 1) readFirstHeader(stream, header);
  else if (stream.vorbis && stream.packets === HEADERS.vorbis) stream.vorbis.long_modes = longModes(header);
}

/** Adds a piece of a packet. `isLast` marks the packet's last piece. */
function addPiece(stream: Stream, bytes: Buffer, from: number, length: number, isLast: boolean): void {
  const { codec, packets } = stream;
  if (packets === 0 || (codec !== undefined && packets < HEADERS[codec])) {
    // Joined once, at the end: there may be as many pieces as pages.
    stream.header_bytes += length;
    if (stream.header_bytes <= limits.sound_header_bytes_max) stream.header.push(bytes.subarray(from, from + length));
    if (!isLast) return;
    stream.packets += 1;
    if (stream.header_bytes <= limits.sound_header_bytes_max) endHeader(stream, Buffer.concat(stream.header));
    stream.header = [];
    stream.header_bytes = 0;
    return;
  }
  if (codec === undefined) return;
  if (stream.at < 0) {
    stream.at = from;
    stream.size = length;
  }
  if (!isLast) return;
  stream.packets += 1;
  stream.samples += packetSamples(stream, bytes);
  stream.at = -1;
}

function secondsOf({ codec, rate, samples, pre_skip: preSkip, end }: Stream): number {
  if (codec === undefined || rate === 0 || samples === 0) return 0;
  const counted = Math.max(0, samples - preSkip) / rate;
  const fromPosition = (end - preSkip) / rate;
  return fromPosition > 0 && Math.abs(fromPosition - counted) < LAST_BLOCK_S ? fromPosition : counted;
}

/**
 * The seconds of the audio in an Ogg file (RFC 3533): Opus, Vorbis and FLAC, by counting packets. Consecutive streams add up.
 * Undefined if there are more streams or packets than audio files have.
 */
export function* oggSeconds(bytes: Buffer): Steps<number | undefined> {
  let seconds = 0;
  const streams = new Map<number, Stream>();
  let junkBytes = 0;
  let packets = 0;
  let stepEnd = STEP_PIECES;
  for (let at = 0; at >= 0 && at + 27 <= bytes.length; ) {
    if (bytes.readUInt32BE(at) !== OGGS) {
      const last = at + 1 + limits.sound_junk_bytes_max - junkBytes;
      const next = bytes.subarray(at + 1, last).indexOf('OggS', 0, 'latin1');
      if (next < 0 && last >= bytes.length) break;
      junkBytes += next + 1;
      if (next < 0 || junkBytes > limits.sound_junk_bytes_max) return undefined;
      at += 1 + next;
      continue;
    }
    const serial = bytes.readUInt32LE(at + 14);
    const segments = bytes[at + 26] ?? 0;
    packets += segments + 1;
    if (packets > limits.sound_packets_max) return undefined;
    if (packets > stepEnd) {
      stepEnd = packets + STEP_PIECES;
      yield;
    }
    let stream = streams.get(serial);
    if (((bytes[at + 5] ?? 0) & 2) !== 0 || stream === undefined) {
      if (stream !== undefined) seconds += secondsOf(stream);
      if (streams.size >= limits.sound_streams_max) return undefined;
      stream = newStream();
      streams.set(serial, stream);
    }
    let from = at + 27 + segments;
    let length = 0;
    for (let index = 0; index < segments; index += 1) {
      const lacing = bytes[at + 27 + index] ?? 0;
      length += lacing;
      if (lacing === 255 && index < segments - 1) continue;
      addPiece(stream, bytes, from, length, lacing < 255);
      from += length;
      length = 0;
    }
    const position = bytes.readInt32LE(at + 10) * 2 ** 32 + bytes.readUInt32LE(at + 6);
    if (position > 0) stream.end = position;
    at = from;
  }
  for (const stream of streams.values()) seconds += secondsOf(stream);
  return seconds === 0 ? undefined : seconds;
}
