import { limits } from '../limits.ts';
import { STEP_PIECES, type Steps } from './steps.ts';

/** Kilobits per second by the four bits of a header: MPEG-1 layers I to III, then MPEG-2 and 2.5 layer I, layers II and III (ISO 11172-3, 13818-3). */
const RATES_V1 = [
  [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
];
const RATES_V2 = [
  [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
  [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];
const SAMPLE_RATES = [44_100, 48_000, 32_000];

interface Frame {
  bytes: number;
  samples: number;
  rate: number;
  /** Version, layer and sample rate, which all frames of a stream share. */
  kind: number;
  /** The offset at which a layer III frame would hold an encoder's table (`Xing`, `Info`). */
  table_at: number;
}

function frameAt(bytes: Buffer, at: number): Frame | undefined {
  if (at + 4 > bytes.length || bytes[at] !== 0xff) return undefined;
  const second = bytes[at + 1] ?? 0;
  const third = bytes[at + 2] ?? 0;
  const version = (second >> 3) & 3; // 3: MPEG-1, 2: MPEG-2, 0: MPEG-2.5
  const layer = 4 - ((second >> 1) & 3);
  if ((second & 0xe0) !== 0xe0 || version === 1 || layer === 4) return undefined;
  const isV1 = version === 3;
  const kbits = (isV1 ? RATES_V1 : RATES_V2)[layer - 1]?.[third >> 4];
  const base = SAMPLE_RATES[(third >> 2) & 3];
  // A rate of 0 ("free") implies no frame length; current encoders do not write it.
  if (!kbits || base === undefined) return undefined;
  const rate = isV1 ? base : version === 2 ? base / 2 : base / 4;
  const padding = (third >> 1) & 1;
  const samples = layer === 1 ? 384 : layer === 3 && !isV1 ? 576 : 1152;
  const slot = layer === 1 ? 4 : 1;
  const length = (Math.floor(((samples / 8) * kbits * 1000) / rate / slot) + padding) * slot;
  const isMono = (bytes[at + 3] ?? 0) >> 6 === 3;
  const sideInfoBytes = isV1 ? (isMono ? 17 : 32) : isMono ? 9 : 17;
  return {
    bytes: length,
    samples,
    rate,
    kind: (second & 0xfe) * 4 + ((third >> 2) & 3),
    table_at: at + 4 + sideInfoBytes,
  };
}

/** The next offset that may be a header, without those that none can have; the end if there is none within `bytesMax`. */
function nextStart(bytes: Buffer, from: number, bytesMax: number): number {
  for (let at = from; at + 4 <= bytes.length && at - from <= bytesMax; at += 1) {
    if (bytes[at] !== 0xff) continue;
    const second = bytes[at + 1] ?? 0;
    const third = bytes[at + 2] ?? 0;
    if ((second & 0xe0) !== 0xe0 || (second & 0x18) === 0x08 || (second & 0x06) === 0) continue;
    if ((third & 0xf0) !== 0xf0 && (third & 0xf0) !== 0 && (third & 0x0c) !== 0x0c) return at;
  }
  return bytes.length;
}

/** An encoder's table in the first frame: the samples that it added before and after the audio. */
function readTable(bytes: Buffer, { table_at: tableAt }: Frame, at: number): { padding_samples: number } | undefined {
  const name = bytes.toString('latin1', tableAt, tableAt + 4);
  if (name === 'Xing' || name === 'Info') {
    const flags = bytes.length >= tableAt + 8 ? bytes.readUInt32BE(tableAt + 4) : 0;
    const lameAt =
      tableAt + 8 + (flags & 1 ? 4 : 0) + (flags & 2 ? 4 : 0) + (flags & 4 ? 100 : 0) + (flags & 8 ? 4 : 0);
    // LAME's extension: 12 bits each of delay and padding, 21 bytes into it.
    const hasLame =
      bytes.length >= lameAt + 24 && /^(?:LAME|Lavc|Lavf)/.test(bytes.toString('latin1', lameAt, lameAt + 4));
    const delayAndPadding = hasLame ? bytes.readUIntBE(lameAt + 21, 3) : 0;
    return { padding_samples: (delayAndPadding >> 12) + (delayAndPadding & 0xfff) };
  }
  return bytes.toString('latin1', at + 36, at + 40) === 'VBRI' ? { padding_samples: 0 } : undefined;
}

/**
 * The seconds of an MPEG audio stream, by counting its frames: the counts of an encoder's table are not trusted. Bytes between frames are
 * skipped, as decoders do; undefined if there are more of them than audio files have.
 */
export function* mp3Seconds(bytes: Buffer, start: number): Steps<number | undefined> {
  let seconds = 0;
  let frames = 0;
  let paddingS = 0;
  let kind: number | undefined;
  let isInStep = false;
  let falseStarts = 0;
  let junkBytes = 0;
  for (let at = start, pieces = 1; at + 4 <= bytes.length; pieces += 1) {
    if (pieces % STEP_PIECES === 0) yield;
    const frame = frameAt(bytes, at);
    const following = frame && frameAt(bytes, at + frame.bytes);
    // Out of step, two bytes that look like a start prove nothing: another frame or the end must follow.
    const isKnown = isInStep && frame !== undefined && frame.kind === kind;
    const isFollowed = following !== undefined && following.kind === frame?.kind;
    if (frame === undefined || !(isKnown || isFollowed || at + frame.bytes === bytes.length)) {
      isInStep = false;
      falseStarts += 1;
      const startAt = nextStart(bytes, at + 1, limits.sound_junk_bytes_max - junkBytes);
      junkBytes += startAt - at;
      if (falseStarts > limits.sound_false_starts_max || junkBytes > limits.sound_junk_bytes_max) return undefined;
      at = startAt;
      continue;
    }
    const table = frames === 0 && kind === undefined ? readTable(bytes, frame, at) : undefined;
    kind = frame.kind;
    isInStep = true;
    if (table === undefined) {
      frames += 1;
      seconds += frame.samples / frame.rate;
    } else paddingS = table.padding_samples / frame.rate;
    at += frame.bytes;
  }
  if (frames === 0) return undefined;
  return paddingS < seconds ? seconds - paddingS : seconds;
}
