/**
 * Values that come with time. It is waited for what comes, and what has come is taken: a value that passes through several
 * sources takes one promise in all, that of its wait.
 */
export interface Source<T extends object> {
  /** Resolves when something can be taken; undefined: it can already. Never rejects. One wait at a time. */
  coming(): Promise<void> | undefined;
  /** Asked once after each wait: the next value; undefined: it was not enough for one, or there are no more. Throws what the source failed with. */
  take(): T | undefined;
  /** No more values come. */
  readonly ended: boolean;
}

/** A source of events whose reader may end it early, or tell it of one that cannot be used. It can be read as a generator as well. */
export interface Events<T extends object> extends Source<T>, AsyncGenerator<T, void, undefined> {}

/**
 * The values of a generator, and in their place those of the sources that it yields: what `yield*` is for, without the queues
 * through which that hands on every single value. What a source throws is thrown into the generator, which goes on when the
 * source is at its end.
 */
export function withSources<T extends object>(course: AsyncGenerator<T | Source<T>, void, undefined>): Events<T> {
  return new Sourced(course);
}

type Step<T> = Promise<IteratorResult<T, void>>;

class Sourced<T extends object> implements Events<T> {
  ended = false;
  readonly #course: AsyncGenerator<T | Source<T>, void, undefined>;
  #source: Source<T> | undefined = undefined;
  #value: T | undefined = undefined;
  #failure: { error: unknown } | undefined = undefined;
  /** The generator is at work, because a source of its has failed. */
  #going: Promise<void> | undefined = undefined;
  /** As of every generator, one step is taken at a time. */
  #last: Step<T> | undefined = undefined;

  constructor(course: AsyncGenerator<T | Source<T>, void, undefined>) {
    this.#course = course;
  }

  coming(): Promise<void> | undefined {
    if (this.#source?.ended === false) return this.#source.coming();
    if (this.#going !== undefined) return this.#going;
    if (this.#value !== undefined || this.#failure !== undefined || this.ended) return undefined;
    return this.#follow(this.#course.next());
  }

  take(): T | undefined {
    if (this.#source !== undefined) {
      try {
        return this.#source.take();
      } catch (error) {
        this.#going = this.#follow(this.#course.throw(error));
        return undefined;
      }
    }
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure.error;
    const value = this.#value;
    this.#value = undefined;
    return value;
  }

  next(): Step<T> {
    this.#last = this.#next();
    return this.#last;
  }

  async return(): Step<T> {
    await this.#last?.catch(() => undefined);
    await this.#follow(this.#course.return());
    return this.#next();
  }

  async throw(error: unknown): Step<T> {
    await this.#last?.catch(() => undefined);
    await this.#follow(this.#course.throw(error));
    return this.#next();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  async #next(): Step<T> {
    for (;;) {
      const coming = this.coming();
      if (coming !== undefined) await coming;
      const value = this.take();
      if (value !== undefined) return { done: false, value };
      if (this.ended) return { done: true, value: undefined };
    }
  }

  /** The generator goes on: to its next value, or to a source that it names, of which the first value is waited for. */
  async #follow(step: Promise<IteratorResult<T | Source<T>, void>>): Promise<void> {
    this.#source = undefined;
    this.#value = undefined;
    this.#failure = undefined;
    try {
      const { done, value } = await step;
      if (done === true) this.ended = true;
      else if ('coming' in value) {
        const coming = value.coming();
        if (coming !== undefined) await coming;
        this.#source = value;
      } else this.#value = value;
    } catch (error) {
      this.ended = true;
      this.#failure = { error };
    }
    this.#going = undefined;
  }
}
