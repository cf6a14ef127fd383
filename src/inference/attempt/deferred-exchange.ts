import type { Exchange, UpstreamResponse } from '../../providers/transport/upstream.ts';

/**
 * An exchange that begins when `ready` resolves. If it is aborted before that, it never begins. If `ready` rejects, the exchange
 * fails with that error.
 */
export class DeferredExchange<T> implements Exchange {
  readonly response: Promise<UpstreamResponse>;
  #begun: Exchange | undefined;
  #failed = false;
  readonly #reject: (reason: Error) => void;

  constructor(ready: Promise<T>, begin: (value: T) => Exchange) {
    const { promise, resolve, reject } = Promise.withResolvers<UpstreamResponse>();
    this.response = promise;
    this.#reject = (reason) => {
      this.#failed = true;
      reject(reason);
    };
    // After an abort, nothing may be waiting for the response.
    promise.catch(() => undefined);
    ready
      .then((value) => {
        if (this.#failed) return;
        this.#begun = begin(value);
        this.#begun.response.then(resolve, reject);
      })
      .catch((error: unknown) => this.#reject(error instanceof Error ? error : new Error(String(error))));
  }

  get ended(): boolean {
    return this.#failed || (this.#begun?.ended ?? false);
  }

  abort(reason: Error): void {
    if (this.#begun !== undefined) this.#begun.abort(reason);
    else if (!this.#failed) this.#reject(reason);
  }
}
