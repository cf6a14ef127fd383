/**
 * The clock, the random numbers and the name service of a replay: the same commit gives the same ids, times and keys on
 * every machine.
 */
import crypto from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { syncBuiltinESMExports } from 'node:module';
import type { Clock } from '../../src/inference/call.ts';

/** 2026-01-01T00:00:00Z. */
const START_MS = Date.UTC(2026, 0, 1);

/** A clock that stands still until it is moved. */
export class ScriptedClock implements Clock {
  #passedMs = 0;
  readonly nowMs = (): number => START_MS + this.#passedMs;
  readonly monotonicMs = (): number => this.#passedMs;

  pass(ms: number): void {
    this.#passedMs += ms;
  }

  /** Moves it to `passedMs` after the start of the replay. */
  moveTo(passedMs: number): void {
    this.#passedMs = passedMs;
  }
}

let draws = 0;

function draw(bytes: number): Buffer {
  draws += 1;
  const seed = crypto.createHash('shake256', { outputLength: Math.max(bytes, 1) });
  return seed.update(`draw ${draws}`).digest().subarray(0, bytes);
}

/** Restarts the random numbers of this process. */
export function restartChance(): void {
  draws = 0;
}

/**
 * Replaces the machine's random numbers by a fixed sequence, for modules that have loaded and those that will. Buffers
 * filled in advance get zeros, so that generation ids differ only by their second and no id depends on earlier
 * exchanges.
 */
export function scriptChance(): void {
  Object.assign(crypto, {
    randomFillSync: <T extends NodeJS.ArrayBufferView>(buffer: T): T => {
      new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength).fill(0);
      return buffer;
    },
    randomBytes: draw,
    randomUUID: () => {
      const hex = draw(16).toString('hex');
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
    },
  });
  syncBuiltinESMExports();
}

/** No host has an address: nothing outside this machine is reached, with or without a network. */
export function scriptNames(): void {
  const resolve = () => Promise.reject(new Error('no names are resolved in a replay'));
  Object.assign(Resolver.prototype, { resolve4: resolve, resolve6: resolve });
}
