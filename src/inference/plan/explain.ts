import { GatewayError } from '../../errors.ts';
import type { Preview } from '../../ledger/leases/hold.ts';
import type { Recorder } from '../../ledger/recorder.ts';
import type { Media, MediaNeed, Report } from '../../providers/dialect.ts';
import { servedId } from '../../routing/candidate.ts';
import type { Health, Performance } from '../../routing/health.ts';
import { type Candidate, healthId, NoEndpoint, type Plan } from '../../routing/plan.ts';
import { isPriced } from '../../schemas/prices.ts';
import { stepPassed } from '../attempt/attempts.ts';
import { type PreparedAttempt, prepareAttempt, type SpendBound } from '../attempt/prepare-attempt.ts';
import type { Call, Clock } from '../call.ts';
import { createAdmission, type Measure, type SpendingRules } from '../money/admission.ts';
import { type ExpectedTokens, expectedCost, expectedTokens } from '../money/generation.ts';
import { costOf } from '../money/worst-case.ts';
import { mediaNeeds, NO_MEDIA } from '../prepare/media.ts';
import type { CallState } from '../state.ts';
import type { Planner } from './planner.ts';
import type { Requested } from './requested-models.ts';

/** The payload length after which an explained request is not encoded for further endpoints. */
const EXPLAINED_CHARS_MAX = 8_000_000;

/** The money that would be held for an attempt. */
export interface ExplainedHold {
  granted_nano: number;
  /** The cost with the whole output bound, and with the least output that is worth an attempt. */
  full_nano: number;
  least_nano: number;
  /** The budgets that it would be held in. */
  lines: Preview['lines'];
}

/** One endpoint of a plan, and how an attempt there would start. */
export interface ExplainedAttempt {
  candidate: Candidate;
  /** Why nothing could be sent to it now, if so. */
  refusal: GatewayError | undefined;
  /** False if an endpoint before it would end the call. */
  is_reached: boolean;
  /** The output bound that would be sent, if any. */
  output_tokens: number | undefined;
  report: readonly Report[];
  /** Nano-USD; undefined if a price or the largest output is not known, or too much was encoded for earlier endpoints. */
  worst_case_nano: number | undefined;
  expected_nano: number | undefined;
  /** Undefined if no budget counts it, or media must be fetched first. */
  hold: ExplainedHold | undefined;
  /** The number of addresses that would be fetched. */
  unfetched: number;
  health: { cooling_until_ms: number; had_outage: boolean; performance: Performance };
}

/** How a call would be routed and admitted now. */
export interface Explanation {
  requested: string;
  /** The models of each name of the request; undefined if no endpoint may serve it. */
  names: Requested['names'];
  plan: Plan;
  /** Changes of the request for all endpoints. */
  report: readonly Report[];
  expected: ExpectedTokens | undefined;
  /** The endpoints of the plan, in the order of attempts. */
  attempts: ExplainedAttempt[];
  /** The client's error if nothing would be sent. */
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

/** The facts of an attempt that was prepared and not sent. `chars`: the length of its payloads. */
interface TrialResult
  extends Pick<ExplainedAttempt, 'refusal' | 'output_tokens' | 'report' | 'worst_case_nano' | 'hold' | 'unfetched'> {
  chars: number;
}

/** The result for an endpoint that the request was not encoded for. */
const UNTRIED: TrialResult = {
  refusal: undefined,
  output_tokens: undefined,
  report: [],
  worst_case_nano: undefined,
  hold: undefined,
  unfetched: 0,
  chars: 0,
};

/** Placeholders of media that are not fetched. All differ, so that each is found in the payload. */
function placeholders(needs: readonly MediaNeed[]): Media {
  if (needs.length === 0) return NO_MEDIA;
  return new Map(
    needs.map(({ url, kind }, at) => {
      const base64 = Buffer.from(`not fetched ${at}`).toString('base64');
      return [url, { mime_type: TYPES[kind], base64 }];
    }),
  );
}

/** Explains a call with the code that answers calls: the same plan, encoding, measure and admission. Nothing is sent, fetched, held or recorded. */
export function createExplain(
  { recorder, health, clock, rules }: ExplainOptions,
  { planned }: Pick<Planner, 'planned'>,
  measure: Measure<PreparedAttempt>,
): (call: Call) => Promise<Explanation> {
  /** An admission that holds nothing. `last` has the hold of its last request. */
  function trialAdmission() {
    const last: { hold: ExplainedHold | undefined } = { hold: undefined };
    const { admit } = createAdmission({
      rules,
      recorder: {
        async reserve(ask) {
          const { full_nano, least_nano } = ask;
          const { granted_nano, lines, refusal } = await recorder.preview(ask);
          last.hold = lines.length === 0 ? undefined : { granted_nano, full_nano, least_nano, lines };
          if (refusal !== undefined) throw refusal;
          return { id: ask.id, lines: [], granted_nano };
        },
        reserveNow: () => false,
        extend: () => Promise.resolve(false),
      },
    });
    return { admit, last };
  }

  /** The most that an attempt without a budget may cost. */
  async function worstCase(prepared: PreparedAttempt): Promise<number | undefined> {
    const { endpoint } = prepared.candidate;
    const tokens = prepared.output_tokens ?? endpoint.max_completion_tokens ?? endpoint.context_length;
    return tokens === undefined ? undefined : costOf((await measure(prepared, tokens, 'strict')).exposure, tokens);
  }

  /** Encodes and measures an attempt as if it were sent. */
  async function runTrial(call: Call, candidate: Candidate): Promise<TrialResult> {
    const { request } = call;
    const needs = mediaNeeds(request, candidate);
    const media = placeholders(needs);
    const { admit, last } = trialAdmission();
    let chars = 0;
    const prepare = async (spend?: SpendBound) => {
      const prepared = await prepareAttempt(request, candidate, { spend, media });
      chars += prepared.payload.length;
      return prepared;
    };
    const facts = { ...UNTRIED, unfetched: needs.length };
    try {
      // The most that an image costs does not depend on its content; other media must be fetched first.
      if (needs.some(({ kind }) => kind !== 'image')) {
        const { output_tokens, report } = await prepare();
        return { ...facts, output_tokens, report, chars };
      }
      const hold = { id: call.generation_id, lines: [], granted_nano: 0 };
      const isByok = candidate.own !== undefined;
      const { prepared, grant } =
        call.principal.budgets.length === 0
          ? { prepared: await prepare(), grant: undefined }
          : await admit({ call, hold, is_byok: isByok, prepare, measure });
      const { output_tokens, report } = prepared;
      // A soft budget admits by an estimate.
      const isUpperBound = grant !== undefined && grant.mode === 'strict';
      const worst = isUpperBound ? costOf(grant.exposure, grant.output_tokens) : await worstCase(prepared);
      const worstCaseNano = isPriced(candidate.endpoint.pricing) ? worst : undefined;
      return { ...facts, output_tokens, report, worst_case_nano: worstCaseNano, hold: last.hold, chars };
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      return { ...facts, hold: last.hold, refusal: error, chars };
    }
  }

  function healthOf(candidate: Candidate): ExplainedAttempt['health'] {
    const nowMs = clock.nowMs();
    const id = healthId(candidate);
    return {
      cooling_until_ms: health.coolingUntil(id, nowMs),
      had_outage: health.hadOutage(id, nowMs),
      performance: health.performance(servedId(candidate), nowMs),
    };
  }

  /** Runs a trial at each endpoint in order, as if each attempt failed without an answer. */
  async function runTrials(
    { call, plan }: CallState,
    expected: ExpectedTokens | undefined,
  ): Promise<Pick<Explanation, 'attempts' | 'error'>> {
    const attempts: ExplainedAttempt[] = [];
    let isReached = true;
    let encodedChars = 0;
    for (const candidate of plan.attempts) {
      const { chars, ...attempt } = encodedChars > EXPLAINED_CHARS_MAX ? UNTRIED : await runTrial(call, candidate);
      encodedChars += chars;
      const expectedNano = expected && expectedCost(candidate, expected, call.request.service_tier);
      attempts.push({
        candidate,
        ...attempt,
        expected_nano: expectedNano,
        health: healthOf(candidate),
        is_reached: isReached,
      });
      if (!isReached || attempt.refusal === undefined) continue;
      const step = stepPassed(attempt.refusal, candidate, plan);
      if (step === undefined) isReached = false;
      else candidate.excluded = { step, reason: attempt.refusal.message };
    }
    const reached = attempts.filter((attempt) => attempt.is_reached);
    const isSent = reached.some(({ refusal }) => refusal === undefined);
    return { attempts, error: isSent ? undefined : reached.at(-1)?.refusal };
  }

  return async (call) => {
    const { request } = call;
    try {
      const routed = await planned(call);
      const { plan, named, report } = routed;
      const { requested, names } = named;
      const expected = expectedTokens(routed.call);
      return { requested, names, plan, report, expected, ...(await runTrials(routed, expected)) };
    } catch (error) {
      if (!(error instanceof NoEndpoint)) throw error;
      const { plan } = error;
      const requested = request.model ?? request.models?.[0] ?? plan.requested;
      return { requested, names: undefined, plan, report: [], expected: expectedTokens(call), attempts: [], error };
    }
  };
}
