import { limits } from '../limits.ts';

/** The interval of probes of a store that does not answer. */
const STORE_PROBE_MS = 250;

export interface StoreReachOptions {
  /** Sends the store a trivial query, bounded by `limits.store_read_ms_max`; its answer is reported to `answered` like any other. */
  probe(): Promise<unknown>;
  /** Called with undefined when the store stops answering, and with the length of the outage when it answers again. */
  onChange(awayMs: number | undefined): void;
  monotonicMs?: () => number;
}

/**
 * Whether the store answers. While it does not, reads of requests are refused at once, since they are known to fail. One probe
 * at a time checks whether it is back, so that no request has to.
 */
export class StoreReach {
  readonly #options: StoreReachOptions;
  readonly #monotonicMs: () => number;
  #answeredAtMs: number;
  #awaySinceMs: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: StoreReachOptions) {
    this.#options = options;
    this.#monotonicMs = options.monotonicMs ?? (() => performance.now());
    this.#answeredAtMs = this.#monotonicMs();
  }

  get is_away(): boolean {
    return this.#awaySinceMs !== undefined;
  }

  /** The store has answered, with whatever result. */
  answered(): void {
    this.#answeredAtMs = this.#monotonicMs();
    if (this.#awaySinceMs === undefined) return;
    const awayMs = this.#answeredAtMs - this.#awaySinceMs;
    this.#awaySinceMs = undefined;
    clearTimeout(this.#timer);
    this.#options.onChange(awayMs);
  }

  /** A read of a request was not answered in time. If the store has answered others meanwhile, it is busy, not away. */
  missed(): void {
    if (this.#stopped || this.#awaySinceMs !== undefined) return;
    if (this.#monotonicMs() - this.#answeredAtMs < limits.store_read_ms_max) return;
    this.#awaySinceMs = this.#answeredAtMs;
    this.#options.onChange(undefined);
    this.#probeSoon();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #probeSoon(): void {
    this.#timer = setTimeout(() => {
      this.#options
        .probe()
        .catch(() => undefined)
        .finally(() => {
          if (this.is_away && !this.#stopped) this.#probeSoon();
        });
    }, STORE_PROBE_MS).unref();
  }
}
