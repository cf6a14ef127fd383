import { limits } from '../limits.ts';
import { AAC_FRAME_SAMPLES, AAC_RATES } from './aac.ts';

/** A box's name as the number in the file: comparing numbers is fast, and there may be many boxes. */
const codeOf = (name: string): number => Buffer.from(name, 'latin1').readUInt32BE(0);

/** Boxes whose contents are read; all others are skipped. */
const CONTAINERS: ReadonlySet<number> = new Set(
  ['moov', 'trak', 'mdia', 'minf', 'stbl', 'mvex', 'moof', 'traf'].map(codeOf),
);

/** The facts of one track. */
interface Track {
  id: number;
  is_sound: boolean;
  timescale: number;
  /** In units of `timescale`. */
  duration: number;
  /** Samples, which are frames in audio tracks, in the movie and its fragments. */
  frames: number;
  /** The seconds of an AAC frame. */
  frame_s: number;
  default_duration: number;
}

function newTrack(id: number): Track {
  return { id, is_sound: false, timescale: 0, duration: 0, frames: 0, frame_s: 0, default_duration: 0 };
}

/** The seconds of an AAC frame by the decoder's configuration, else by the entry's sample rate; 0 for other codecs (ISO 14496-14, 5.6). */
function aacFrameSeconds(entry: Buffer): number {
  if (entry.length < 36 || entry.toString('latin1', 4, 8) !== 'mp4a') return 0;
  const esds = entry.indexOf('esds', 36, 'latin1');
  // Tag 5 is the decoder's configuration; its length takes one byte, or four if the first three announce more.
  for (let at = esds < 0 ? entry.length : esds + 8; at + 7 < entry.length; at += 1) {
    if (entry[at] !== 5) continue;
    const config = entry[at + 1] === 0x80 ? at + 5 : at + 2;
    const audioConfig = entry.length >= config + 2 ? entry.readUInt16BE(config) : 0;
    const rate = AAC_RATES[(audioConfig >> 7) & 15];
    if (audioConfig >> 11 === 2 && rate !== undefined) return AAC_FRAME_SAMPLES / rate;
  }
  const rate = entry.readUInt16BE(32);
  return rate === 0 ? 0 : AAC_FRAME_SAMPLES / rate;
}

/** Adds a table of sample durations to the track. Returns the number of its entries; more than `entriesMax` are not read. */
function sumTable(box: Buffer, track: Track, entriesMax: number): number {
  const entries = Math.min(box.readUInt32BE(4), Math.floor((box.length - 8) / 8));
  if (entries > entriesMax) return entries;
  for (let index = 0; index < entries; index += 1) {
    track.frames += box.readUInt32BE(8 + index * 8);
    track.duration += box.readUInt32BE(8 + index * 8) * box.readUInt32BE(12 + index * 8);
  }
  return entries;
}

/** Adds a fragment's run of samples (ISO 14496-12, 8.8.8). Returns the number of listed entries; more than `entriesMax` are not read. */
function sumRun(box: Buffer, track: Track, entriesMax: number): number {
  const flags = box.readUInt32BE(0) & 0xffffff;
  const count = box.readUInt32BE(4);
  track.frames += count;
  if ((flags & 0x100) === 0) {
    track.duration += count * track.default_duration;
    return 0;
  }
  let stride = 0;
  for (let flag = 0x100; flag <= 0x800; flag *= 2) if ((flags & flag) !== 0) stride += 4;
  let at = 8 + (flags & 1 ? 4 : 0) + (flags & 4 ? 4 : 0);
  const entries = Math.min(count, Math.max(0, Math.floor((box.length - at) / stride)));
  if (entries > entriesMax) return entries;
  for (let index = 0; index < entries; index += 1, at += stride) track.duration += box.readUInt32BE(at);
  return entries;
}

/** The default duration in a fragment's header, after the optional fields that its flags announce (ISO 14496-12, 8.8.7). */
function fragmentDefault(box: Buffer): number | undefined {
  const flags = box.readUInt32BE(0) & 0xffffff;
  const at = 8 + (flags & 1 ? 8 : 0) + (flags & 2 ? 4 : 0);
  return (flags & 8) !== 0 && at + 4 <= box.length ? box.readUInt32BE(at) : undefined;
}

function setDefault(defaults: Map<number, number>, box: Buffer): void {
  if (defaults.size < limits.sound_streams_max) defaults.set(box.readUInt32BE(4), box.readUInt32BE(12));
}

/** Readers of boxes, which must be called in file order, and the tracks that they collect. */
function createReader() {
  const tracks = new Map<number, Track>();
  const defaults = new Map<number, number>();
  let track = newTrack(0);
  let entriesLeft = limits.sound_table_entries_max;
  const readers: Record<string, { bytes_min: number; read(box: Buffer): void }> = {
    tkhd: {
      bytes_min: 24,
      read(box) {
        track = newTrack(box.readUInt32BE(box[0] === 1 ? 20 : 12));
        if (tracks.size < limits.sound_streams_max) tracks.set(track.id, track);
      },
    },
    mdhd: {
      bytes_min: 24,
      read(box) {
        track.timescale = box.readUInt32BE(box[0] === 1 ? 20 : 12);
      },
    },
    hdlr: {
      bytes_min: 12,
      read(box) {
        track.is_sound ||= box.toString('latin1', 8, 12) === 'soun';
      },
    },
    stsd: {
      bytes_min: 16,
      read(box) {
        track.frame_s = aacFrameSeconds(box.subarray(8, limits.sound_entry_bytes_max));
      },
    },
    stts: {
      bytes_min: 8,
      read(box) {
        entriesLeft -= sumTable(box, track, entriesLeft);
      },
    },
    trex: { bytes_min: 16, read: (box) => setDefault(defaults, box) },
    tfhd: {
      bytes_min: 8,
      read(box) {
        const id = box.readUInt32BE(4);
        track = tracks.get(id) ?? newTrack(id);
        track.default_duration = fragmentDefault(box) ?? defaults.get(id) ?? 0;
      },
    },
    trun: {
      bytes_min: 8,
      read(box) {
        entriesLeft -= sumRun(box, track, entriesLeft);
      },
    },
  };
  const byCode = new Map(Object.entries(readers).map(([name, reader]) => [codeOf(name), reader]));
  return { tracks, readers: byCode, hasTooMany: () => entriesLeft < 0 };
}

/**
 * The seconds of the audio in an MP4 file (ISO 14496-12), fragmented or not, by the samples that its tables list. AAC samples have a fixed
 * length, which no table can shorten. Undefined if there are more boxes or table entries than audio files have.
 */
export function mp4Seconds(bytes: Buffer): number | undefined {
  const { tracks, readers, hasTooMany } = createReader();
  for (let at = 0, boxes = 0; at + 8 <= bytes.length; boxes += 1) {
    if (boxes > limits.sound_boxes_max) return undefined;
    const sizeField = bytes.readUInt32BE(at);
    const name = bytes.readUInt32BE(at + 4);
    const isLong = sizeField === 1 && at + 16 <= bytes.length;
    const head = isLong ? 16 : 8;
    // 0 means to the end of the file.
    const size = sizeField === 0 ? bytes.length - at : isLong ? Number(bytes.readBigUInt64BE(at + 8)) : sizeField;
    if (size < head) break;
    const reader = readers.get(name);
    // Reading a box takes longer than skipping it, so it counts twice.
    if (reader !== undefined) boxes += 1;
    if (reader !== undefined && Math.min(size, bytes.length - at) >= head + reader.bytes_min) {
      reader.read(bytes.subarray(at + head, at + size));
      if (hasTooMany()) return undefined;
    }
    at += CONTAINERS.has(name) ? head : size;
  }
  let seconds = 0;
  for (const { is_sound: isSound, timescale, duration, frames, frame_s: frameS } of tracks.values()) {
    if (!isSound) continue;
    const listed = timescale === 0 ? 0 : duration / timescale;
    const counted = frames * frameS;
    // Tables may leave out the samples that an encoder added, but not more.
    seconds = Math.max(seconds, counted - listed > 4 * frameS ? counted : listed);
  }
  return seconds === 0 ? undefined : seconds;
}
