/** Gives one value at a time, undefined when there are no more. */
export type Source<T> = () => Promise<T | undefined>;

/**
 * The values of a generator, and in their place those of the sources that it yields: what `yield*` is for, without the queues
 * through which that hands on every single value. What a source throws is thrown into the generator, which goes on when the
 * source is at its end.
 */
export function withSources<T extends object>(
  course: AsyncGenerator<T | Source<T>, void, undefined>,
): AsyncGenerator<T, void, undefined> {
  return new Sourced(course);
}

type Step<T> = Promise<IteratorResult<T, void>>;

class Sourced<T extends object> implements AsyncGenerator<T, void, undefined> {
  readonly #course: AsyncGenerator<T | Source<T>, void, undefined>;
  #source: Source<T> | undefined;
  /** As of every generator, one step is taken at a time. */
  #last: Step<T> | undefined;

  constructor(course: AsyncGenerator<T | Source<T>, void, undefined>) {
    this.#course = course;
  }

  next(): Step<T> {
    this.#last = this.#advance();
    return this.#last;
  }

  async return(): Step<T> {
    await this.#last?.catch(() => undefined);
    return this.#follow(this.#course.return());
  }

  async throw(error: unknown): Step<T> {
    await this.#last?.catch(() => undefined);
    return this.#follow(this.#course.throw(error));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  async #advance(): Step<T> {
    if (this.#source !== undefined) {
      try {
        const value = await this.#source();
        if (value !== undefined) return { done: false, value };
      } catch (error) {
        return this.#follow(this.#course.throw(error));
      }
    }
    return this.#follow(this.#course.next());
  }

  /** The generator goes on: what it says next, or the first value of a source that it names. */
  async #follow(going: Promise<IteratorResult<T | Source<T>, void>>): Step<T> {
    this.#source = undefined;
    const step = await going;
    if (step.done === true) return step;
    if (typeof step.value !== 'function') return { done: false, value: step.value };
    this.#source = step.value;
    return this.#advance();
  }
}
