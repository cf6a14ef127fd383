/** One attempt as the provider knows it. */
export interface SentAttempt {
  /** The windows that it counts against. */
  windows: readonly string[];
  /** The highest possible cost. */
  bound_nano: number;
  /** Its bill, once nothing more can arrive. */
  billed_nano: number | undefined;
}

/** What providers have billed, and what they may still bill: the amounts that the ledger must cover. */
export class Upstream {
  /** By window: the billed amount, and the highest cost of attempts in progress. */
  readonly exposure = new Map<string, number>();
  /** By window: the amount billed above the bound that was sent. */
  readonly excess = new Map<string, number>();
  changed = false;

  send(windows: readonly string[], boundNano: number): SentAttempt {
    const sent: SentAttempt = { windows, bound_nano: boundNano, billed_nano: undefined };
    this.#raise(this.exposure, sent, boundNano);
    return sent;
  }

  /** The caller lets it continue. */
  allow(sent: SentAttempt, boundNano: number): void {
    if (sent.billed_nano !== undefined) return;
    this.#raise(this.exposure, sent, boundNano - sent.bound_nano);
    sent.bound_nano = boundNano;
  }

  bill(sent: SentAttempt, nano: number): void {
    if (sent.billed_nano !== undefined) return;
    sent.billed_nano = nano;
    this.#raise(this.exposure, sent, nano - sent.bound_nano);
    if (nano > sent.bound_nano) this.#raise(this.excess, sent, nano - sent.bound_nano);
  }

  #raise(sums: Map<string, number>, { windows }: SentAttempt, nano: number): void {
    this.changed = true;
    for (const window of windows) sums.set(window, (sums.get(window) ?? 0) + nano);
  }
}
