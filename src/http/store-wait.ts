import { GatewayError } from '../errors.ts';

/** The request has used up its time for waiting for the store. */
export class StoreWaitExceeded extends GatewayError {
  constructor() {
    super(503, 'The store does not answer at the moment; try again soon', { headers: { 'retry-after': '1' } });
  }
}

/**
 * The time that one request may wait for the store, over all reads before its first attempt. Concurrent reads count once.
 */
export class StoreWait {
  readonly #max_ms: number;
  readonly #monotonic_ms: () => number;
  #waited_ms = 0;
  #reads = 0;
  #begun_ms = 0;

  constructor(max_ms: number, monotonic_ms: () => number) {
    this.#max_ms = max_ms;
    this.#monotonic_ms = monotonic_ms;
  }

  left_ms(): number {
    const current_ms = this.#reads === 0 ? 0 : this.#monotonic_ms() - this.#begun_ms;
    return Math.max(0, this.#max_ms - this.#waited_ms - current_ms);
  }

  begin(): void {
    if (this.#reads === 0) this.#begun_ms = this.#monotonic_ms();
    this.#reads += 1;
  }

  end(): void {
    this.#reads -= 1;
    if (this.#reads === 0) this.#waited_ms += this.#monotonic_ms() - this.#begun_ms;
  }

  /** Starts anew after attempts: refusing the call for its waits before them would waste what they cost. */
  renew(): void {
    this.#waited_ms = 0;
    this.#begun_ms = this.#monotonic_ms();
  }

  /** The result of a read. Rejects with `StoreWaitExceeded` if it takes longer than the time left; the read itself continues. */
  async within<T>(read: Promise<T>): Promise<T> {
    const left_ms = this.left_ms();
    const { promise: late, reject } = Promise.withResolvers<never>();
    if (left_ms === 0) reject(new StoreWaitExceeded());
    const timer = Number.isFinite(left_ms) ? setTimeout(() => reject(new StoreWaitExceeded()), left_ms) : undefined;
    this.begin();
    try {
      return await Promise.race([late, read]);
    } finally {
      this.end();
      clearTimeout(timer);
    }
  }
}
