import type { Hold } from '../ledger/leases/hold.ts';
import type { Charge } from '../ledger/prices/charge.ts';
import type { AttemptRecord, FeeRecord, GenerationRecord, OpenRecord, RoutingRecord } from '../ledger/records.ts';
import type { Report } from '../providers/dialect.ts';
import type { Candidate, Plan } from '../routing/plan.ts';
import type { ChatCompletion, TokenClasses } from '../schemas/inner.ts';
import type { FailedAttempt } from './attempt/failure.ts';
import type { Call } from './call.ts';
import type { Grant, Prepared } from './money/admission.ts';
import type { Meter } from './money/meter.ts';
import type { ShownAttempt } from './observe/metadata.ts';
import type { RateLimitReservation } from './plan/rate-limit-reservation.ts';
import type { ModelSource, Requested } from './plan/requested-models.ts';
import type { SessionAffinity } from './plan/session-affinity.ts';
import type { Fitting } from './prepare/fitting.ts';
import type { SentBody } from './stream-answer.ts';

/** Follows one call while it is answered: what the pipeline is to the engine. */
export interface AnswerWatch {
  /** Whether the client gets no more of its answer: the rest need not be made. */
  readonly isWithheld: boolean;
  /** A whole answer before it is settled, so that its record has what is found in it. */
  review(completion: ChatCompletion): void;
  /** The call has ended, before its client sees the end; undefined: a fault of the gateway's kept its record from being made. */
  settled(record: GenerationRecord | undefined): void;
}

/** Everything one call gathers on its way. */
export interface CallState {
  call: Call;
  /** What follows the call beside its engine; undefined: nothing does. */
  watch: AnswerWatch | undefined;
  /** What could be called when the call came, at the prices that it keeps. */
  catalog: ModelSource;
  plan: Plan;
  requested: string;
  /** What each of the client's names stands for. */
  names?: Requested['names'];
  /** Where its conversation is at home, and is told of the answer. */
  home?: SessionAffinity | undefined;
  /** As its record keeps it, and what was used, once the call has ended. */
  routing: RoutingRecord | undefined;
  usage: TokenClasses | null;
  record: OpenRecord | undefined;
  /** What it was counted with against rate limits. */
  reservation: RateLimitReservation;
  /** What is set aside for the call, in every budget that it counts against. */
  hold: Hold;
  /** What the last attempt was let in with; undefined where no budget counts it. */
  grant: Grant | undefined;
  attempts: AttemptRecord[];
  /** Attempts that made a part of the answer, before the one under way. */
  parts: Part[];
  /** What was paid for beside the attempts. */
  fees: FeeRecord[];
  /** Which turn of the model is under way, from 1: with tools of the gateway's an answer may take several. */
  step: number;
  /** Calls of such tools; absent: there are none of them. */
  tool_calls?: { requested: number; executed: number } | undefined;
  shown: ShownAttempt[];
  failed: FailedAttempt[];
  /** What was changed of the request wherever it goes. */
  told: readonly Report[];
  /** What the last attempt changed. */
  report: Report[];
  bodies: SentBody[];
  /** The tier that the last one asked for. */
  service_tier: string | undefined;
  /** Whether the attempt under way got as far as being sent. */
  is_sent: boolean;
  /** Monotonic time of the last send. */
  sent_ms: number;
  /** Milliseconds between the beginning of the last attempt and its send. */
  waited_ms: number;
  /** What it was granted, where another was let in after it; undefined: what `hold` says. */
  granted_nano: number | undefined;
  /** Where among `attempts` it stands already; undefined: nowhere yet. */
  assumed_at: number | undefined;
  /** The output that it is charged for where nobody saw its end and nothing was set aside for it. */
  presumed_output: number;
  /** It was sent beside another. */
  is_hedge: boolean;
  first_token_ms: number | undefined;
  /** What fits its requests to endpoints, and what was fetched for them: the same for all its steps. */
  fitting?: Fitting | undefined;
  /** The same of the step under way, where it is not the first. */
  step_first_token_ms?: number | undefined;
}

/** Whether the client of a call gets no more of its answer. */
export function isWithheld({ watch }: CallState): boolean {
  return watch?.isWithheld === true;
}

/** The attempt that answered, and what came of it. */
export interface Answered {
  meter: Account;
  candidate: Candidate;
  prepared: Prepared;
  attempt: AttemptRecord;
  /** Nobody was told its end, and the provider may go on and bill it: closing the connection does not end that. */
  may_go_on?: boolean;
}

/** An attempt that made a part of the answer: what of it was used, and costs. */
export interface Part {
  candidate: Candidate;
  /** It broke off in the middle of its answer. */
  is_broken: boolean;
  record: OpenRecord | undefined;
  sent_ms: number;
  usage: TokenClasses | null;
  charge: Charge;
}

/** What an answer says of itself at its end. */
export type Account = Pick<Meter, 'usage' | 'finish_reason' | 'native_finish_reason' | 'service_tier' | 'upstream_id'> &
  Partial<Pick<Meter, 'toolCalls' | 'reported'>>;

/** What the gateway's own tools did for an answer. */
export interface ToolUse {
  web_search_requests: number;
  tool_calls_requested: number;
  tool_calls_executed: number;
}
