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
import type { Answered, CallState } from '../call-state.ts';
import type { Meter } from '../money/meter.ts';
import type { Settlement } from '../money/settlement.ts';
import { wireOf } from '../plan/planner.ts';
import { issuerOf, type ReasoningStateRecorder } from '../reasoning/states.ts';
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
  /** When no tool is begun any more, by the monotonic clock. */
  readonly deadline_ms: number;
}

type AnsweredStep = Answered & { meter: Meter };

/** Runs the gateway's tools between the steps of an answer. */
export interface ToolLoop {
  /** Undefined: no endpoint that was asked so far was offered a tool of the gateway's. */
  begin(session: CallState): ToolAnswer | undefined;
  /** What the turn that is over leaves to do; undefined: it is the answer's last. */
  pending(answer: ToolAnswer): StepEnd | undefined;
  /**
   * Ends a step, runs what it called, and makes the session's request the next step's. Yields what the client is shown of it.
   * Throws `CallCancelled`.
   */
  runs(
    session: CallState,
    answer: ToolAnswer,
    end: StepEnd,
    answered: AnsweredStep,
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
  const cost = [...attempts, ...fees].reduce((sum, { cost_nano }) => sum + cost_nano, 0);
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
  attempts: { credit },
}: {
  runTools: RunTools;
  clock: Clock;
  total_ms_max: number;
  settlement: Pick<Settlement, 'endStep'>;
  attempts: Pick<Attempts, 'credit'>;
}): ToolLoop {
  function tellStage({ stage, uses }: ToolAnswer, steps: number): void {
    const { requested, executed } = uses;
    stage.data = { ...stage.data, steps, tool_calls_requested: requested, tool_calls_executed: executed };
  }

  return {
    begin(session) {
      const tools = session.fitting?.tools;
      if (tools === undefined || tools.byName.size === 0) return undefined;
      const { call } = session;
      const turn = new ToolTurn(tools);
      // Whatever the model makes of it.
      turn.endIsNext(call.request.tool_choice === 'none');
      const rules = loopRules(call.request);
      const types = [...tools.byName.values()].map(({ type }) => type);
      const stage: Stage = { type: 'server_tools', name: 'server-tools', data: { mode: 'sdk', tools: types } };
      session.tool_calls = { requested: 0, executed: 0 };
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
      };
    },

    pending({ turn }) {
      const end = turn.stepEnd();
      return end.calls.length === 0 ? undefined : end;
    },

    async *runs(session, answer, end, answered) {
      const { turn, tools, uses, runWriter, rules, stage } = answer;
      const { candidate } = answered;
      const { call } = session;
      if (session.step === 1) call.stages.push(stage);
      credit(session, candidate);
      endStep(session, answered);
      const before = { calls_max: uses.calls_max };
      turn.goOn();
      const begun = runWriter?.begin(end.calls.map((one) => shownRun(one.tool, one.call.function.arguments))) ?? [];
      if (begun.length > 0) yield begun;
      const runs = await runTools(session, end.calls, uses);
      const ended = runWriter?.end(runs.map(({ outcome }) => outcome)) ?? [];
      if (ended.length > 0) yield ended;
      if (call.sources !== undefined) for (const { outcome } of runs) append(call.sources, [...outcome.sources]);
      session.tool_calls = { requested: uses.requested, executed: uses.executed };
      tellStage(answer, session.step);
      const is_over =
        uses.calls_max < before.calls_max ||
        clock.monotonic_ms() >= answer.deadline_ms ||
        rules.isOver({
          steps: session.step,
          called: calledIn(end, tools),
          finish_reason: end.finish_reason,
          calls: uses.requested,
          ...usedSoFar(session),
        });
      turn.endIsNext(is_over);
      session.step += 1;
      session.call = { ...call, request: nextRequest(call.request, { answer, end, runs, candidate, is_over }) };
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
