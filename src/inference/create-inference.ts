import { METERED, type MeteredInference } from '../http/metered.ts';
import type { Events } from '../http/sources.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { createAttempts } from './attempt/attempts.ts';
import type { ChatAttemptsOptions } from './attempt/chat-attempts.ts';
import { createDecoderFaultLog, type DecoderFaultLog } from './attempt/failure.ts';
import type { Call } from './call.ts';
import { createEngine } from './engine.ts';
import type { StreamEvent, StreamPart, WholeAnswer } from './events.ts';
import { createAdmission, type Prepared, type SpendingRules } from './money/admission.ts';
import type { UsualOutput } from './money/attempt-cost.ts';
import { createPay } from './money/fees.ts';
import { createMeasure } from './money/measure.ts';
import { createSettlement, type SettlementLog } from './money/settlement.ts';
import type { Tokenizer } from './money/tokenizer.ts';
import { type CountedTokens, createTokenCount } from './operations/count-tokens.ts';
import { runTask, type Task, type TaskAnswer } from './operations/task.ts';
import { createExplain, type Explanation } from './plan/explain.ts';
import { createPlanner, type PlannerOptions, type Wanted } from './plan/planner.ts';
import { createPrepareCall, type PrepareCallOptions } from './prepare/prepare-call.ts';
import type { AnswerWatch } from './state.ts';
import { createToolLoop } from './tools/tool-loop.ts';
import { createRunTools } from './tools/tool-runs.ts';

export interface InferenceOptions extends Omit<PlannerOptions, 'prepareCall'>, PrepareCallOptions, ChatAttemptsOptions {
  tokenizer: Tokenizer;
  usual: UsualOutput;
  metrics: Metrics;
  log: SettlementLog & DecoderFaultLog;
  rules: SpendingRules;
}

/**
 * Answers calls: plans, tries endpoints in order until one answers, meters, settles. The generation's record is written exactly
 * once, before the client sees the end of the answer, also if the client left.
 */
export interface Inference extends MeteredInference {
  /** Throws `GatewayError`, or `CallCancelled` if the client left first or the gateway stops. */
  complete(call: Call): Promise<WholeAnswer>;
  /**
   * Throws `GatewayError` before `open`, and `CallCancelled` at any time. After `open`, failures and a stop of the gateway are
   * reported in `end`. The consumer reads to the end, also after its client has left.
   */
  stream(call: Call): Events<StreamEvent>;
  /** How a chat call would be routed now. Throws `GatewayError` if no endpoint could serve it. */
  explain(call: Call): Promise<Explanation>;
  /** The tokens of a chat call's prompt. Not charged. Throws `GatewayError`; `CallCancelled` when the client left first. */
  countTokens(call: Call): Promise<CountedTokens>;
  /**
   * How a call that a guardrail refuses would have been routed; undefined if the client does not request routing metadata, or no
   * endpoint could serve the call. Never throws. `wanted`: for a call that is not chat.
   */
  routingOf(call: Call, wanted?: Wanted): Promise<Record<string, unknown> | undefined>;
  /** A call that is not chat. Throws `GatewayError`; `CallCancelled` when the client left first. */
  run<P extends Prepared, A>(call: Call, task: Task<P, A>): Promise<TaskAnswer<A>>;
}

/** The engine as the pipeline uses it: with a watch on calls that have hooks, and with streams in parts. */
export interface Engine extends Omit<Inference, 'stream'> {
  complete(call: Call, watch?: AnswerWatch): Promise<WholeAnswer>;
  stream(call: Call, watch?: AnswerWatch): AsyncGenerator<StreamPart, void, undefined>;
  run<P extends Prepared, A>(call: Call, task: Task<P, A>, watch?: AnswerWatch): Promise<TaskAnswer<A>>;
}

export function createInference(shared: InferenceOptions): Engine {
  const options = { ...shared, logDecoderFault: createDecoderFaultLog(shared.log) };
  const { clock } = options;
  const settlement = createSettlement(options);
  const { settle } = settlement;
  const admission = createAdmission(options);
  const measure = createMeasure(options.tokenizer);
  const attempts = createAttempts(options, admission, settlement);
  const planner = createPlanner({ ...options, prepareCall: createPrepareCall(options) }, settlement, attempts);
  const pay = createPay(options);
  const chat = { options, measure, pay };
  const loop = createToolLoop({ ...options, runTools: createRunTools({ pay, clock }), settlement, attempts });

  const engine = createEngine({ ...options, settlement, admission, attempts, planner, chat, loop });

  return {
    [METERED]: true,
    complete: engine.complete,

    stream: engine.stream,

    explain: createExplain(options, planner, measure),

    countTokens: createTokenCount(options, planner),

    routingOf: planner.routingOf,

    run: (call, task, watch) => runTask(call, task, { ...options, ...planner, ...attempts, settle, watch }),
  };
}
