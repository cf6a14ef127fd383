import { limits } from '../limits.ts';
import { STEP_PIECES, type Steps } from './steps.ts';

/** Sample rates by their index in a header (ISO 14496-3, table 1.18). */
export const AAC_RATES = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
] as const;
/** Samples of one frame. */
export const AAC_FRAME_SAMPLES = 1024;

/** The seconds of a stream of ADTS frames, by counting its frames (ISO 14496-3, 1.A.2.2); undefined if it has none. */
export function* aacSeconds(bytes: Buffer, start: number): Steps<number | undefined> {
  let seconds = 0;
  let junkBytes = 0;
  for (let at = start, pieces = 1; at + 7 <= bytes.length; pieces += 1) {
    if (pieces % STEP_PIECES === 0) yield;
    if (junkBytes > limits.sound_junk_bytes_max) return undefined;
    if (bytes[at] !== 0xff || ((bytes[at + 1] ?? 0) & 0xf6) !== 0xf0) {
      at += 1;
      junkBytes += 1;
      continue;
    }
    const length = (((bytes[at + 3] ?? 0) & 3) << 11) | ((bytes[at + 4] ?? 0) << 3) | ((bytes[at + 5] ?? 0) >> 5);
    const rate = AAC_RATES[((bytes[at + 2] ?? 0) >> 2) & 15];
    if (rate === undefined || length < 7) {
      at += 1;
      junkBytes += 1;
      continue;
    }
    seconds += (((bytes[at + 6] ?? 0) & 3) + 1) * (AAC_FRAME_SAMPLES / rate);
    at += length;
  }
  return seconds === 0 ? undefined : seconds;
}
