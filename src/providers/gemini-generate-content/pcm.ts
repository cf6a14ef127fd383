/** Joins pieces of base64, each with its own padding, to base64 that can be concatenated as text. */
export interface Pcm {
  /** Returns all complete groups of three bytes; up to two bytes are held for the next piece. */
  add(base64: string): string;
  end(): string;
  hasAny(): boolean;
}

export function createPcm(): Pcm {
  let held: Buffer = Buffer.alloc(0);
  let hasAny = false;
  return {
    add(base64) {
      hasAny ||= base64 !== '';
      const bytes = Buffer.concat([held, Buffer.from(base64, 'base64')]);
      const whole = bytes.length - (bytes.length % 3);
      held = bytes.subarray(whole);
      return bytes.subarray(0, whole).toString('base64');
    },
    end() {
      const rest = held.toString('base64');
      held = Buffer.alloc(0);
      return rest;
    },
    hasAny: () => hasAny,
  };
}
