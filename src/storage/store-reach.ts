import { limits } from '../limits.ts';

export interface StoreReachOptions {
  /** Asks the store a trivial question, within `limits.store_read_ms_max`; its answer reaches `heard` like any other. */
  probe(): Promise<unknown>;
  /** Called when the store stops answering, and with how long it was away when it answers again. */
  onChange(away_ms: number | undefined): void;
  monotonic_ms?: () => number;
}

/**
 * Whether the store answers. While it does not, reads of requests are refused at once: nobody waits for what is known to
 * fail. One probe at a time finds out when it is back, so that no request has to.
 */
export class StoreReach {
  readonly #options: StoreReachOptions;
  readonly #monotonic_ms: () => number;
  #heard_at_ms: number;
  #away_since_ms: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: StoreReachOptions) {
    this.#options = options;
    this.#monotonic_ms = options.monotonic_ms ?? (() => performance.now());
    this.#heard_at_ms = this.#monotonic_ms();
  }

  get is_away(): boolean {
    return this.#away_since_ms !== undefined;
  }

  /** The store has answered something, whatever it was. */
  heard(): void {
    this.#heard_at_ms = this.#monotonic_ms();
    if (this.#away_since_ms === undefined) return;
    const away_ms = this.#heard_at_ms - this.#away_since_ms;
    this.#away_since_ms = undefined;
    clearTimeout(this.#timer);
    this.#options.onChange(away_ms);
  }

  /** A read of a request was not answered. A store that answers others meanwhile is busy, and not away. */
  missed(): void {
    if (this.#stopped || this.#away_since_ms !== undefined) return;
    if (this.#monotonic_ms() - this.#heard_at_ms < limits.store_read_ms_max) return;
    this.#away_since_ms = this.#heard_at_ms;
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
    }, limits.store_probe_ms).unref();
  }
}
