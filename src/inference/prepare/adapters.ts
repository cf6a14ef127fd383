import type { Model } from '../../catalog/model.ts';
import type { Report } from '../../providers/dialect.ts';
import type { Candidate } from '../../routing/plan.ts';
import { contentsOf } from '../../schemas/contents.ts';
import type { ChatRequest } from '../../schemas/inner.ts';
import type { Call } from '../call.ts';
import type { CallResources } from '../tools/server-tools.ts';

/** A request for one endpoint, and the changes made for it. */
export interface Fitted {
  request: ChatRequest;
  report: readonly Report[];
}

/** Fits one call to the endpoints that are tried: a feature that the endpoint has itself is left to it, otherwise the gateway does the work. */
export interface CallAdapter {
  /**
   * Gets what `fit` needs for this endpoint, once a call. Undefined if there is nothing to wait for. Rejects with `GatewayError` as
   * encoding does, or `CallCancelled`. `isBeside`: the attempt is a hedge, which does not wait and for which nothing can be paid.
   */
  ready?(candidate: Candidate, isBeside?: boolean): Promise<void> | undefined;
  /** The same request object if nothing changes. */
  fit(request: ChatRequest, candidate: Candidate): Fitted;
}

/** What a request must have for a feature to concern it: files among its messages, or a field that can request a search. */
export type Subject = 'files' | 'search';

const NO_SUBJECTS: readonly Subject[] = [];

/** The subjects of a request. Most have none. */
export function subjectsOf(request: ChatRequest): readonly Subject[] {
  const { plugins, tools, web_search_options, x_search_filter } = request;
  const maySearch = (plugins ?? tools ?? web_search_options ?? x_search_filter) != null;
  const hasFiles = contentsOf(request).has_files;
  if (!hasFiles) return maySearch ? ['search'] : NO_SUBJECTS;
  return maySearch ? ['files', 'search'] : ['files'];
}

/** A feature that fits calls to endpoints. */
export interface Adapter {
  /** Applies only to requests with this subject. Not set: to all. */
  readonly of?: Subject;
  /** Creates the adapter of a call; undefined if the call does not need one. */
  create(call: Call, resources: CallResources): CallAdapter | undefined;
}

/** Several adapters of one call, applied in order. */
export function combineAdapters(adapters: readonly CallAdapter[]): CallAdapter {
  return {
    ready(candidate, isBeside) {
      let ready: Promise<void> | undefined;
      for (const adapter of adapters) {
        ready =
          ready === undefined
            ? adapter.ready?.(candidate, isBeside)
            : ready.then(() => adapter.ready?.(candidate, isBeside));
      }
      return ready;
    },
    fit(request, candidate) {
      const report: Report[] = [];
      let fitted = request;
      for (const adapter of adapters) {
        const result = adapter.fit(fitted, candidate);
        fitted = result.request;
        report.push(...result.report);
      }
      return { request: fitted, report };
    },
  };
}

/** A feature that changes calls before they are planned. */
export interface Preparation {
  /** Applies only to requests with this subject: a request without any needs no preparation. */
  readonly of: Subject;
  /**
   * Changes a call when its possible models are known. Returns the same call if nothing changes. Sends nothing. Rejects with
   * `GatewayError` 400 that names the field, or `CallCancelled`.
   */
  prepare(call: Call, models: readonly Model[]): Call | Promise<Call>;
}
