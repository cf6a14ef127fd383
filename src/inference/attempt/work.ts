import type { Candidate } from '../../routing/plan.ts';
import type { TokenClasses } from '../../schemas/inner.ts';
import type { Call, Cancellation } from '../call.ts';
import type { Measure, Prepared } from '../money/admission.ts';
import type { Account, Attempt } from '../state.ts';
import type { SpendBound } from './prepare-attempt.ts';

/** The work of the attempts of one operation. `P`: the prepared request, `T`: the answer of an endpoint, `M`: the reader of its usage. */
export interface Work<P extends Prepared, T, M extends Account = Account> {
  /** The call with the request that its attempts send. */
  readonly call: Call;
  /**
   * Gets the data for encoding for this endpoint. Undefined if there is nothing to wait for. Throws `GatewayError` as `prepare` does,
   * or `CallCancelled`. `isBeside`: for an attempt beside another, which is not sent if anything has to be waited for.
   */
  ready?(candidate: Candidate, isBeside?: boolean): Promise<void> | undefined;
  /** There is nothing to get for any endpoint: `ready` need not be called. */
  readonly needsNothing?: boolean;
  /** Encodes the request for one endpoint. Throws `GatewayError` 400 if its wire cannot carry the request; another wire may. */
  prepare(candidate: Candidate, stripState: boolean, spend?: SpendBound): P | Promise<P>;
  /** The worst-case cost of an attempt. */
  measure: Measure<P>;
  /** Sends a durable attempt and resolves as soon as it is certain that its endpoint answers. Throws `UpstreamError` or `CallCancelled`. */
  send(attempt: Attempt<P, M>, cancellation?: Cancellation): Promise<T>;
  /** `send` resolves with the beginning of an answer, which may still break off. */
  readonly mayBreakOff?: boolean;
  /** Closes an answer that is not used and returns its usage. Without it an attempt cannot be hedged. */
  discard?(value: T, attempt: Attempt<P, M>): TokenClasses | null;
}

/** An endpoint that answered. */
export interface Reached<P extends Prepared, T, M extends Account = Account> {
  value: T;
  attempt: Attempt<P, M>;
}

/**
 * Why no endpoint answered. `unsent`: the next attempt was refused before its send; `failed`: every attempt failed;
 * `cancelled`: the call was cancelled; `internal`: a fault of the gateway.
 */
export interface Ended {
  ended: 'unsent' | 'failed' | 'cancelled' | 'internal';
  error: unknown;
}
