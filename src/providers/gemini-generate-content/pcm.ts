/** Joins sound that comes in pieces of base64, each padded by itself: what is given out can be put together as text. */
export interface Pcm {
  /** Up to two bytes wait for the next piece. */
  add(base64: string): string;
  end(): string;
  hasAny(): boolean;
}

export function createPcm(): Pcm {
  let left: Buffer = Buffer.alloc(0);
  let hasAny = false;
  return {
    add(base64) {
      hasAny ||= base64 !== '';
      const bytes = Buffer.concat([left, Buffer.from(base64, 'base64')]);
      const whole = bytes.length - (bytes.length % 3);
      left = bytes.subarray(whole);
      return bytes.subarray(0, whole).toString('base64');
    },
    end() {
      const rest = left.toString('base64');
      left = Buffer.alloc(0);
      return rest;
    },
    hasAny: () => hasAny,
  };
}
