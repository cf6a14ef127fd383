import type { Candidate } from '../../routing/plan.ts';
import { createAccumulator } from '../../schemas/accumulate.ts';
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
import type { View } from '../body.ts';
import type { Call, Clock } from '../call.ts';
import type { Settlement } from '../money/settlement.ts';
import { wireOf } from '../plan/planner.ts';
import { issuerOf, type ReasoningStateRecorder, type TurnStates } from '../reasoning/states.ts';
import type { Attempt, CallState } from '../state.ts';
import { type CitationExtractor, createCitationExtractor } from './citation-extractor.ts';
import { type DeclaredTools, unforced } from './declared-tools.ts';
import type { CitedSource, ServerTool } from './server-tools.ts';
import { type LoopRules, loopRules, shortName } from './tool-rules.ts';
import { argumentsOf, type RunTools, type ToolRun, type Uses } from './tool-runs.ts';
import { type StepEnd, ToolTurn } from './tool-turn.ts';

/** One answer for which the gateway runs tools. */
export interface ToolAnswer {
  readonly turn: ToolTurn;
  readonly tools: DeclaredTools;
  readonly rules: LoopRules;
  readonly uses: Uses;
  /** Undefined if the client's API does not show runs. */
  readonly runWriter: RunWriter | undefined;
  readonly stage: Stage;
  /** The client's view of all steps. */
  readonly view: ToolView;
  /** The client's tool choice, which applies to the first step. */
  readonly choice: ToolChoice | null | undefined;
  /** No tool is begun after this monotonic time. */
  readonly deadline_ms: number;
  /** The call with the request of the current step. */
  call: Call;
}

/** The view of an answer of several steps, as one turn with its citations. */
export class ToolView implements View {
  /** The seal of the answer's reasoning state, made at its end; undefined if the client takes none. */
  seal: ReasoningDetail | undefined = undefined;
  readonly #turn: ToolTurn;
  readonly #citations: CitationExtractor;
  readonly #shown = createAccumulator();

  constructor(turn: ToolTurn, sources: readonly CitedSource[]) {
    this.#turn = turn;
    this.#citations = createCitationExtractor(sources);
  }

  show(chunks: ChatChunk[]): ChatChunk[] {
    return this.showOwn(this.#turn.add(chunks));
  }

  rest(): ChatChunk[] {
    return [];
  }

  showOwn(chunks: ChatChunk[]): ChatChunk[] {
    const shown = this.#citations.add(chunks);
    for (const chunk of shown) this.#shown.add(chunk);
    return shown;
  }

  /** The answer as it was shown so far. */
  completion(created: number): ChatCompletion {
    return this.#shown.result(created);
  }

  whole(completion: ChatCompletion): ChatCompletion {
    if (this.seal === undefined) return completion;
    const [choice] = completion.choices;
    const reasoningDetails = [...(choice.message.reasoning_details ?? []), this.seal];
    return {
      ...completion,
      choices: [{ ...choice, message: { ...choice.message, reasoning_details: reasoningDetails } }],
    };
  }
}

/** Runs the gateway's tools between the steps of an answer. */
export interface ToolLoop {
  /** Begins an answer for which the gateway runs tools. */
  begin(state: CallState, tools: DeclaredTools): ToolAnswer;
  /** Ends a step and charges it. Returns the chunks that show the client the runs that begin. */
  endStep(state: CallState, answer: ToolAnswer, end: StepEnd, attempt: Attempt): ChatChunk[];
  /** Runs the calls of a step and makes the request of the next one. Returns the chunks of the results. Throws `CallCancelled`. */
  run(state: CallState, answer: ToolAnswer, end: StepEnd, attempt: Attempt): Promise<ChatChunk[]>;
  /** The chunks that end an answer, with the seal of its reasoning state. */
  end(answer: ToolAnswer, attempt: Attempt): ChatChunk[];
}

/** The endpoints that are tried for the next step: the last one's, then the others of the plan. */
export function afterStep({ plan: { attempts } }: CallState, candidate: Candidate): Candidate[] {
  return [candidate, ...attempts.filter((one) => one !== candidate && one.excluded === undefined)];
}

/** The turn with its issuer: its opaque state belongs to this account. */
function ownTurn(message: StepEnd['message'], candidate: Candidate): Message {
  const ext: MessageExt = { wire: wireOf(candidate), rest: {}, ...message.ext, issuer: issuerOf(candidate) };
  return { ...message, ext };
}

function runWriterFor({ request, generation_id }: Call, takeSlot: () => number): RunWriter | undefined {
  const stem = generation_id.replace(/^gen-/, '').replaceAll('-', '');
  return request.ext?.client.createRunWriter?.(takeSlot, stem);
}

/** The part of a run that a client may see. Undefined if there is none. */
function shownRun(tool: ServerTool, argumentText: string): ShownRun | undefined {
  const query = tool.query?.(argumentsOf(argumentText) ?? {});
  return query === undefined ? undefined : { name: shortName(tool.type), query };
}

/** The tool choice of the next step: a choice that forced a call applies once. */
function nextChoice(choice: ToolChoice | null | undefined, tools: DeclaredTools): ToolChoice | null {
  if (choice == null || choice === 'required') return null;
  if (typeof choice === 'string') return choice;
  if (choice.type === 'allowed_tools') return unforced(choice);
  const named = (choice as { function?: { name?: string } }).function?.name;
  const isClients = choice.type === 'function' && named !== undefined && !tools.byName.has(named);
  return isClients ? choice : null;
}

/** The tools that a turn called, by the names that clients use: the gateway's by their types. */
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

/** Records the state of a finished answer. Returns its seal if the client accepts one. */
function sealOf(
  recorder: ReasoningStateRecorder | undefined,
  turn: ToolTurn,
  shown: ChatCompletion,
): ReasoningDetail | undefined {
  if (recorder === undefined) return undefined;
  const stated = turn.withState(shown);
  const details = stated.choices[0].message.reasoning_details?.length ?? 0;
  return recorder.whole(stated).choices[0].message.reasoning_details?.[details];
}

export function createToolLoop({
  runTools,
  clock,
  total_ms_max,
  states,
  settlement: { endStep },
  attempts: { reportSuccess },
}: {
  runTools: RunTools;
  clock: Clock;
  total_ms_max: number;
  states: Pick<TurnStates, 'recorder'>;
  settlement: Pick<Settlement, 'endStep'>;
  attempts: Pick<Attempts, 'reportSuccess'>;
}): ToolLoop {
  return {
    begin(state, tools) {
      const { call } = state;
      const turn = new ToolTurn(tools);
      // Even if the model calls a tool nevertheless.
      turn.endIsNext(call.request.tool_choice === 'none');
      const rules = loopRules(call.request);
      const types = [...tools.byName.values()].map(({ type }) => type);
      const stage: Stage = { type: 'server_tools', name: 'server-tools', data: { mode: 'sdk', tools: types } };
      state.toolCalls = { requested: 0, executed: 0 };
      return {
        turn,
        tools,
        rules,
        uses: { calls_max: rules.calls_max, byTool: new Map(), requested: 0, executed: 0 },
        runWriter: runWriterFor(call, () => turn.takeSlot()),
        stage,
        view: new ToolView(turn, state.sources),
        choice: call.request.tool_choice,
        deadline_ms: clock.monotonicMs() + total_ms_max,
        call,
      };
    },

    endStep(state, { turn, runWriter, stage, call, view }, end, attempt) {
      if (state.step === 1) call.stages.push(stage);
      reportSuccess(attempt);
      endStep(state, attempt);
      turn.goOn();
      const begun = runWriter?.begin(end.calls.map((one) => shownRun(one.tool, one.call.function.arguments))) ?? [];
      return begun.length === 0 ? begun : view.showOwn(begun);
    },

    async run(state, answer, end, { candidate }) {
      const { turn, tools, uses, runWriter, rules, stage, call } = answer;
      const { calls_max } = uses;
      const runs = await runTools(state, end.calls, uses);
      for (const { outcome } of runs) append(state.sources, [...outcome.sources]);
      const { requested, executed } = uses;
      state.toolCalls = { requested, executed };
      const { step } = state;
      stage.data = { ...stage.data, steps: step, tool_calls_requested: requested, tool_calls_executed: executed };
      const called = calledIn(end, tools);
      const progress = { steps: step, called, finish_reason: end.finish_reason, calls: requested, ...usedSoFar(state) };
      const isOver = uses.calls_max < calls_max || clock.monotonicMs() >= answer.deadline_ms || rules.isOver(progress);
      turn.endIsNext(isOver);
      state.step += 1;
      answer.call = { ...call, request: nextRequest(call.request, { answer, end, runs, candidate, is_over: isOver }) };
      const ended = runWriter?.end(runs.map(({ outcome }) => outcome)) ?? [];
      return ended.length === 0 ? ended : answer.view.showOwn(ended);
    },

    end({ turn, view, call }, { candidate }) {
      const { request } = call;
      const isStreamed = request.stream === true;
      // A stream that has one block open at a time cannot show a signature after its block.
      const held = turn.finish(!isStreamed || request.ext?.client.isSequential !== true);
      if (held.length === 0) return [];
      const end = view.showOwn(held);
      if (held.find(({ finish_reason }) => finish_reason != null)?.finish_reason === 'error') return end;
      view.seal = sealOf(states.recorder(call, candidate, wireOf(candidate)), turn, view.completion(0));
      if (view.seal === undefined || !isStreamed) return end;
      const place = end.findIndex(({ finish_reason }) => finish_reason != null);
      return end.toSpliced(place, 0, { delta: { reasoning_details: [view.seal] } });
    },
  };
}

/** Removes the client's own form of a tool choice that does not apply any more. */
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
