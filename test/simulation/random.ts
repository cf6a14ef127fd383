/** Random numbers that a seed repeats exactly. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
    // Skipped, because the first numbers of neighbouring seeds are similar.
    for (let skipped = 0; skipped < 8; skipped++) this.next();
  }

  /** From 0 up to 1, without 1, by mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  between(least: number, most: number): number {
    return least + this.next() * (most - least);
  }

  /** An integer, both ends included. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  /** Mostly near `least`, sometimes far above. */
  longTailed(least: number, typical: number, most: number): number {
    return this.chance(0.9) ? this.between(least, typical) : this.between(typical, most);
  }

  pick<T>(list: readonly T[]): T {
    const picked = list[Math.floor(this.next() * list.length)];
    if (picked === undefined) throw new Error('There is nothing to pick from');
    return picked;
  }
}
