import type { Model } from '../../catalog/model.ts';
import type { Report } from '../../providers/dialect.ts';
import type { Candidate } from '../../routing/plan.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { Call } from '../call.ts';
import type { CallResources } from '../tools/server-tools.ts';

/** A request as one endpoint gets it, and what was changed of it for that. */
export interface Fitted {
  request: ChatRequest;
  report: readonly Report[];
}

/** What makes one call fit the endpoints that it is tried at: what the endpoint has of its own is left to it, the rest is done here. */
export interface CallAdapter {
  /**
   * Gets what `fit` needs for this endpoint, once a call. Undefined: nothing is to be waited for. Rejects with `GatewayError` as
   * encoding does, or `CallCancelled`. `is_beside`: another attempt is under way, which would not wait; nothing can be paid then.
   */
  ready?(candidate: Candidate, is_beside?: boolean): Promise<void> | undefined;
  /** The same request where nothing is to change. */
  fit(request: ChatRequest, candidate: Candidate): Fitted;
}

/** Looks at a call; undefined: it has nothing to do there. */
export type Adapter = (call: Call, resources: CallResources) => CallAdapter | undefined;

/** All adapters of one call as one, in order; undefined where none has anything to do. */
export function adapterFor(
  call: Call,
  resources: CallResources,
  adapters: readonly Adapter[],
): CallAdapter | undefined {
  let first: CallAdapter | undefined;
  let all: CallAdapter[] | undefined;
  for (const adapter of adapters) {
    const one = adapter(call, resources);
    if (one === undefined) continue;
    if (first === undefined) first = one;
    else if (all === undefined) all = [first, one];
    else all.push(one);
  }
  return all === undefined ? first : combined(all);
}

function combined(found: readonly CallAdapter[]): CallAdapter {
  return {
    ready(candidate, is_beside) {
      let waiting: Promise<void> | undefined;
      for (const one of found) {
        const before = waiting;
        waiting =
          before === undefined
            ? one.ready?.(candidate, is_beside)
            : before.then(() => one.ready?.(candidate, is_beside));
      }
      return waiting;
    },
    fit(request, candidate) {
      const report: Report[] = [];
      let fitted = request;
      for (const one of found) {
        const made = one.fit(fitted, candidate);
        fitted = made.request;
        report.push(...made.report);
      }
      return { request: fitted, report };
    },
  };
}

/**
 * Changes a call before it is planned, once it is known which models it may go to; the same call where there is nothing to change.
 * Nothing is sent yet. Rejects with `GatewayError` 400 that names the field, or `CallCancelled`.
 */
export type Preparation = (call: Call, models: readonly Model[]) => Call | Promise<Call>;

/** Two preparations as one. */
export function prepareInOrder(first: Preparation, second: Preparation): Preparation {
  return (call, models) => {
    const prepared = first(call, models);
    return prepared instanceof Promise ? prepared.then((one) => second(one, models)) : second(prepared, models);
  };
}
