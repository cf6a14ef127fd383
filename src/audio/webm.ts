import { limits } from '../limits.ts';
import { opusPacketSeconds } from './opus.ts';
import { STEP_PIECES, type Steps } from './steps.ts';

/** The elements that are read (RFC 9559, section 5.1). */
const ID = {
  segment: 0x18538067,
  info: 0x1549a966,
  timestamp_scale: 0x2ad7b1,
  tracks: 0x1654ae6b,
  track: 0xae,
  number: 0xd7,
  type: 0x83,
  codec: 0x86,
  default_duration: 0x23e383,
  cluster: 0x1f43b675,
  timestamp: 0xe7,
  simple_block: 0xa3,
  group: 0xa0,
  block: 0xa1,
} as const;
/** Elements whose contents are read, so that their length is not needed: live recordings do not have it. */
const ENTERED: ReadonlySet<number> = new Set([ID.segment, ID.info, ID.tracks, ID.track, ID.cluster, ID.group]);
const SOUND = 2;

interface Track {
  is_sound: boolean;
  is_opus: boolean;
  /** The seconds of one frame; 0 if the file does not state it. */
  frame_s: number;
  /** The sum of Opus packets. */
  packets_s: number;
  first_s: number;
  /** The start of the last block, and its duration. */
  last_s: number;
  last_block_s: number;
}

function unsigned(bytes: Buffer, at: number, size: number): number {
  let value = 0;
  for (let index = at; index < at + Math.min(size, 8) && index < bytes.length; index += 1)
    value = value * 256 + (bytes[index] ?? 0);
  return value;
}

/** The bytes of a number whose first byte encodes its length (RFC 8794, section 4); 0 if it is invalid or truncated. */
function lengthAt(bytes: Buffer, at: number): number {
  const first = bytes[at] ?? 0;
  const length = Math.clz32(first) - 23;
  return first === 0 || at + length > bytes.length ? 0 : length;
}

/** The value of such a number. Its marker is removed first, since long numbers are not exact with it. Infinity if all bits are set: unknown. */
function valueAt(bytes: Buffer, at: number, length: number): number {
  const mask = 0xff >> length;
  let value = (bytes[at] ?? 0) & mask;
  let isUnknown = value === mask;
  for (let index = at + 1; index < at + length; index += 1) {
    const byte = bytes[index] ?? 0;
    isUnknown &&= byte === 0xff;
    value = value * 256 + byte;
  }
  return isUnknown ? Number.POSITIVE_INFINITY : value;
}

function addBlock(
  bytes: Buffer,
  at: number,
  end: number,
  clusterS: number,
  scaleS: number,
  tracks: Map<number, Track>,
): void {
  const numberBytes = lengthAt(bytes, at);
  const track = numberBytes === 0 ? undefined : tracks.get(valueAt(bytes, at, numberBytes));
  const head = at + numberBytes;
  if (!track?.is_sound || head + 4 > end) return;
  const atS = Math.max(0, clusterS + bytes.readInt16BE(head) * scaleS);
  const flags = bytes[head + 2] ?? 0;
  // Lacing puts several frames into one block; their count precedes them.
  const isLaced = (flags & 6) !== 0;
  const frames = isLaced ? (bytes[head + 3] ?? 0) + 1 : 1;
  const frameS =
    track.is_opus && !isLaced ? opusPacketSeconds(bytes[head + 3] ?? 0, bytes[head + 4] ?? 0) : track.frame_s;
  track.packets_s += frames * frameS;
  track.first_s = Math.min(track.first_s, atS);
  if (atS >= track.last_s) track.last_block_s = frames * frameS;
  track.last_s = Math.max(track.last_s, atS);
}

function secondsOf({
  is_sound: isSound,
  packets_s: packetsS,
  first_s: firstS,
  last_s: lastS,
  last_block_s: lastBlockS,
}: Track): number {
  if (!isSound || firstS === Number.POSITIVE_INFINITY) return 0;
  // A pause in a live recording has no packets, but a duration.
  return Math.max(packetsS, lastS - firstS + lastBlockS);
}

/**
 * The seconds of the audio in a WebM or Matroska file, by its blocks: the duration in its header is not trusted, and missing in live
 * recordings. Undefined if there are more elements than audio files have.
 */
export function* webmSeconds(bytes: Buffer): Steps<number | undefined> {
  const tracks = new Map<number, Track>();
  let scaleS = 0.001;
  let clusterS = 0;
  let track: Track | undefined;
  for (let at = 0, elements = 1; at < bytes.length; elements += 1) {
    if (elements % STEP_PIECES === 0) yield;
    if (elements > limits.sound_elements_max) return undefined;
    const idBytes = lengthAt(bytes, at);
    const sizeBytes = idBytes === 0 ? 0 : lengthAt(bytes, at + idBytes);
    if (sizeBytes === 0) break;
    const id = unsigned(bytes, at, idBytes);
    const size = valueAt(bytes, at + idBytes, sizeBytes);
    const from = at + idBytes + sizeBytes;
    if (id === ID.track) {
      track = {
        is_sound: false,
        is_opus: false,
        frame_s: 0,
        packets_s: 0,
        first_s: Number.POSITIVE_INFINITY,
        last_s: 0,
        last_block_s: 0,
      };
    }
    if (ENTERED.has(id)) {
      at = from;
      continue;
    }
    const end = Math.min(from + size, bytes.length);
    if (id === ID.timestamp_scale) scaleS = unsigned(bytes, from, end - from) / 1e9;
    else if (id === ID.timestamp) clusterS = unsigned(bytes, from, end - from) * scaleS;
    else if (id === ID.simple_block || id === ID.block) addBlock(bytes, from, end, clusterS, scaleS, tracks);
    else if (track !== undefined) {
      if (id === ID.number && tracks.size < limits.sound_streams_max)
        tracks.set(unsigned(bytes, from, end - from), track);
      else if (id === ID.type) track.is_sound = unsigned(bytes, from, end - from) === SOUND;
      else if (id === ID.codec) track.is_opus = bytes.toString('latin1', from, Math.min(end, from + 6)) === 'A_OPUS';
      else if (id === ID.default_duration) track.frame_s = unsigned(bytes, from, end - from) / 1e9;
    }
    if (size === Number.POSITIVE_INFINITY) break;
    at = end;
  }
  let seconds = 0;
  for (const one of tracks.values()) seconds = Math.max(seconds, secondsOf(one));
  return seconds === 0 ? undefined : seconds;
}
