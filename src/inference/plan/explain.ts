import { GatewayError } from '../../errors.ts';
import type { Preview } from '../../ledger/leases/hold.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import { limits } from '../../limits.ts';
import type { Media, MediaNeed, Report } from '../../providers/dialect.ts';
import { servedId } from '../../routing/candidate.ts';
import type { Health, Performance } from '../../routing/health.ts';
import { type Candidate, healthId, NoEndpoint, type Plan } from '../../routing/plan.ts';
import { isPriced } from '../../schemas/prices.ts';
import type { PreparedAttempt } from '../attempt/attempt.ts';
import { stepPassed } from '../attempt/attempts.ts';
import type { Call, Clock } from '../call.ts';
import { createAdmission, type Measure, type SpendingRules } from '../money/admission.ts';
import { costOf } from '../money/worst-case.ts';
import type { ChatWork } from '../prepare/chat-work.ts';
import { NO_MEDIA } from '../prepare/media.ts';
import { type ExpectedTokens, expectedCost, expectedTokens } from './expected-cost.ts';
import type { Planned, Planner } from './planner.ts';

/** What would be set aside for an attempt. */
export interface ExplainedHold {
  granted_nano: number;
  /** With the whole output bound, and with the least that is worth sending. */
  full_nano: number;
  least_nano: number;
  /** Each budget that it would be set aside in. */
  lines: Preview['lines'];
}

/** One endpoint of a plan, as an attempt at it would begin. */
export interface ExplainedAttempt {
  candidate: Candidate;
  /** Why nothing could be sent to it now. */
  refusal: GatewayError | undefined;
  /** False: an endpoint before it would end the call. */
  is_reached: boolean;
  /** The output bound that would be sent; undefined: none. */
  output_tokens: number | undefined;
  report: readonly Report[];
  /** Nano-USD; undefined: a price, or the most that it may produce, is not known, or too much was encoded before it. */
  worst_case_nano: number | undefined;
  expected_nano: number | undefined;
  /** Undefined: no budget counts it, or what it needs must be fetched first. */
  hold: ExplainedHold | undefined;
  /** The number of addresses that would be fetched for it. */
  unfetched: number;
  health: { cooling_until_ms: number; had_outage: boolean; performance: Performance };
}

/** What would become of a call that came now. */
export interface Explanation {
  requested: string;
  /** What each name of the request stands for; absent where no endpoint may serve it. */
  names: Planned['names'];
  plan: Plan;
  /** What is changed of the request, wherever it goes. */
  told: readonly Report[];
  expected: ExpectedTokens | undefined;
  /** The endpoints of the plan, in order: the next one where the one before it fails, or is refused. */
  attempts: ExplainedAttempt[];
  /** What the client would be told, where nothing would be sent. */
  error: GatewayError | undefined;
}

export interface ExplainOptions {
  recorder: Pick<Recorder, 'preview'>;
  health: Health;
  clock: Clock;
  rules: SpendingRules;
}

const TYPES: Readonly<Record<MediaNeed['kind'], string>> = {
  image: 'image/png',
  file: 'application/pdf',
  audio: 'audio/wav',
  video: 'video/mp4',
};

/** What an attempt that was begun, and not sent, tells; and how much was encoded for that. */
interface Tried
  extends Pick<ExplainedAttempt, 'refusal' | 'output_tokens' | 'report' | 'worst_case_nano' | 'hold' | 'unfetched'> {
  chars: number;
}

/** Of an endpoint that a long request was not encoded for any more. */
const UNTRIED: Tried = {
  refusal: undefined,
  output_tokens: undefined,
  report: [],
  worst_case_nano: undefined,
  hold: undefined,
  unfetched: 0,
  chars: 0,
};

/** What stands for media that are not fetched: each another, so that none is taken for a part of the text. */
function standIns(needs: readonly MediaNeed[]): Media {
  if (needs.length === 0) return NO_MEDIA;
  return new Map(
    needs.map(({ url, kind }, at) => {
      const base64 = Buffer.from(`not fetched ${at}`).toString('base64');
      return [url, { mime_type: TYPES[kind], base64 }];
    }),
  );
}

/**
 * Tells what would become of a call, by the code that takes calls: the same plan, encoding, measure and admission. Nothing
 * is sent, fetched, set aside or recorded.
 */
export function createExplain(
  { recorder, health, clock, rules }: ExplainOptions,
  { planned }: Pick<Planner, 'planned'>,
  chat: ChatWork,
  measure: Measure<PreparedAttempt>,
): (call: Call) => Promise<Explanation> {
  /** An admission that asks and takes nothing, and what it asked last. */
  function trial() {
    const asked: { hold: ExplainedHold | undefined } = { hold: undefined };
    const { admit } = createAdmission({
      rules,
      recorder: {
        async reserve(ask) {
          const { full_nano, least_nano } = ask;
          const { granted_nano, lines, refusal } = await recorder.preview(ask);
          asked.hold = lines.length === 0 ? undefined : { granted_nano, full_nano, least_nano, lines };
          if (refusal !== undefined) throw refusal;
          return { id: ask.id, lines: [], granted_nano };
        },
        reserveNow: () => false,
        extend: () => Promise.resolve(false),
      },
    });
    return { admit, asked };
  }

  /** The most that an attempt may cost that no budget bounds. */
  async function worstCase(prepared: PreparedAttempt): Promise<number | undefined> {
    const { endpoint } = prepared.candidate;
    const tokens = prepared.output_tokens ?? endpoint.max_completion_tokens ?? endpoint.context_length;
    return tokens === undefined ? undefined : costOf((await measure(prepared, tokens, 'strict')).exposure, tokens);
  }

  /** Encodes an attempt and asks what it may cost, as if it were begun. */
  async function tried(call: Call, candidate: Candidate): Promise<Tried> {
    const { request } = call;
    const needs = chat.needs(request, candidate);
    const media = standIns(needs);
    const { admit, asked } = trial();
    let chars = 0;
    const prepare = async (spend?: Parameters<ChatWork['prepare']>[2]['spend']) => {
      const prepared = await chat.prepare(request, candidate, { strip_state: false, spend, media });
      chars += prepared.payload.length;
      return prepared;
    };
    const untold = { ...UNTRIED, unfetched: needs.length };
    try {
      // What a picture may cost does not depend on which it is; of everything else it does.
      if (needs.some(({ kind }) => kind !== 'image')) {
        const { output_tokens, report } = await prepare();
        return { ...untold, output_tokens, report, chars };
      }
      const hold = { id: call.generation_id, lines: [], granted_nano: 0 };
      const is_byok = candidate.own !== undefined;
      const { prepared, grant } = await admit({ call, hold, is_byok, prepare, measure });
      const { output_tokens, report } = prepared;
      // What a soft budget is let in with is an estimate.
      const is_sure = grant !== undefined && grant.mode === 'strict';
      const worst = is_sure ? costOf(grant.exposure, grant.output_tokens) : await worstCase(prepared);
      const worst_case_nano = isPriced(candidate.endpoint.pricing) ? worst : undefined;
      return { ...untold, output_tokens, report, worst_case_nano, hold: asked.hold, chars };
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      return { ...untold, hold: asked.hold, refusal: error, chars };
    }
  }

  function healthOf(candidate: Candidate): ExplainedAttempt['health'] {
    const now_ms = clock.now_ms();
    const id = healthId(candidate);
    return {
      cooling_until_ms: health.coolingUntil(id, now_ms),
      had_outage: health.hadOutage(id, now_ms),
      performance: health.performance(servedId(candidate), now_ms),
    };
  }

  /** The attempts in order, as they would be made if each failed without an answer. */
  async function walk(
    { call, plan }: Planned,
    expected: ExpectedTokens | undefined,
  ): Promise<Pick<Explanation, 'attempts' | 'error'>> {
    const attempts: ExplainedAttempt[] = [];
    let is_reached = true;
    let encoded_chars = 0;
    for (const candidate of plan.attempts) {
      const { chars, ...attempt } = encoded_chars > limits.explained_chars_max ? UNTRIED : await tried(call, candidate);
      encoded_chars += chars;
      const expected_nano = expected && expectedCost(candidate, expected, call.request.service_tier);
      attempts.push({ candidate, ...attempt, expected_nano, health: healthOf(candidate), is_reached });
      if (!is_reached || attempt.refusal === undefined) continue;
      const step = stepPassed(attempt.refusal, candidate, plan);
      if (step === undefined) is_reached = false;
      else candidate.excluded = { step, reason: attempt.refusal.message };
    }
    const reached = attempts.filter((attempt) => attempt.is_reached);
    const is_sent = reached.some(({ refusal }) => refusal === undefined);
    return { attempts, error: is_sent ? undefined : reached.at(-1)?.refusal };
  }

  return async (call) => {
    const { request } = call;
    try {
      const routed = await planned(call, chat.wanted(call));
      const { plan, requested, names, told } = routed;
      const expected = expectedTokens(routed.call);
      return { requested, names, plan, told, expected, ...(await walk(routed, expected)) };
    } catch (error) {
      if (!(error instanceof NoEndpoint)) throw error;
      const { plan } = error;
      const requested = request.model ?? request.models?.[0] ?? plan.requested;
      return { requested, names: undefined, plan, told: [], expected: expectedTokens(call), attempts: [], error };
    }
  };
}
