import type { Charge } from '../../ledger/prices/charge.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import type { AttemptRecord, FeeRecord, GenerationRecord, OpenRecord } from '../../ledger/records.ts';
import type { Candidate } from '../../routing/plan.ts';
import { choicesOf } from '../../schemas/by-choice.ts';
import type { FinishReason, TokenClasses } from '../../schemas/inner.ts';
import { toUsd } from '../../schemas/money.ts';
import { inputTokens, outputTokens, type PublicUsage, publicUsage, sumClasses } from '../../schemas/usage.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { Clock } from '../call.ts';
import type { Answered, CallState, Part, ToolUse } from '../call-state.ts';
import { type ShownAttempt, shownOwn } from '../observe/metadata.ts';
import { routingRecord } from '../observe/routing-record.ts';
import type { AnswerFacts, Traffic } from '../observe/traffic.ts';
import type { RateLimitReservation } from '../plan/rate-limit-reservation.ts';
import type { SpendingRules } from './admission.ts';
import { boundedWord, closeRecord, type PricesOf, priceAttempt } from './generation.ts';
import { estimatePrompt, type Meter } from './meter.ts';
import type { UsualOutput } from './presumed-cost.ts';

/** The public usage with what it cost, in USD. */
export interface AnswerUsage extends PublicUsage {
  /** Absent where a price is not known, so that the cost is not either. */
  cost?: number;
  is_byok: boolean;
  cost_details?: {
    upstream_inference_cost: number | null;
    upstream_inference_prompt_cost: number;
    upstream_inference_completions_cost: number;
  };
  server_tool_use_details?: ToolUse;
}

/** What an answer says that nothing was used for. */
export const NO_USAGE: AnswerUsage = {
  ...publicUsage({}),
  cost: 0,
  is_byok: false,
  cost_details: {
    upstream_inference_cost: null,
    upstream_inference_prompt_cost: 0,
    upstream_inference_completions_cost: 0,
  },
};

/** How an attempt ended. */
export interface AttemptEnd {
  status: number | null;
  failure: string | null;
  /** It was sent, and nobody can say whether the provider answered and bills it. */
  is_unknown?: boolean;
  /** What of it was answered all the same, and is billed. */
  used?: TokenClasses | null | undefined;
}

/** How a call ends, and by which attempt. */
interface Closing {
  outcome: GenerationRecord['outcome'];
  finish_reason: FinishReason | undefined;
  answered: Answered | undefined;
  candidate: Candidate;
}

/** What is left of a call: each attempt noted, and one record written at its end. */
export interface Settlement {
  /** Also keeps aside what the attempt may have cost, if it failed. */
  note(session: CallState, candidate: Candidate, end: AttemptEnd): AttemptRecord;
  /**
   * Another attempt is to be sent beside the one under way: until its end is noted it counts as if nobody would ever know
   * that end. What comes back is where it stands among the attempts.
   */
  assume(session: CallState, candidate: Candidate): number;
  /** The other attempt is not sent after all. */
  unassume(session: CallState, at: number): void;
  /** What an answer has used and cost until now. */
  soFar(session: CallState, answered: Answered & { meter: Meter }): { usage: TokenClasses; cost_nano: number };
  /** An answer broke off, and another attempt is to go on with it: it is charged, and no more said of its end. */
  breakOff(session: CallState, answered: Answered, failure: string): void;
  /** A step of the answer has come to its end, and another is to follow: it is charged. */
  endStep(session: CallState, answered: Answered): void;
  /**
   * Writes the record, once a call; the journal has it when this resolves. `finish_reason`: how the answer ended, where that is
   * not what its last attempt says.
   */
  settle(
    session: CallState,
    outcome: GenerationRecord['outcome'],
    answered: Answered | undefined,
    finish_reason?: FinishReason,
  ): Promise<AnswerUsage>;
}

/** How an attempt of which nothing more was heard stands in a record: as after a crash. */
const ASSUMED = 'gateway_gone';

/** Where what an operator should look at is told. */
export interface SettlementLog {
  warn(facts: object, message: string): void;
}

/** The tier that served an attempt: what the upstream told, else what it was sent. */
function tierOf({ meter, prepared }: Answered): string | null {
  return meter.service_tier ?? prepared.service_tier ?? null;
}

/** What the client is told: of all parts of the answer, those at the organization's own accounts apart. */
function answerUsage(
  { usage, parts }: { usage: TokenClasses | null; parts: readonly Pick<Part, 'candidate' | 'charge'>[] },
  { own }: Candidate,
  { fees, tool_calls }: CallState,
): AnswerUsage {
  const is_byok = own !== undefined;
  let cost_nano = 0;
  for (const fee of fees) cost_nano += fee.cost_nano;
  if (usage === null) return { ...NO_USAGE, cost: toUsd(cost_nano), is_byok };
  let their_nano = 0;
  let theirs = 0;
  let input_nano = 0;
  let output_nano = 0;
  let is_unpriced = false;
  for (const { candidate, charge } of parts) {
    if (candidate.own === undefined) cost_nano += charge.cost_nano;
    else {
      theirs += 1;
      their_nano += charge.cost_nano;
    }
    input_nano += charge.input_nano;
    output_nano += charge.output_nano;
    is_unpriced ||= charge.is_unpriced;
  }
  const told = publicUsage(usage) as AnswerUsage;
  if (!is_unpriced || theirs === parts.length) told.cost = toUsd(cost_nano);
  told.is_byok = is_byok;
  if (!is_unpriced) {
    told.cost_details = {
      upstream_inference_cost: theirs === 0 ? null : toUsd(their_nano),
      upstream_inference_prompt_cost: toUsd(input_nano),
      upstream_inference_completions_cost: toUsd(output_nano),
    };
  }
  if (tool_calls !== undefined) {
    told.server_tool_use_details = {
      web_search_requests: usage.counts?.web_search ?? 0,
      tool_calls_requested: tool_calls.requested,
      tool_calls_executed: tool_calls.executed,
    };
  }
  return told;
}

/** Says to whoever follows a call that it has ended. */
function settledAs({ call, watch }: CallState, record: GenerationRecord | undefined): void {
  watch?.settled(record);
  call.settled?.(record);
}

/** What of a call was used in all: by what made the answer, and beside it. */
function allUsed(parts: readonly Pick<Part, 'usage'>[], fees: readonly FeeRecord[]): TokenClasses | null {
  const [only] = parts;
  if (parts.length === 1 && fees.length === 0 && only !== undefined) return only.usage;
  const told: TokenClasses[] = [];
  for (const { usage } of parts) if (usage !== null) told.push(usage);
  for (const { counts } of fees) if (counts !== undefined) told.push({ counts });
  return told.length > 1 ? sumClasses(told) : (told[0] ?? null);
}

/** What rate limits count of a call: what came of it, or what was set aside where its client left before that is known. */
function endReservation(
  reservation: RateLimitReservation,
  { outcome, answered, candidate }: Closing,
  usage: TokenClasses | null,
): void {
  if (usage !== null) reservation.commit(inputTokens(usage) + outputTokens(usage), candidate.model.id);
  else if (answered === undefined && outcome === 'cancelled') reservation.commitInFull();
  else reservation.commit(0, undefined);
}

export function createSettlement(options: {
  recorder: Recorder;
  clock: Clock;
  metrics: Metrics;
  log: SettlementLog;
  rules: SpendingRules;
  traffic: Traffic;
  usual: Pick<UsualOutput, 'note'>;
}): Settlement {
  const { clock, metrics, recorder, rules, log, traffic, usual } = options;

  // Rare (a provider that ran a second model inside a call), so a scan will do.
  function pricesOf({ catalog }: CallState): PricesOf {
    return (provider, upstream_model) => {
      for (const model of catalog.models()) {
        for (const endpoint of model.endpoints) {
          if (endpoint.provider === provider && endpoint.upstream_model === upstream_model) return endpoint;
        }
      }
      return undefined;
    };
  }

  /**
   * What an attempt may have been billed whose end nobody knows: all that was set aside; where nothing was, the prompt and the
   * usual answer if it is still under way, the prompt alone if this process saw it fail.
   */
  function unknownCost(session: CallState, candidate: Candidate, is_under_way = false): Partial<AttemptRecord> {
    const { call, grant, hold, presumed_output } = session;
    if (grant !== undefined && !(grant.mode === 'soft' && rules.unknown_outcome === 'metered'))
      return { cost_nano: session.granted_nano ?? hold.granted_nano };
    const usage = call.estimate?.() ?? { in_uncached: estimatePrompt(call.request) };
    const is_whole = is_under_way && presumed_output > 0;
    return usedCost(session, candidate, is_whole ? { ...usage, out_text: presumed_output } : usage);
  }

  /**
   * A strict limit is charged what a provider reports, and of our own estimate no more than was set aside: an estimate is no bill, and
   * only a bill may pass a limit. What the provider did report is the least.
   */
  function boundEstimate(
    { grant, granted_nano, hold }: CallState,
    usage: TokenClasses | null,
    charge: Charge,
    reported_nano: number,
  ): Charge {
    if (usage?.estimated !== true || grant?.mode !== 'strict') return charge;
    const most_nano = Math.max(granted_nano ?? hold.granted_nano, reported_nano);
    if (charge.cost_nano <= most_nano) return charge;
    const input_nano = Math.min(charge.input_nano, most_nano);
    const output_nano = Math.min(charge.output_nano, most_nano - input_nano);
    return { ...charge, cost_nano: most_nano, input_nano, output_nano };
  }

  function usedCost(session: CallState, candidate: Candidate, usage: TokenClasses): Partial<AttemptRecord> {
    const { request } = session.call;
    const counted = priceAttempt(usage, request, candidate, pricesOf(session), session.service_tier);
    const charge = boundEstimate(session, usage, counted, 0);
    return {
      cost_nano: charge.cost_nano,
      tokens: [inputTokens(usage), outputTokens(usage)],
      charges: charge.lines,
      ...(charge.is_unpriced ? { is_unpriced: true } : {}),
      ...(usage.estimated ? { estimated: true } : {}),
    };
  }

  /** What an attempt that did not answer is charged: what of it was billed; where its end is not known the most of both. */
  function endCost(
    session: CallState,
    candidate: Candidate,
    { failure, is_unknown = false, used }: AttemptEnd,
  ): Partial<AttemptRecord> | undefined {
    const billed = used ? usedCost(session, candidate, used) : undefined;
    if (!is_unknown) return billed;
    const unknown = unknownCost(session, candidate, failure === ASSUMED);
    const most = billed !== undefined && (billed.cost_nano ?? 0) > (unknown.cost_nano ?? 0) ? billed : unknown;
    return { ...most, estimated: true };
  }

  /** A fault of ours in what ends a call must not leave its money set aside, nor uncounted. */
  function lost(session: CallState, fault: unknown): unknown {
    void recorder.lose(session.hold);
    settledAs(session, undefined);
    return fault;
  }

  const note: Settlement['note'] = (session, candidate, end) => {
    try {
      return noted(session, candidate, end);
    } catch (error) {
      throw lost(session, error);
    }
  };

  function noted(session: CallState, candidate: Candidate, end: AttemptEnd) {
    const { status, failure } = end;
    const { provider, model, endpoint, own } = candidate;
    const wait = Math.round(session.waited_ms);
    const attempt: AttemptRecord = {
      endpoint_id: endpoint.id,
      provider_name: provider.name,
      model_permaslug: model.canonical_slug,
      status,
      latency: Math.round(clock.monotonic_ms() - session.sent_ms),
      is_byok: own !== undefined,
      upstream_id: null,
      failure,
      cost_nano: 0,
    };
    if (wait !== 0) attempt.wait = wait;
    if (own !== undefined) attempt.byok_id = own.id;
    if (session.parts.at(-1)?.is_broken === true) attempt.continues = true;
    if (session.step !== 1) attempt.step = session.step;
    if (session.is_hedge) attempt.hedges = true;
    const cost = endCost(session, candidate, end);
    if (cost !== undefined) Object.assign(attempt, cost);
    const at = session.assumed_at ?? session.attempts.length;
    session.assumed_at = undefined;
    const more_nano = attempt.cost_nano - (session.attempts[at]?.cost_nano ?? 0);
    if (more_nano !== 0) recorder.keep(session.hold, more_nano, attempt.is_byok);
    session.attempts[at] = attempt;
    const shown: ShownAttempt = { provider: provider.name, model: model.id, status: status ?? 0, is_byok: false };
    session.shown[at] = own === undefined ? shown : Object.assign(shown, shownOwn(own));
    // One that answered may still break off: it is counted when its end is known.
    if (failure !== null && failure !== ASSUMED) metrics.attempt(provider.slug, failure);
    return attempt;
  }

  const assume: Settlement['assume'] = (session, candidate) => {
    const at = session.attempts.length;
    note(session, candidate, { status: null, failure: ASSUMED, is_unknown: true });
    return at;
  };

  const unassume: Settlement['unassume'] = (session, at) => {
    const [attempt] = session.attempts.splice(at, 1);
    session.shown.splice(at, 1);
    if (attempt !== undefined && attempt.cost_nano !== 0) {
      recorder.keep(session.hold, -attempt.cost_nano, attempt.is_byok);
    }
  };

  function soFar(session: CallState, answered: Answered & { meter: Meter }) {
    const { request } = session.call;
    const usage = answered.meter.progress(request);
    const charge = priceAttempt(usage, request, answered.candidate, pricesOf(session), tierOf(answered));
    return { usage, cost_nano: charge.cost_nano };
  }

  /** An answer that went past what was set aside: a provider that keeps no bound, or a prompt that counts more than it should. */
  function tellOverrun(session: CallState, candidate: Candidate, usage: TokenClasses, cost_nano: number): void {
    const { grant, hold, call, report } = session;
    if (grant === undefined) return;
    const tokens = outputTokens(usage);
    // Our own count may be off by some.
    const is_over = usage.estimated !== true && tokens > grant.output_tokens;
    const granted_nano = session.granted_nano ?? hold.granted_nano;
    if (!is_over && cost_nano <= granted_nano) return;
    metrics.overrun(candidate.provider.slug);
    const { output_tokens: bound, mode } = grant;
    const facts = { generation: call.generation_id, endpoint: candidate.endpoint.id, tokens, bound, mode };
    const message =
      usage.estimated === true && mode === 'strict'
        ? 'an answer without a reported usage is larger than was reserved for it; the limit is charged what was reserved'
        : 'an answer cost more than was reserved for it';
    log.warn({ ...facts, cost_nano, granted_nano }, message);
    if (!is_over) return;
    report.push({
      kind: 'changed',
      field: 'max_tokens',
      reason: `the provider produced ${tokens} tokens, more than ${bound}`,
    });
  }

  /**
   * Prices an answer, and writes that in its attempt. One that may go on costs what an unknown end does, if that is more than what
   * arrived. `counted_nano` is the cost before the bound of an estimate.
   */
  function priceAnswer(
    session: CallState,
    answered: Answered,
  ): Pick<Part, 'candidate' | 'usage' | 'charge'> & { counted_nano: number } {
    const { attempt, meter, candidate, prepared, may_go_on = false } = answered;
    const usage = meter.usage(prepared.request);
    const price = (classes: TokenClasses | null) =>
      priceAttempt(classes, session.call.request, candidate, pricesOf(session), tierOf(answered));
    const counted = price(usage);
    const { reported } = meter;
    const reported_nano = usage?.estimated === true && reported !== undefined ? price(reported).cost_nano : 0;
    const charge = boundEstimate(session, usage, counted, reported_nano);
    const counted_nano = counted.cost_nano;
    if (may_go_on) charge.cost_nano = Math.max(charge.cost_nano, unknownCost(session, candidate).cost_nano ?? 0);
    attempt.cost_nano = charge.cost_nano;
    if (usage !== null) attempt.tokens = [inputTokens(usage), outputTokens(usage)];
    if (usage?.estimated || may_go_on) attempt.estimated = true;
    attempt.charges = charge.lines;
    if (charge.is_unpriced) attempt.is_unpriced = true;
    attempt.upstream_id = boundedWord(meter.upstream_id);
    return { candidate, usage, charge, counted_nano };
  }

  /** An attempt has made its part of the answer: it is charged, and what it costs kept aside. */
  function endPart(session: CallState, answered: Answered, is_broken: boolean) {
    const { attempt, candidate } = answered;
    const { usage, charge, counted_nano } = priceAnswer(session, answered);
    if (attempt.cost_nano > 0) recorder.keep(session.hold, attempt.cost_nano, attempt.is_byok);
    const { record, sent_ms } = session;
    session.parts.push({ candidate, is_broken, record, sent_ms, usage, charge });
    return { usage, counted_nano };
  }

  const breakOff: Settlement['breakOff'] = (session, answered, failure) => {
    try {
      answered.attempt.failure = failure;
      endPart(session, answered, true);
      metrics.attempt(answered.candidate.provider.slug, failure);
    } catch (error) {
      throw lost(session, error);
    }
  };

  const endStep: Settlement['endStep'] = (session, answered) => {
    try {
      const { usage, counted_nano } = endPart(session, answered, false);
      metrics.attempt(answered.candidate.provider.slug, 'answered');
      if (usage !== null) tellOverrun(session, answered.candidate, usage, counted_nano);
      tellTraffic(session, answered, { usage, end_ms: clock.monotonic_ms(), is_completed: true });
    } catch (error) {
      throw lost(session, error);
    }
  };

  function tellTraffic(
    session: CallState,
    answered: Answered,
    { usage, end_ms, is_completed }: Pick<AnswerFacts, 'usage' | 'end_ms' | 'is_completed'>,
  ): void {
    // Of several answers to one request it is not known how long each was.
    if (usage !== null && is_completed && choicesOf(session.call.request) === 1) {
      usual.note(answered.candidate.endpoint.id, usage);
    }
    traffic.answered(answered.candidate, {
      is_streamed: session.call.request.stream === true,
      sent_ms: session.sent_ms,
      first_token_ms: session.step_first_token_ms ?? session.first_token_ms,
      end_ms,
      usage,
      tool_calls: answered.meter.toolCalls?.(),
      is_completed,
      is_error: answered.meter.finish_reason === 'error',
    });
  }

  /** The record of a call that has ended, and what it says of itself. */
  function close(session: CallState, record: OpenRecord, { outcome, answered, finish_reason }: Closing) {
    const { call } = session;
    const now = clock.monotonic_ms();
    const last = answered && priceAnswer(session, answered);
    const parts = last === undefined ? session.parts : session.parts.length === 0 ? [last] : [...session.parts, last];
    const usage = allUsed(parts, session.fees);
    let discount_nano: number | null = null;
    for (const { charge } of parts) {
      if (charge.cache_discount_nano !== null) discount_nano = (discount_nano ?? 0) + charge.cache_discount_nano;
    }
    const latency = session.first_token_ms === undefined ? null : session.first_token_ms - call.accepted_monotonic_ms;
    const closed = closeRecord(record, {
      meter: answered?.meter,
      usage,
      cache_discount_nano: discount_nano,
      attempts: session.attempts,
      fees: session.fees,
      finish_reason: finish_reason ?? null,
      outcome,
      latency: latency === null ? null : Math.round(latency),
      generation_time: parts.length === 0 ? null : Math.round(now - (session.parts[0] ?? session).sent_ms),
    });
    session.usage = usage;
    session.routing = routingRecord(session, closed.model, usage);
    closed.routing = session.routing;
    return { closed, usage, parts, last, latency, end_ms: now };
  }

  function tell(session: CallState, { outcome, answered, candidate }: Closing, ended: ReturnType<typeof close>): void {
    const { closed, usage, last, latency, end_ms } = ended;
    if (answered) metrics.attempt(candidate.provider.slug, answered.attempt.failure ?? 'answered');
    if (last?.usage) tellOverrun(session, candidate, last.usage, Math.max(last.counted_nano, last.charge.cost_nano));
    if (answered && answered.attempt.failure === null) {
      tellTraffic(session, answered, { usage: last?.usage ?? null, end_ms, is_completed: outcome === 'completed' });
    }
    metrics.generation({
      model: closed.model,
      provider: candidate.provider.slug,
      outcome,
      prompt_tokens: usage === null ? 0 : inputTokens(usage),
      completion_tokens: usage === null ? 0 : outputTokens(usage),
      cost_usd: toUsd(closed.cost_nano),
      first_token_s: latency === null ? undefined : latency / 1000,
    });
  }

  async function settle(
    session: CallState,
    outcome: GenerationRecord['outcome'],
    answered: Answered | undefined,
    finish_reason?: FinishReason,
  ): Promise<AnswerUsage> {
    const broken = answered === undefined ? session.parts.at(-1) : undefined;
    const { record } = broken ?? session;
    const candidate = answered?.candidate ?? broken?.candidate ?? session.plan.attempts[0];
    if (record === undefined || candidate === undefined) {
      session.reservation.release();
      return NO_USAGE;
    }
    const closing = { outcome, finish_reason, answered, candidate };
    let ended: ReturnType<typeof close>;
    try {
      ended = close(session, record, closing);
      tell(session, closing, ended);
      endReservation(session.reservation, closing, ended.usage);
    } catch (error) {
      throw lost(session, error);
    }
    try {
      await recorder.outcome(ended.closed, session.hold);
    } finally {
      settledAs(session, ended.closed);
    }
    return answerUsage(ended, candidate, session);
  }

  return { note, assume, unassume, soFar, breakOff, endStep, settle };
}
