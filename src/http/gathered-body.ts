import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { GatewayError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Claim } from './memory.ts';

/** Chunks shorter than this are gathered in blocks. */
const SHORT_CHUNK_BYTES = 1024;
const BLOCK_BYTES = 16 * 1024;

/** How a body of unknown length is counted. */
export interface GatheredCount {
  claim: Claim;
  /** The bytes that are claimed already. */
  claimed_bytes: number;
  bytes_max: number;
}

export function tooLarge(): GatewayError {
  return new GatewayError(413, 'Request payload too large');
}

/**
 * A body of unknown length. Its bytes are counted in the shared memory as they arrive, and reading pauses until there is memory. Short
 * chunks are gathered in blocks: by itself each takes far more memory and time than its length. After `body_turn_chunks_max` of them the
 * connection is not read before the next turn of the event loop; one read of a socket may hold ten thousand.
 */
class GatheredBody extends Readable {
  readonly #payload: Readable;
  readonly #count: GatheredCount;
  #receivedBytes = 0;
  #claimedBytes: number;
  #block: Buffer | undefined;
  #blockBytes = 0;
  /** Short chunks since the connection was held. */
  #chunks = 0;
  #isWaiting = false;
  #hasEnded = false;

  constructor(payload: Readable, count: GatheredCount) {
    super();
    this.#payload = payload;
    this.#count = count;
    this.#claimedBytes = count.claimed_bytes;
    payload.on('data', this.#take);
    payload.once('end', this.#end);
    payload.once('error', this.#fail);
  }

  override _read(): void {
    if (!this.#isWaiting) this.#payload.resume();
  }

  readonly #take = (chunk: Buffer): void => {
    this.#receivedBytes += chunk.length;
    if (this.#receivedBytes > this.#count.bytes_max) {
      this.#fail(tooLarge());
      return;
    }
    if (chunk.length >= SHORT_CHUNK_BYTES) {
      this.#flush();
      this.#pass(chunk);
      return;
    }
    if (this.#blockBytes + chunk.length > BLOCK_BYTES) this.#flush();
    this.#block ??= Buffer.allocUnsafeSlow(BLOCK_BYTES);
    if (chunk.length === 1) this.#block[this.#blockBytes] = chunk[0]!;
    else chunk.copy(this.#block, this.#blockBytes);
    this.#blockBytes += chunk.length;
    this.#chunks += 1;
    if (this.#chunks === limits.body_turn_chunks_max) this.#holdForTurn();
  };

  readonly #end = (): void => {
    this.#flush();
    this.#hasEnded = true;
    if (!this.#isWaiting) this.push(null);
  };

  /** The rest of the body is read and dropped, so that a client that still sends sees the answer. */
  readonly #fail = (error: Error): void => {
    const payload = this.#payload;
    payload.off('data', this.#take);
    payload.off('end', this.#end);
    payload.resume();
    this.destroy(error);
  };

  #flush(): void {
    if (this.#block === undefined) return;
    const gathered = this.#block.subarray(0, this.#blockBytes);
    this.#block = undefined;
    this.#blockBytes = 0;
    this.#pass(gathered);
  }

  #pass(bytes: Buffer): void {
    const { claim } = this.#count;
    if (!this.push(bytes)) this.#payload.pause();
    if (this.#receivedBytes <= this.#claimedBytes) return;
    const more = Math.max(limits.counted_bytes_step, this.#receivedBytes - this.#claimedBytes);
    this.#claimedBytes += more;
    let waiting: Promise<void> | undefined;
    try {
      waiting = claim.take(more * limits.body_copies);
    } catch (error) {
      this.#fail(error as Error);
      return;
    }
    if (waiting === undefined) return;
    this.#isWaiting = true;
    this.#payload.pause();
    waiting.then(this.#goOn, this.#fail);
  }

  /** Reads nothing more from the connection in this turn. Node resumes it by itself whenever the body has room. */
  #holdForTurn(): void {
    const { socket } = this.#payload as Partial<IncomingMessage>;
    // An injected request has no connection.
    if (!(socket instanceof Socket) || socket.destroyed) return;
    const hold = () => void socket.pause();
    socket.on('resume', hold);
    socket.pause();
    setImmediate(() => {
      this.#chunks = 0;
      socket.off('resume', hold);
      if (!socket.destroyed) socket.resume();
    });
  }

  readonly #goOn = (): void => {
    this.#isWaiting = false;
    if (this.#hasEnded) this.push(null);
    else this.#payload.resume();
  };
}

/** The body of a request whose length is not announced, counted and gathered. */
export function gathered(payload: Readable, count: GatheredCount): Readable {
  return new GatheredBody(payload, count);
}
