/** How long a record waits at most for others that share its sync, beside the resolution of timers. */
export const SYNC_COMPANY_MS = 2;
/** Records that follow each other faster share syncs anyway: they gather while one runs. */
const CROWDED_GAP_MS = 0.5;
/** The part of the estimate that each new gap replaces. */
const GAP_SHARE = 1 / 16;
/** A longer gap does not count as longer, so that the estimate follows a rising load soon. */
const GAP_MS_MAX = 20;
/** Consecutive waits in vain after which the next records do not wait: a single client sends one call at a time. */
const VAIN_MAX = 4;
const UNATTENDED = 16;

/**
 * Decides how many records a sync waits for. A sync for one record costs as much as one for many, and wakes a thread; if the
 * recent rate says that another record comes within `SYNC_COMPANY_MS`, it is worth the wait. At lower rates nobody waits, and
 * at higher ones records gather without it.
 */
export class SyncPace {
  #gapMs = GAP_MS_MAX;
  #lastMs = Number.NEGATIVE_INFINITY;
  #vain = 0;
  #unattended = 0;

  /** Notes records written at `nowMs`, by the monotonic clock. */
  note(records: number, nowMs: number): void {
    const gapMs = Math.min(GAP_MS_MAX, (nowMs - this.#lastMs) / records);
    this.#lastMs = nowMs;
    this.#gapMs += (gapMs - this.#gapMs) * (1 - (1 - GAP_SHARE) ** records);
  }

  /** How many records the next sync should serve; 1: it begins at once. */
  get records(): number {
    if (this.#unattended > 0 || this.#gapMs < CROWDED_GAP_MS) return 1;
    // Also waits if a further record is slightly less than certain.
    return 1 + Math.floor(SYNC_COMPANY_MS / this.#gapMs + 0.4);
  }

  /** Notes that a sync begins for `records` records; `waited`: they waited for others as long as they may. */
  begins(records: number, waited: boolean): void {
    if (this.#unattended > 0) this.#unattended--;
    if (records > 1) this.#vain = 0;
    else if (waited && ++this.#vain >= VAIN_MAX) this.#unattended = UNATTENDED;
  }
}
