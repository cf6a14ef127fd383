import type { Hold } from '../ledger/hold.ts';
import type { Recorder } from '../ledger/recorder.ts';
import type { AttemptRecord, GenerationRecord } from '../ledger/records.ts';
import type { Report } from '../providers/dialect.ts';
import type { Candidate, Plan } from '../routing/plan.ts';
import type { TokenClasses } from '../schemas/inner.ts';
import type { JsonObject } from '../schemas/json.ts';
import { toUsd } from '../schemas/money.ts';
import { inputTokens, outputTokens, type PublicUsage, publicUsage } from '../schemas/usage.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { PreparedAttempt } from './attempt.ts';
import type { Call, Clock } from './call.ts';
import type { FailedAttempt } from './failure.ts';
import { closeRecord, type PricesOf, priceAttempt } from './generation.ts';
import type { ShownAttempt } from './metadata.ts';
import type { Meter } from './meter.ts';
import type { ModelSource } from './requested-models.ts';

/** The public usage with what it cost, in USD. */
export interface AnswerUsage extends PublicUsage {
  cost: number;
  is_byok: boolean;
  cost_details: {
    upstream_inference_cost: number | null;
    upstream_inference_prompt_cost: number;
    upstream_inference_completions_cost: number;
  };
}

/** Everything one call gathers on its way. */
export interface Session {
  call: Call;
  plan: Plan;
  requested: string;
  record: GenerationRecord | undefined;
  /** What is set aside for the call, in every budget that it counts against. */
  hold: Hold;
  attempts: AttemptRecord[];
  shown: ShownAttempt[];
  failed: FailedAttempt[];
  report: Report[];
  bodies: JsonObject[];
  /** Monotonic time of the last send. */
  sent_ms: number;
  first_token_ms: number | undefined;
}

/** The attempt that answered, and what came of it. */
export interface Answered {
  meter: Meter;
  candidate: Candidate;
  prepared: PreparedAttempt;
  attempt: AttemptRecord;
}

const NO_USAGE: AnswerUsage = {
  ...publicUsage({}),
  cost: 0,
  is_byok: false,
  cost_details: {
    upstream_inference_cost: null,
    upstream_inference_prompt_cost: 0,
    upstream_inference_completions_cost: 0,
  },
};

/** What is left of a call: each attempt noted, and one record written at its end. */
export interface Settlement {
  note(session: Session, candidate: Candidate, facts: { status: number | null; failure: string | null }): AttemptRecord;
  /** Writes the record, once a call; the journal has it when this resolves. */
  settle(session: Session, outcome: GenerationRecord['outcome'], answered: Answered | undefined): Promise<AnswerUsage>;
}

export function createSettlement(options: {
  catalog(): ModelSource;
  recorder: Recorder;
  clock: Clock;
  metrics: Metrics;
}): Settlement {
  const { clock, metrics, recorder } = options;
  // Rare (a provider that ran a second model inside a call), so a scan will do.
  const pricesOf: PricesOf = (provider, upstream_model) => {
    for (const model of options.catalog().models()) {
      for (const endpoint of model.endpoints) {
        if (endpoint.provider === provider && endpoint.upstream_model === upstream_model) return endpoint.pricing;
      }
    }
    return undefined;
  };

  function note(
    session: Session,
    candidate: Candidate,
    facts: { status: number | null; failure: string | null },
  ): AttemptRecord {
    const attempt: AttemptRecord = {
      endpoint_id: candidate.endpoint.id,
      provider_name: candidate.provider.name,
      model_permaslug: candidate.model.canonical_slug,
      status: facts.status,
      latency: Math.round(clock.monotonic_ms() - session.sent_ms),
      is_byok: false,
      upstream_id: null,
      failure: facts.failure,
      cost_nano: 0,
    };
    session.attempts.push(attempt);
    session.shown.push({ provider: candidate.provider.name, model: candidate.model.id, status: facts.status ?? 0 });
    // One that answered may still break off: it is counted when its end is known.
    if (facts.failure !== null) metrics.attempt(candidate.provider.slug, facts.failure);
    return attempt;
  }

  async function settle(
    session: Session,
    outcome: GenerationRecord['outcome'],
    answered: Answered | undefined,
  ): Promise<AnswerUsage> {
    const { record, call } = session;
    if (record === undefined) return NO_USAGE;
    const now = clock.monotonic_ms();
    const usage: TokenClasses | null = answered?.meter.usage(answered.prepared.request) ?? null;
    const candidate = answered?.candidate ?? session.plan.attempts[0];
    if (candidate === undefined) return NO_USAGE;
    const charge = priceAttempt(usage, call.request, candidate, pricesOf);
    if (answered) {
      metrics.attempt(candidate.provider.slug, answered.attempt.failure ?? 'answered');
      answered.attempt.cost_nano = charge.cost_nano;
      answered.attempt.upstream_id = answered.meter.upstream_id;
    }
    const latency = session.first_token_ms === undefined ? null : session.first_token_ms - call.accepted_monotonic_ms;
    const closed = closeRecord(record, {
      meter: answered?.meter,
      usage,
      charge,
      attempts: session.attempts,
      outcome,
      latency: latency === null ? null : Math.round(latency),
      generation_time: answered ? Math.round(now - session.sent_ms) : null,
    });
    metrics.generation({
      model: closed.model,
      provider: candidate.provider.slug,
      outcome,
      prompt_tokens: usage === null ? 0 : inputTokens(usage),
      completion_tokens: usage === null ? 0 : outputTokens(usage),
      cost_usd: toUsd(closed.cost_nano),
      first_token_s: latency === null ? undefined : latency / 1000,
    });
    await recorder.outcome(closed, session.hold);
    if (usage === null) return NO_USAGE;
    return {
      ...publicUsage(usage),
      cost: toUsd(charge.cost_nano),
      is_byok: false,
      cost_details: {
        upstream_inference_cost: null,
        upstream_inference_prompt_cost: toUsd(charge.input_nano),
        upstream_inference_completions_cost: toUsd(charge.output_nano),
      },
    };
  }

  return { note, settle };
}
