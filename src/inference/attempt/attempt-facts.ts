import type { AttemptRecord } from '../../ledger/records.ts';
import { toUsd } from '../../schemas/money.ts';

/** What an attempt did, waited for and cost, in the words of the API. */
export interface AttemptFacts {
  endpoint_id: string;
  /** Milliseconds from the send to the first of the answer, or to the failure. */
  latency: number | null;
  /** Milliseconds before sending: for the reservation of money, media and the journal. */
  wait: number;
  tokens_prompt: number | null;
  tokens_completion: number | null;
  /** USD; null where a price is not known. What the organization's own account was charged, where that was used. */
  cost: number | null;
  /** Its tokens or its cost were counted or estimated by the gateway. */
  estimated: boolean;
  /** Why the gateway moved on; null for the attempt that answered. */
  failure: string | null;
  /** It continued the text of the attempt before it. */
  continues: boolean;
  /** It was sent while the attempt before it was still running. */
  hedges: boolean;
  /** Which step of an answer with tools of the gateway's it was for, from 2 on. */
  step?: number;
}

/** The public form of what a record keeps of an attempt, beside whose endpoint and credential it was. */
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
