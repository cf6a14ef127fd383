import { lengthWithout } from '../../schemas/trailing.ts';
import type { Vector } from './dialect.ts';

const FLOAT_BYTES = 4;

/** Whether this machine's byte order is that of the wire. */
const IS_LITTLE_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/** The floats in base64; undefined if the length is not a multiple of a float's, or if it is not base64. */
function floatsOf(base64: string): Float32Array | undefined {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length === 0 || bytes.length % FLOAT_BYTES !== 0) return undefined;
  // Buffer skips invalid characters, which must not result in a shorter vector.
  if (bytes.length !== Math.floor((lengthWithout(base64, '=') * 3) / 4)) return undefined;
  if (!IS_LITTLE_ENDIAN) bytes.swap32();
  // A pooled buffer may start anywhere; a view needs an offset divisible by four.
  const aligned = bytes.byteOffset % FLOAT_BYTES === 0 ? bytes : Uint8Array.from(bytes);
  return new Float32Array(aligned.buffer, aligned.byteOffset, aligned.length / FLOAT_BYTES);
}

/** A vector as an upstream sent it; undefined if it is not valid. */
export function readVector(value: unknown): Vector | undefined {
  if (typeof value === 'string') {
    if (floatsOf(value) !== undefined) return value;
  } else if (Array.isArray(value) && value.length > 0 && value.every((number) => Number.isFinite(number))) {
    return value as number[];
  }
  return undefined;
}

/** The vector as numbers, without rounding. */
export function toNumbers(vector: Vector): number[] {
  return typeof vector === 'string' ? Array.from(floatsOf(vector) ?? []) : vector;
}

/** The vector as 32-bit floats in base64. */
export function toBase64(vector: Vector): string {
  if (typeof vector === 'string') return vector;
  const { buffer } = Float32Array.from(vector);
  const bytes = Buffer.from(buffer);
  if (!IS_LITTLE_ENDIAN) bytes.swap32();
  return bytes.toString('base64');
}

/** The vector scaled to length one; unchanged if it has length zero. */
export function normalised(vector: Vector): Vector {
  const numbers = toNumbers(vector);
  const length = Math.sqrt(numbers.reduce((sum, number) => sum + number * number, 0));
  return length === 0 ? vector : numbers.map((number) => number / length);
}
