import { limits } from '../limits.ts';
import { aacSeconds } from './aac.ts';
import { flacSeconds } from './flac.ts';
import { mp3Seconds } from './mp3.ts';
import { mp4Seconds } from './mp4.ts';
import { oggSeconds } from './ogg.ts';
import type { Steps } from './steps.ts';
import { wavSeconds } from './wav.ts';
import { webmSeconds } from './webm.ts';

/** The formats whose duration can be measured. */
export const soundFormats = ['wav', 'mp3', 'flac', 'm4a', 'ogg', 'webm', 'aac'] as const;
export type SoundFormat = (typeof soundFormats)[number];

/** Other names in use: file extensions and subtypes of media types. */
const ALIASES: Readonly<Record<string, SoundFormat>> = {
  wave: 'wav',
  'x-wav': 'wav',
  'vnd.wave': 'wav',
  mpeg: 'mp3',
  mpga: 'mp3',
  mp2: 'mp3',
  'x-flac': 'flac',
  mp4: 'm4a',
  m4b: 'm4a',
  mov: 'm4a',
  'x-m4a': 'm4a',
  oga: 'ogg',
  opus: 'ogg',
  mka: 'webm',
  mkv: 'webm',
  aacp: 'aac',
  'x-aac': 'aac',
};

/** The format with this name, extension or media subtype; undefined if unknown. */
export function formatNamed(word: string): SoundFormat | undefined {
  const name = word.trim().toLowerCase().replace(/^\./, '');
  const known = soundFormats.find((format) => format === name);
  return known ?? (Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined);
}

/** The media type of a format. */
export const mediaTypes: Readonly<Record<SoundFormat, string>> = {
  wav: 'audio/wav',
  mp3: 'audio/mpeg',
  flac: 'audio/flac',
  m4a: 'audio/mp4',
  ogg: 'audio/ogg',
  webm: 'audio/webm',
  aac: 'audio/aac',
};

/** `ID3` */
const TAG = [0x49, 0x44, 0x33] as const;

/** The offset of the audio after ID3 tags (id3.org, "ID3v2.4", section 3.1), of which there may be several. */
function afterTags(bytes: Buffer): number {
  let at = 0;
  for (let tags = 0; tags < limits.sound_tags_max && at + 10 <= bytes.length; tags += 1) {
    if (bytes[at] !== TAG[0] || bytes[at + 1] !== TAG[1] || bytes[at + 2] !== TAG[2]) break;
    const size = [6, 7, 8, 9].reduce((sum, index) => (sum << 7) | ((bytes[at + index] ?? 0) & 0x7f), 0);
    at += 10 + size + ((bytes[at + 5] ?? 0) & 0x10 ? 10 : 0);
  }
  return at;
}

/** The format of the bytes, by their first bytes; undefined if unknown. */
export function sniffSound(bytes: Buffer): SoundFormat | undefined {
  const ascii = (from: number, to: number) => bytes.toString('latin1', from, to);
  if (/^(?:RIFF|RF64|BW64)$/.test(ascii(0, 4)) && ascii(8, 12) === 'WAVE') return 'wav';
  if (ascii(0, 4) === 'OggS') return 'ogg';
  if (ascii(0, 4) === '\x1a\x45\xdf\xa3') return 'webm';
  if (/^(?:ftyp|moov|styp|moof)$/.test(ascii(4, 8))) return 'm4a';
  const at = afterTags(bytes);
  if (ascii(at, at + 4) === 'fLaC') return 'flac';
  const second = bytes[at + 1] ?? 0;
  if (bytes[at] !== 0xff || (second & 0xe0) !== 0xe0) return at > 0 ? 'mp3' : undefined;
  // Both start with eleven set bits; AAC has layer 0.
  return (second & 0x06) === 0 ? 'aac' : 'mp3';
}

function secondsSteps(bytes: Buffer, format: SoundFormat): Steps<number | undefined> {
  const start = afterTags(bytes);
  if (format === 'mp3') return mp3Seconds(bytes, start);
  if (format === 'flac') return flacSeconds(bytes, start);
  if (format === 'ogg') return oggSeconds(bytes);
  if (format === 'webm') return webmSeconds(bytes);
  return aacSeconds(bytes, start);
}

/**
 * The duration in milliseconds; undefined if the bytes contain no playable audio. Linear in the bytes, whatever they are. A duration that
 * the file states is not trusted if its frames can be counted, since calls are billed by it. Yields between the frames of a long file.
 */
export function* soundSteps(bytes: Buffer, format: SoundFormat): Steps<number | undefined> {
  let seconds: number | undefined;
  // Their tables are read, which have fewer entries than other files have frames.
  if (format === 'wav') seconds = wavSeconds(bytes);
  else if (format === 'm4a') seconds = mp4Seconds(bytes);
  else seconds = yield* secondsSteps(bytes, format);
  if (seconds === undefined || !Number.isFinite(seconds) || seconds <= 0) return undefined;
  return Math.max(1, Math.round(seconds * 1000));
}

/** The same without yielding. */
export function soundMs(bytes: Buffer, format: SoundFormat): number | undefined {
  for (const steps = soundSteps(bytes, format); ; ) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}
