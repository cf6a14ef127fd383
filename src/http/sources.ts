/**
 * An asynchronous sequence of values that separates waiting from reading: a value that passes through several sources costs one promise in
 * all, that of the wait.
 */
export interface Source<T extends object> {
  /** Resolves when a value can be read; undefined if one can be read already. Never rejects. One wait at a time. */
  ready(): Promise<void> | undefined;
  /** Called once after each wait. Returns the next value, or undefined if the received data was not enough for one or the source has ended. Throws the error of the source. */
  read(): T | undefined;
  /** Whether the source has ended. */
  readonly ended: boolean;
}

/** A source of events that its reader can end early (`return`), or report an unusable event to (`throw`). It is also a generator. */
export interface Events<T extends object> extends Source<T>, AsyncGenerator<T, void, undefined> {}

/**
 * The values of a generator, in which each source that the generator yields is replaced by its values, like `yield*`, but without a queue
 * per value. An error of a source is thrown into the generator. The generator continues when the source has ended.
 */
export function withSources<T extends object>(generator: AsyncGenerator<T | Source<T>, void, undefined>): Events<T> {
  return new SourceSequence(generator);
}

type Step<T> = Promise<IteratorResult<T, void>>;

class SourceSequence<T extends object> implements Events<T> {
  ended = false;
  readonly #generator: AsyncGenerator<T | Source<T>, void, undefined>;
  #source: Source<T> | undefined = undefined;
  #value: T | undefined = undefined;
  #failure: { error: unknown } | undefined = undefined;
  /** Pending while the generator handles the error of a source. */
  #recovery: Promise<void> | undefined = undefined;
  /** The last step: as in any generator, steps run one at a time. */
  #last: Step<T> | undefined = undefined;

  constructor(generator: AsyncGenerator<T | Source<T>, void, undefined>) {
    this.#generator = generator;
  }

  ready(): Promise<void> | undefined {
    if (this.#source?.ended === false) return this.#source.ready();
    if (this.#recovery !== undefined) return this.#recovery;
    if (this.#value !== undefined || this.#failure !== undefined || this.ended) return undefined;
    return this.#follow(this.#generator.next());
  }

  read(): T | undefined {
    if (this.#source !== undefined) {
      try {
        return this.#source.read();
      } catch (error) {
        this.#recovery = this.#follow(this.#generator.throw(error));
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
    await this.#follow(this.#generator.return());
    return this.#next();
  }

  async throw(error: unknown): Step<T> {
    await this.#last?.catch(() => undefined);
    await this.#follow(this.#generator.throw(error));
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
      const ready = this.ready();
      if (ready !== undefined) await ready;
      const value = this.read();
      if (value !== undefined) return { done: false, value };
      if (this.ended) return { done: true, value: undefined };
    }
  }

  /** Waits for a step of the generator: its next value, or a source and the source's first value. */
  async #follow(step: Promise<IteratorResult<T | Source<T>, void>>): Promise<void> {
    this.#source = undefined;
    this.#value = undefined;
    this.#failure = undefined;
    try {
      const { done, value } = await step;
      if (done === true) this.ended = true;
      else if ('ready' in value) {
        const ready = value.ready();
        if (ready !== undefined) await ready;
        this.#source = value;
      } else this.#value = value;
    } catch (error) {
      this.ended = true;
      this.#failure = { error };
    }
    this.#recovery = undefined;
  }
}
