import { GatewayError } from '../errors.ts';

/** The request has used up its time for reads of the store. */
export class StoreWaitExceeded extends GatewayError {
  constructor() {
    super(503, 'The store does not answer at the moment; try again soon', { headers: { 'retry-after': '1' } });
  }
}

/**
 * The time that one request may wait for the store, over all reads before its first attempt. Concurrent reads count once.
 */
export class StoreWait {
  readonly #maxMs: number;
  readonly #monotonicMs: () => number;
  #waitedMs = 0;
  #reads = 0;
  #begunMs = 0;

  constructor(maxMs: number, monotonicMs: () => number) {
    this.#maxMs = maxMs;
    this.#monotonicMs = monotonicMs;
  }

  remainingMs(): number {
    const currentMs = this.#reads === 0 ? 0 : this.#monotonicMs() - this.#begunMs;
    return Math.max(0, this.#maxMs - this.#waitedMs - currentMs);
  }

  begin(): void {
    if (this.#reads === 0) this.#begunMs = this.#monotonicMs();
    this.#reads += 1;
  }

  end(): void {
    this.#reads -= 1;
    if (this.#reads === 0) this.#waitedMs += this.#monotonicMs() - this.#begunMs;
  }

  /** Starts again after attempts: refusing the call for its waits before them would waste what they cost. */
  renew(): void {
    this.#waitedMs = 0;
    this.#begunMs = this.#monotonicMs();
  }

  /** The result of a read. Rejects with `StoreWaitExceeded` if it takes longer than the time left; the read itself continues. */
  async within<T>(read: Promise<T>): Promise<T> {
    const leftMs = this.remainingMs();
    const { promise: late, reject } = Promise.withResolvers<never>();
    if (leftMs === 0) reject(new StoreWaitExceeded());
    const timer = Number.isFinite(leftMs) ? setTimeout(() => reject(new StoreWaitExceeded()), leftMs) : undefined;
    this.begin();
    try {
      return await Promise.race([late, read]);
    } finally {
      this.end();
      clearTimeout(timer);
    }
  }
}
