import type { Candidate } from '../../routing/plan.ts';
import { type Accumulator, createAccumulator } from '../../schemas/accumulate.ts';
import { append } from '../../schemas/append.ts';
import type {
  ChatChunk,
  ChatCompletion,
  ChatRequest,
  Message,
  MessageExt,
  ReasoningDetail,
  RunWriter,
  ShownRun,
  ToolChoice,
} from '../../schemas/inner.ts';
import { toUsd } from '../../schemas/money.ts';
import type { Stage } from '../../schemas/routing-metadata.ts';
import { inputTokens, outputTokens } from '../../schemas/usage.ts';
import type { Attempts } from '../attempt/attempts.ts';
import type { Call, Clock } from '../call.ts';
import type { Settlement } from '../money/settlement.ts';
import { wireOf } from '../plan/planner.ts';
import { issuerOf, type ReasoningStateRecorder } from '../reasoning/states.ts';
import type { Attempt, CallState } from '../state.ts';
import { type DeclaredTools, unforced } from './declared-tools.ts';
import type { ServerTool } from './server-tools.ts';
import { type LoopRules, loopRules, shortName } from './tool-rules.ts';
import { argumentsOf, type RunTools, type ToolRun, type Uses } from './tool-runs.ts';
import { type StepEnd, ToolTurn } from './tool-turn.ts';

/** One answer for which the gateway runs tools. */
export interface ToolAnswer {
  readonly turn: ToolTurn;
  readonly tools: DeclaredTools;
  readonly rules: LoopRules;
  readonly uses: Uses;
  /** Undefined: its client's API does not show runs. */
  readonly runWriter: RunWriter | undefined;
  readonly stage: Stage;
  /** The answer as its client is shown it. */
  readonly told: Accumulator;
  /** What the client chose of its tools: it counts for the first step. */
  readonly choice: ToolChoice | null | undefined;
  /** No tool is begun after this monotonic time. */
  readonly deadline_ms: number;
  /** The call with the request of the current step. */
  call: Call;
}

/** Runs the gateway's tools between the steps of an answer. */
export interface ToolLoop {
  /** Undefined: no endpoint that was asked so far was offered a tool of the gateway's. */
  begin(state: CallState): ToolAnswer | undefined;
  /** What the turn that is over leaves to do; undefined: it is the answer's last. */
  pending(answer: ToolAnswer): StepEnd | undefined;
  /**
   * Ends a step, runs its calls, and makes the request of the next step. Yields the chunks that the client is shown of it.
   * Throws `CallCancelled`.
   */
  runs(
    state: CallState,
    answer: ToolAnswer,
    end: StepEnd,
    attempt: Attempt,
  ): AsyncGenerator<ChatChunk[], void, undefined>;
}

/** Who is asked for the next step: who made the last one, then the others of the plan. */
export function afterStep({ plan: { attempts } }: CallState, candidate: Candidate): Candidate[] {
  return [candidate, ...attempts.filter((one) => one !== candidate && one.excluded === undefined)];
}

/** The turn as its maker gets it back: what is opaque in it is of this account. */
function ownTurn(message: StepEnd['message'], candidate: Candidate): Message {
  const ext: MessageExt = { wire: wireOf(candidate), rest: {}, ...message.ext, issuer: issuerOf(candidate) };
  return { ...message, ext };
}

function runWriterFor({ request, generation_id }: Call, takeSlot: () => number): RunWriter | undefined {
  const stem = generation_id.replace(/^gen-/, '').replaceAll('-', '');
  return request.ext?.client.createRunWriter?.(takeSlot, stem);
}

/** What a client may see of a run; undefined: nothing. */
function shownRun(tool: ServerTool, argumentText: string): ShownRun | undefined {
  const query = tool.query?.(argumentsOf(argumentText) ?? {});
  return query === undefined ? undefined : { name: shortName(tool.type), query };
}

/** A choice that was to force a call has done so. */
function nextChoice(choice: ToolChoice | null | undefined, tools: DeclaredTools): ToolChoice | null {
  if (choice == null || choice === 'required') return null;
  if (typeof choice === 'string') return choice;
  if (choice.type === 'allowed_tools') return unforced(choice);
  const named = (choice as { function?: { name?: string } }).function?.name;
  const is_clients = choice.type === 'function' && named !== undefined && !tools.byName.has(named);
  return is_clients ? choice : null;
}

/** What clients call the tools that a turn called: the gateway's by their types. */
function calledIn({ message }: StepEnd, { byName }: DeclaredTools): ReadonlySet<string> {
  const names = (message.tool_calls ?? []).map(({ function: { name } }) => byName.get(name)?.type ?? name);
  return new Set(names);
}

function usedSoFar({ parts, fees, attempts }: CallState): { tokens: number; cost_usd: number } {
  const tokens = parts.reduce((sum, { usage }) => sum + (usage ? inputTokens(usage) + outputTokens(usage) : 0), 0);
  const records = [...attempts.map(({ record }) => record!), ...fees];
  const cost = records.reduce((sum, { cost_nano }) => sum + cost_nano, 0);
  return { tokens, cost_usd: toUsd(cost) };
}

/** Keeps the state of an answer that is at its end; what comes back is its seal, where its client takes one. */
export function sealOf(
  keeper: ReasoningStateRecorder | undefined,
  turn: ToolTurn,
  shown: ChatCompletion,
): ReasoningDetail | undefined {
  if (keeper === undefined) return undefined;
  const stated = turn.withState(shown);
  const details = stated.choices[0].message.reasoning_details?.length ?? 0;
  return keeper.whole(stated).choices[0].message.reasoning_details?.[details];
}

export function createToolLoop({
  runTools,
  clock,
  total_ms_max,
  settlement: { endStep },
  attempts: { reportSuccess },
}: {
  runTools: RunTools;
  clock: Clock;
  total_ms_max: number;
  settlement: Pick<Settlement, 'endStep'>;
  attempts: Pick<Attempts, 'reportSuccess'>;
}): ToolLoop {
  function tellStage({ stage, uses }: ToolAnswer, steps: number): void {
    const { requested, executed } = uses;
    stage.data = { ...stage.data, steps, tool_calls_requested: requested, tool_calls_executed: executed };
  }

  return {
    begin(state) {
      const tools = state.fitting?.tools;
      if (tools === undefined || tools.byName.size === 0) return undefined;
      const { call } = state;
      const turn = new ToolTurn(tools);
      // Whatever the model makes of it.
      turn.endIsNext(call.request.tool_choice === 'none');
      const rules = loopRules(call.request);
      const types = [...tools.byName.values()].map(({ type }) => type);
      const stage: Stage = { type: 'server_tools', name: 'server-tools', data: { mode: 'sdk', tools: types } };
      state.toolCalls = { requested: 0, executed: 0 };
      const takeSlot = () => turn.takeSlot();
      return {
        turn,
        tools,
        rules,
        uses: { calls_max: rules.calls_max, byTool: new Map(), requested: 0, executed: 0 },
        runWriter: runWriterFor(call, takeSlot),
        stage,
        told: createAccumulator(),
        choice: call.request.tool_choice,
        deadline_ms: clock.monotonic_ms() + total_ms_max,
        call,
      };
    },

    pending({ turn }) {
      const end = turn.stepEnd();
      return end.calls.length === 0 ? undefined : end;
    },

    async *runs(state, answer, end, attempt) {
      const { turn, tools, uses, runWriter, rules, stage } = answer;
      const { candidate } = attempt;
      const { call } = answer;
      if (state.step === 1) call.stages.push(stage);
      reportSuccess(attempt);
      endStep(state, attempt);
      const before = { calls_max: uses.calls_max };
      turn.goOn();
      const begun = runWriter?.begin(end.calls.map((one) => shownRun(one.tool, one.call.function.arguments))) ?? [];
      if (begun.length > 0) yield begun;
      const runs = await runTools(state, end.calls, uses);
      const ended = runWriter?.end(runs.map(({ outcome }) => outcome)) ?? [];
      if (ended.length > 0) yield ended;
      if (call.sources !== undefined) for (const { outcome } of runs) append(call.sources, [...outcome.sources]);
      state.toolCalls = { requested: uses.requested, executed: uses.executed };
      tellStage(answer, state.step);
      const is_over =
        uses.calls_max < before.calls_max ||
        clock.monotonic_ms() >= answer.deadline_ms ||
        rules.isOver({
          steps: state.step,
          called: calledIn(end, tools),
          finish_reason: end.finish_reason,
          calls: uses.requested,
          ...usedSoFar(state),
        });
      turn.endIsNext(is_over);
      state.step += 1;
      answer.call = { ...call, request: nextRequest(call.request, { answer, end, runs, candidate, is_over }) };
    },
  };
}

/** What the wire of the client's API would be told of a choice that does not hold any more. */
function withoutOwnChoice(request: ChatRequest): ChatRequest {
  if (request.ext?.rest['tool_choice'] === undefined) return request;
  const { tool_choice: _, ...rest } = request.ext.rest;
  return { ...request, ext: { ...request.ext, rest } };
}

function nextRequest(
  request: ChatRequest,
  {
    answer: { choice, tools },
    end,
    runs,
    candidate,
    is_over,
  }: { answer: ToolAnswer; end: StepEnd; runs: readonly ToolRun[]; candidate: Candidate; is_over: boolean },
): ChatRequest {
  const results = runs.map(
    ({ call: { id }, outcome }): Message => ({ role: 'tool', tool_call_id: id, content: outcome.content }),
  );
  return {
    ...withoutOwnChoice(request),
    messages: [...request.messages, ownTurn(end.message, candidate), ...results],
    tool_choice: is_over ? 'none' : nextChoice(choice, tools),
  };
}
