/** The bit at this index from a packet's start; the first is the lowest of the first byte (Vorbis I, section 2.1). */
const bitAt = (packet: Buffer, index: number) => ((packet[index >> 3] ?? 0) >> (index & 7)) & 1;

function bitsAt(packet: Buffer, index: number, count: number): number {
  let value = 0;
  for (let bit = 0; bit < count; bit += 1) value += bitAt(packet, index + bit) * 2 ** bit;
  return value;
}

const MODE_BITS = 41;
const MODES_MAX = 64;

/**
 * Whether each mode of a stream uses the long block. Modes are at the end of the setup header and are read backwards from there, because
 * the fields before them can only be skipped by decoding them. A mode is a flag, 16 zeros, 16 zeros and a mapping below 64; their count
 * precedes them.
 */
export function longModes(setup: Buffer): boolean[] | undefined {
  let end = setup.length * 8 - 1;
  while (end >= 0 && bitAt(setup, end) === 0) end -= 1;
  let modes: boolean[] | undefined;
  const flags: boolean[] = [];
  for (let at = end - MODE_BITS; at >= 6 && flags.length < MODES_MAX; at -= MODE_BITS) {
    if (bitsAt(setup, at + 1, 32) !== 0 || bitsAt(setup, at + 33, 8) > 63) break;
    flags.unshift(bitAt(setup, at) === 1);
    if (bitsAt(setup, at - 6, 6) === flags.length - 1) modes = [...flags];
  }
  return modes;
}

export interface VorbisSetup {
  /** Samples of a short block and of a long one. */
  blocks: [number, number];
  /** Undefined if the setup header could not be read. */
  long_modes: boolean[] | undefined;
}

/** The samples of the block in an audio packet with this first byte; 0 for other packets. */
export function vorbisBlock(first: number, { blocks, long_modes: longModes }: VorbisSetup): number {
  if (longModes === undefined || (first & 1) !== 0) return 0;
  // The mode's number: at most six bits, since there are 64 modes at most.
  const modeBits = longModes.length === 1 ? 0 : 32 - Math.clz32(longModes.length - 1);
  const mode = (first >> 1) & ((1 << modeBits) - 1);
  return blocks[longModes[mode] === true ? 1 : 0];
}
