import { isAscii } from 'node:buffer';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import { JsonStructure } from '../schemas/json-structure.ts';

/** A claim up to this part of all is small, and that part of all is kept for such. */
const MEMORY_SMALL_DIVISOR = 256;
const MEMORY_KEPT_DIVISOR = 8;

/** The memory that one request holds. */
export interface Claim {
  /**
   * Reserves more bytes: returns undefined if there is room, else a promise that waits for it, `limits.memory_wait_ms_max` by default.
   * Throws or rejects with 413 if one request may not hold that much, with 503 if no memory became free in time.
   */
  take(bytes: number, waitMsMax?: number): Promise<void> | undefined;
  /** Returns all memory. Later calls of `take` reserve nothing. */
  release(): void;
  readonly held_bytes: number;
}

/**
 * The memory that the requests of a process share, so that they cannot exhaust it together. A part is reserved for small requests,
 * which do not wait behind large ones.
 */
export interface Memory {
  /** A claim of a request of `owner`. One owner can hold most of the memory, but never all. */
  claim(owner: string): Claim;
  readonly held_bytes: number;
}

interface Waiter {
  claim: SharedClaim;
  bytes: number;
  resolve(): void;
  refuse(): void;
}

function noRoom(): GatewayError {
  return new GatewayError(503, 'The gateway has no memory left for a request of this size; try again soon', {
    headers: { 'retry-after': '1' },
  });
}

class SharedMemory implements Memory {
  readonly #bytesMax: number;
  readonly #ownerBytesMax: number;
  readonly #smallBytesMax: number;
  /** Reserved for small requests. */
  readonly #reservedBytes: number;
  /** Bytes by owner, without zeros. */
  readonly #held = new Map<string, number>();
  readonly #waiting = new Set<Waiter>();
  #heldBytes = 0;
  /** The part of `#heldBytes` in small claims. */
  #smallBytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#ownerBytesMax = Math.floor(bytesMax * limits.memory_owner_share_max);
    this.#smallBytesMax = Math.floor(bytesMax / MEMORY_SMALL_DIVISOR);
    this.#reservedBytes = Math.floor(bytesMax / MEMORY_KEPT_DIVISOR);
  }

  get held_bytes(): number {
    return this.#heldBytes;
  }

  claim(owner: string): Claim {
    return new SharedClaim(this, owner);
  }

  take(claim: SharedClaim, bytes: number, waitMsMax: number): Promise<void> | undefined {
    if (claim.held_bytes + bytes > this.#ownerBytesMax) {
      const most = `${this.#ownerBytesMax} bytes of memory, the most that one request may use`;
      throw new GatewayError(413, `The request, or its answer, would take more than ${most}`);
    }
    // Waiting claims go first.
    const isNext = this.#waiting.size === 0 || this.#overtakes(claim, bytes);
    if (isNext && this.#hold(claim, bytes) === 'held') return undefined;
    if (this.#waiting.size >= limits.memory_waiting_max) throw noRoom();
    return new Promise((resolve, reject) => {
      const refuse = () => {
        clearTimeout(late);
        this.#waiting.delete(waiter);
        reject(noRoom());
        // A later claim may fit.
        this.#serve();
      };
      const late = setTimeout(refuse, waitMsMax);
      const waiter: Waiter = {
        claim,
        bytes,
        resolve() {
          clearTimeout(late);
          resolve();
        },
        refuse,
      };
      this.#waiting.add(waiter);
      this.#serve();
      if (!this.#waiting.has(waiter)) return;
      this.#refuseLeast([...this.#waiting], this.#bytesMax - this.#reservedBytes);
      const ofOwner = [...this.#waiting].filter((one) => one.claim.owner === claim.owner);
      this.#refuseLeast(ofOwner, this.#ownerBytesMax);
    });
  }

  give(claim: SharedClaim): void {
    const left = (this.#held.get(claim.owner) ?? 0) - claim.held_bytes;
    if (left > 0) this.#held.set(claim.owner, left);
    else this.#held.delete(claim.owner);
    this.#heldBytes -= claim.held_bytes;
    if (claim.held_bytes <= this.#smallBytesMax) this.#smallBytes -= claim.held_bytes;
    claim.held_bytes = 0;
    if (this.#waiting.size > 0) this.#serve();
  }

  /** Small claims pass waiting ones as long as all small claims together fit into the reserved part. */
  #overtakes({ held_bytes }: SharedClaim, bytes: number): boolean {
    return held_bytes + bytes <= this.#smallBytesMax && this.#smallBytes + bytes <= this.#reservedBytes;
  }

  /** Adds bytes to a claim if its owner may hold them and they are free. Large claims leave room for small ones. */
  #hold(claim: SharedClaim, bytes: number): 'held' | 'owner is full' | 'none free' {
    const ownerBytes = (this.#held.get(claim.owner) ?? 0) + bytes;
    if (ownerBytes > this.#ownerBytesMax) return 'owner is full';
    const wasSmall = claim.held_bytes <= this.#smallBytesMax;
    const isSmall = claim.held_bytes + bytes <= this.#smallBytesMax;
    const othersBytes = wasSmall ? this.#smallBytes - claim.held_bytes : this.#smallBytes;
    const reservedBytes = isSmall ? 0 : Math.max(0, this.#reservedBytes - othersBytes);
    if (this.#bytesMax - this.#heldBytes - bytes < reservedBytes) return 'none free';
    this.#smallBytes = isSmall ? this.#smallBytes + bytes : othersBytes;
    claim.held_bytes += bytes;
    this.#heldBytes += bytes;
    this.#held.set(claim.owner, ownerBytes);
    return 'held';
  }

  /** If the waiting claims hold so much that none fits even when all others are released, the one that holds the least is refused. */
  #refuseLeast(waiting: readonly Waiter[], bytesMax: number): void {
    let heldBytes = 0;
    for (const claim of new Set(waiting.map(({ claim }) => claim))) heldBytes += claim.held_bytes;
    const holders = waiting.filter(({ claim }) => claim.held_bytes > 0);
    if (holders.length === 0 || waiting.some(({ bytes }) => heldBytes + bytes <= bytesMax)) return;
    holders.reduce((least, one) => (one.claim.held_bytes <= least.claim.held_bytes ? one : least)).refuse();
  }

  /** Serves waiting claims in order of arrival, so that large ones are not starved. Skips claims of owners at their bound. */
  #serve(): void {
    let isBlocked = false;
    for (const waiter of this.#waiting) {
      const { claim, bytes } = waiter;
      if (!claim.is_released) {
        if (isBlocked && !this.#overtakes(claim, bytes)) continue;
        const result = this.#hold(claim, bytes);
        isBlocked ||= result === 'none free';
        if (result !== 'held') continue;
      }
      this.#waiting.delete(waiter);
      waiter.resolve();
    }
  }
}

class SharedClaim implements Claim {
  readonly owner: string;
  held_bytes = 0;
  is_released = false;
  readonly #memory: SharedMemory;

  constructor(memory: SharedMemory, owner: string) {
    this.#memory = memory;
    this.owner = owner;
  }

  take(bytes: number, waitMsMax: number = limits.memory_wait_ms_max): Promise<void> | undefined {
    return this.is_released ? undefined : this.#memory.take(this, bytes, waitMsMax);
  }

  release(): void {
    if (this.is_released) return;
    this.is_released = true;
    // Also if it is only waiting, so that nothing waits behind it.
    this.#memory.give(this);
  }
}

/** Makes the shared memory of a process, `bytesMax` bytes by the gateway's own count. */
export function createMemory(bytesMax: number): Memory {
  return new SharedMemory(bytesMax);
}

const unbounded = { values_max: Infinity, levels_max: Infinity, keys_max: Infinity };

/**
 * An upper bound, in bytes, of what reading and writing a JSON text takes, beyond `limits.body_copies` of its length: a few
 * characters can make an object, and one character above U+00FF doubles a text.
 */
export function structureBytes(json: string): number {
  const structure = new JsonStructure(unbounded);
  structure.write(json);
  return structure.memory_bytes + wideBytes(json);
}

/** The bytes that a text with wide characters takes beyond `limits.body_copies` of its length; 0 for others. */
export function wideBytes(text: string): number {
  return isWide(text) ? text.length * limits.body_copies : 0;
}

/** The first lead byte of UTF-8 for characters above U+00FF. */
const WIDE_LEAD = 0xc4;

/** Whether a UTF-8 text, or a piece of one, has characters above U+00FF. */
export function hasWideCharacter(bytes: Buffer): boolean {
  if (isAscii(bytes)) return false;
  for (let at = 0; at < bytes.length; at += 1) if (bytes[at]! >= WIDE_LEAD) return true;
  return false;
}

/** Whether a text has characters above U+00FF. V8 stores such a text with two bytes per character. */
export function isWide(text: string): boolean {
  return /[^\0-\xff]/.test(text);
}
