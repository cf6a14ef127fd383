/** Half milliseconds of one frame, by the configuration in a packet's first byte (RFC 6716, table 2). */
function frameHalfMs(config: number): number {
  if (config < 12) return [20, 40, 80, 120][config % 4] ?? 0;
  if (config < 16) return config % 2 === 0 ? 20 : 40;
  return [5, 10, 20, 40][config % 4] ?? 0;
}

/** The seconds of one Opus packet, by its first two bytes (RFC 6716, section 3.1); at most 0.12. */
export function opusPacketSeconds(first: number, second: number): number {
  const code = first & 3;
  const frames = code === 0 ? 1 : code === 3 ? second & 0x3f : 2;
  return Math.min(frames * frameHalfMs(first >> 3), 240) / 2000;
}
