import { limits } from '../limits.ts';

/** Samples per block of a codec, by its tag (Microsoft, "Multimedia Standards Update", WAVE form registration). */
function samplesPerBlock(tag: number, channels: number, bits: number, blockBytes: number): number | undefined {
  switch (tag) {
    case 0x0001: // PCM
    case 0x0003: // IEEE float
    case 0x0006: // A-law
    case 0x0007: // mu-law
      return blockBytes / (channels * Math.ceil(bits / 8));
    case 0x0002: // Microsoft ADPCM: a header of 7 bytes per channel holds the first two samples
      return ((blockBytes - 7 * channels) * 2) / channels + 2;
    case 0x0011: // IMA ADPCM: a header of 4 bytes per channel holds the first
      return ((blockBytes - 4 * channels) * 2) / channels + 1;
    default:
      return undefined;
  }
}

/** `fmt ` and `data` as numbers: comparing numbers is fast, and there may be many chunks. */
const FORM = 0x666d7420;
const DATA = 0x64617461;

interface Form {
  rate: number;
  block_bytes: number;
  block_samples: number;
}

function readForm(bytes: Buffer, at: number, size: number): Form | undefined {
  if (size < 16) return undefined;
  const formatTag = bytes.readUInt16LE(at);
  const channels = bytes.readUInt16LE(at + 2);
  const rate = bytes.readUInt32LE(at + 4);
  const blockBytes = bytes.readUInt16LE(at + 12);
  const bits = bytes.readUInt16LE(at + 14);
  // WAVE_FORMAT_EXTENSIBLE: the codec's tag is at the start of the sub-format's GUID.
  const tag = formatTag === 0xfffe && size >= 26 ? bytes.readUInt16LE(at + 24) : formatTag;
  if (channels === 0 || rate === 0 || bits === 0 || blockBytes === 0) return undefined;
  const blockSamples = samplesPerBlock(tag, channels, bits, blockBytes);
  if (blockSamples === undefined || blockSamples <= 0) return undefined;
  return { rate, block_bytes: blockBytes, block_samples: blockSamples };
}

/** The seconds of a RIFF or RF64 WAVE file, by its bytes of audio; undefined if its codec is unknown. */
export function wavSeconds(bytes: Buffer): number | undefined {
  let form: Form | undefined;
  let seconds: number | undefined;
  for (let at = 12, chunks = 0; at + 8 <= bytes.length; chunks += 1) {
    if (chunks > limits.sound_boxes_max) return undefined;
    const name = bytes.readUInt32BE(at);
    const sizeField = bytes.readUInt32LE(at + 4);
    const remaining = bytes.length - at - 8;
    // 0 or all ones if the writer could not seek back, or if the length is in RF64's own chunk: the data reach to the end.
    const isOpen = name === DATA && (sizeField === 0 || sizeField === 0xffffffff);
    const size = isOpen ? remaining : Math.min(sizeField, remaining);
    if (name === FORM) form ??= readForm(bytes, at + 8, size);
    if (name === DATA && form !== undefined) {
      seconds = (seconds ?? 0) + ((size / form.block_bytes) * form.block_samples) / form.rate;
    }
    at += 8 + size + (size % 2);
  }
  return seconds;
}
