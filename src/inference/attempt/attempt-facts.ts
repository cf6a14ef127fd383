import type { AttemptRecord } from '../../ledger/records.ts';
import { toUsd } from '../../schemas/money.ts';

/** The facts of one attempt that clients and operators are shown. */
export interface AttemptFacts {
  endpoint_id: string;
  /** Milliseconds from the send to the first of the answer, or to the failure. */
  latency: number | null;
  /** Milliseconds before sending: for the reservation of money, media and the journal. */
  wait: number;
  tokens_prompt: number | null;
  tokens_completion: number | null;
  /** USD; null if a price is not known. With an own credential, the charge of the organization's account. */
  cost: number | null;
  /** The gateway counted or estimated its tokens or cost. */
  estimated: boolean;
  /** The failure of the attempt; null for the attempt that answered. */
  failure: string | null;
  /** It continued the text of the attempt before it. */
  continues: boolean;
  /** It was sent while the attempt before it was still running. */
  hedges: boolean;
  /** The step of an answer with tools of the gateway, from 2. */
  step?: number;
}

/** The public form of an attempt's record, without its endpoint and credential. */
export function attemptFacts(attempt: AttemptRecord): AttemptFacts {
  const { endpoint_id, latency, wait = 0, tokens, cost_nano, estimated, failure, continues, hedges, step } = attempt;
  return {
    endpoint_id,
    latency,
    wait,
    tokens_prompt: tokens?.[0] ?? null,
    tokens_completion: tokens?.[1] ?? null,
    cost: attempt.is_unpriced ? null : toUsd(cost_nano),
    estimated: estimated === true,
    failure,
    continues: continues === true,
    hedges: hedges === true,
    ...(step === undefined ? {} : { step }),
  };
}
