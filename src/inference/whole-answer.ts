import { GatewayError } from '../errors.ts';
import { accumulate } from '../schemas/accumulate.ts';
import { chunksOf } from '../schemas/chunks.ts';
import type { ChatChunk, ChatCompletion, FinishReason, ReasoningDetail } from '../schemas/inner.ts';
import type { Attempts } from './attempt/attempts.ts';
import type { ChatAttempt, ChatAttempts } from './attempt/chat-attempts.ts';
import { outcomeOf, outcomeOfWhole } from './attempt/exchange.ts';
import { clientError } from './attempt/failure.ts';
import type { Call } from './call.ts';
import type { WholeAnswer } from './events.ts';
import type { Settlement } from './money/settlement.ts';
import { type Planner, wireOf } from './plan/planner.ts';
import type { TurnStates } from './reasoning/states.ts';
import { type AnswerWatch, type CallState, isWithheld, servedBy } from './state.ts';
import { createCiter } from './tools/citation-extractor.ts';
import { afterStep, sealOf, type ToolAnswer, type ToolLoop } from './tools/tool-loop.ts';

/** What whole answers need of the flow. */
interface Surroundings {
  open(call: Call, watch: AnswerWatch | undefined): CallState | Promise<CallState>;
  states: TurnStates;
  settlement: Pick<Settlement, 'settle'>;
  attempts: Pick<Attempts, 'tryEach'>;
  steps: Pick<Planner, 'giveUp' | 'metadataOf'>;
  chat: Pick<ChatAttempts, 'whole'>;
  loop: ToolLoop;
}

/** How an answer with tools ends: with its last step, or without one that could not be paid for. */
interface LoopEnd {
  completion: ChatCompletion;
  answered: ChatAttempt | undefined;
  finish_reason?: FinishReason;
}

function withSeal(completion: ChatCompletion, seal: ReasoningDetail | undefined): ChatCompletion {
  if (seal === undefined) return completion;
  const [choice] = completion.choices;
  const reasoning_details = [...(choice.message.reasoning_details ?? []), seal];
  return { ...completion, choices: [{ ...choice, message: { ...choice.message, reasoning_details } }] };
}

/** Answers a call in one piece: see `Inference.complete`. */
export function createWholeAnswers({
  open,
  states,
  settlement: { settle },
  attempts: { tryEach },
  steps: { giveUp, metadataOf },
  chat,
  loop,
}: Surroundings): (call: Call, watch?: AnswerWatch) => Promise<WholeAnswer> {
  /** The same answer with the citations of its sources. */
  function cited({ call: { sources = [] } }: CallState, completion: ChatCompletion): ChatCompletion {
    return sources.length === 0
      ? completion
      : accumulate(createCiter(sources, completion.choices.length).add(chunksOf(completion)), completion.created);
  }

  /** Planner of the model and runs of tools, until the model is at its end. */
  async function withTools(
    state: CallState,
    answer: ToolAnswer,
    first: ChatCompletion,
    begun: ChatAttempt,
  ): Promise<LoopEnd> {
    const { turn, told } = answer;
    const citer = createCiter(state.call.sources ?? []);
    const show = (chunks: readonly ChatChunk[]) => {
      for (const chunk of citer.add(chunks)) told.add(chunk);
    };
    let completion = first;
    let answered = begun;
    for (;;) {
      show(turn.add(chunksOf(completion)));
      const end = loop.pending(answer);
      if (end === undefined) {
        show(turn.finish(true));
        return { completion: told.result(completion.created), answered };
      }
      for await (const chunks of loop.runs(state, answer, end, answered)) show(chunks);
      const tried = await tryEach(state, afterStep(state, answered.candidate), chat.whole(state, answer.call));
      if ('ended' in tried) {
        const { ended, error } = tried;
        if (ended === 'unsent' && error instanceof GatewayError && error.status === 402 && turn.has_text) {
          show([{ delta: {}, finish_reason: 'length', native_finish_reason: null }]);
          return { completion: told.result(completion.created), answered: undefined, finish_reason: 'length' };
        }
        throw ended === 'failed' ? clientError(state.failed) : error;
      }
      completion = tried.value;
      answered = tried.attempt;
    }
  }

  return async (received, watch) => {
    const opening = open(received, watch);
    const state = opening instanceof Promise ? await opening : opening;
    const { call } = state;
    const tried = await tryEach(state, state.plan.attempts, chat.whole(state, call));
    if ('ended' in tried) throw await giveUp(state, tried);
    const { value, attempt: first } = tried;
    const answer = loop.begin(state);
    let ended: LoopEnd;
    if (answer === undefined) ended = { completion: value, answered: first };
    else {
      try {
        ended = await withTools(state, answer, value, first);
      } catch (error) {
        await settle(state, outcomeOf(error, call), undefined);
        throw error;
      }
    }
    const { answered, completion } = ended;
    try {
      watch?.review(completion);
    } catch (error) {
      await settle(state, 'failed', answered);
      throw error;
    }
    const outcome = outcomeOfWhole(call);
    const finish_reason = isWithheld(state) ? 'content_filter' : ended.finish_reason;
    const usage = await settle(state, outcome, answered, finish_reason);
    const last = (answered ?? first).candidate;
    if (outcome === 'completed') state.home?.keep(last, usage.prompt_tokens_details.cached_tokens);
    const keeper = states.keeper(call, last, wireOf(last));
    const told =
      answer === undefined
        ? cited(state, keeper?.whole(completion) ?? completion)
        : withSeal(completion, sealOf(keeper, answer.turn, completion));
    const metadata = metadataOf(state, last);
    return { completion: told, served: servedBy(last), usage, classes: state.usage, metadata };
  };
}
