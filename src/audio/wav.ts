import { limits } from '../limits.ts';

/** Samples that one block of a coding holds, by its tag (Microsoft, "Multimedia Standards Update", WAVE form registration). */
function samplesPerBlock(tag: number, channels: number, bits: number, blockBytes: number): number | undefined {
  switch (tag) {
    case 0x0001: // PCM
    case 0x0003: // IEEE float
    case 0x0006: // A-law
    case 0x0007: // mu-law
      return blockBytes / (channels * Math.ceil(bits / 8));
    case 0x0002: // Microsoft ADPCM: a header of 7 bytes a channel tells the first two samples
      return ((blockBytes - 7 * channels) * 2) / channels + 2;
    case 0x0011: // IMA ADPCM: a header of 4 bytes a channel tells the first
      return ((blockBytes - 4 * channels) * 2) / channels + 1;
    default:
      return undefined;
  }
}

/** `fmt ` and `data`, as numbers: there may be many chunks. */
const FORM = 0x666d7420;
const DATA = 0x64617461;

interface Form {
  rate: number;
  block_bytes: number;
  block_samples: number;
}

function readForm(bytes: Buffer, at: number, size: number): Form | undefined {
  if (size < 16) return undefined;
  const told = bytes.readUInt16LE(at);
  const channels = bytes.readUInt16LE(at + 2);
  const rate = bytes.readUInt32LE(at + 4);
  const blockBytes = bytes.readUInt16LE(at + 12);
  const bits = bytes.readUInt16LE(at + 14);
  // WAVE_FORMAT_EXTENSIBLE: the coding's tag begins the sub-format's GUID.
  const tag = told === 0xfffe && size >= 26 ? bytes.readUInt16LE(at + 24) : told;
  if (channels === 0 || rate === 0 || bits === 0 || blockBytes === 0) return undefined;
  const blockSamples = samplesPerBlock(tag, channels, bits, blockBytes);
  if (blockSamples === undefined || blockSamples <= 0) return undefined;
  return { rate, block_bytes: blockBytes, block_samples: blockSamples };
}

/** How long a RIFF or RF64 WAVE file lasts, by the bytes of sound that are there; undefined where its coding is not known. */
export function wavSeconds(bytes: Buffer): number | undefined {
  let form: Form | undefined;
  let seconds: number | undefined;
  for (let at = 12, chunks = 0; at + 8 <= bytes.length; chunks += 1) {
    if (chunks > limits.sound_boxes_max) return undefined;
    const name = bytes.readUInt32BE(at);
    const told = bytes.readUInt32LE(at + 4);
    const left = bytes.length - at - 8;
    // A writer that could not go back left 0 or all ones; RF64 tells the length elsewhere. It reaches to the end then.
    const isOpen = name === DATA && (told === 0 || told === 0xffffffff);
    const size = isOpen ? left : Math.min(told, left);
    if (name === FORM) form ??= readForm(bytes, at + 8, size);
    if (name === DATA && form !== undefined) {
      seconds = (seconds ?? 0) + ((size / form.block_bytes) * form.block_samples) / form.rate;
    }
    at += 8 + size + (size % 2);
  }
  return seconds;
}
