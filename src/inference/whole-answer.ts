import { GatewayError } from '../errors.ts';
import { accumulate } from '../schemas/accumulate.ts';
import { chunksOf } from '../schemas/chunks.ts';
import type { ChatChunk, ChatCompletion, FinishReason, ReasoningDetail } from '../schemas/inner.ts';
import type { WholeAnswer } from './answer.ts';
import type { Attempts } from './attempt/attempts.ts';
import type { ChatAttempts } from './attempt/chat-attempts.ts';
import { outcomeOf, outcomeOfWhole } from './attempt/exchange.ts';
import { clientError } from './attempt/failure.ts';
import type { Call, Clock } from './call.ts';
import { type Answered, type AnswerWatch, type CallState, isWithheld } from './call-state.ts';
import type { Meter } from './money/meter.ts';
import type { Settlement } from './money/settlement.ts';
import { type Planner, wireOf } from './plan/planner.ts';
import type { TurnStates } from './reasoning/states.ts';
import { servedBy } from './stream-answer.ts';
import { createCiter } from './tools/citation-extractor.ts';
import { afterStep, sealOf, type ToolAnswer, type ToolLoop } from './tools/tool-loop.ts';

/** What whole answers need of the flow. */
interface Surroundings {
  open(call: Call, watch: AnswerWatch | undefined): CallState | Promise<CallState>;
  clock: Clock;
  states: TurnStates;
  settlement: Pick<Settlement, 'note' | 'settle'>;
  attempts: Pick<Attempts, 'tryEach'>;
  steps: Pick<Planner, 'giveUp' | 'metadataOf'>;
  chat: Pick<ChatAttempts, 'whole'>;
  loop: ToolLoop;
}

type AnsweredStep = Answered & { meter: Meter };

/** How an answer with tools ends: with its last step, or without one that could not be paid for. */
interface LoopEnd {
  completion: ChatCompletion;
  answered: AnsweredStep | undefined;
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
  clock,
  states,
  settlement: { note, settle },
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
    session: CallState,
    answer: ToolAnswer,
    first: ChatCompletion,
    begun: AnsweredStep,
  ): Promise<LoopEnd> {
    const { turn, told } = answer;
    const citer = createCiter(session.call.sources ?? []);
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
      for await (const chunks of loop.runs(session, answer, end, answered)) show(chunks);
      const tried = await tryEach(session, afterStep(session, answered.candidate), chat.whole(session));
      if ('ended' in tried) {
        const { ended, error } = tried;
        if (ended === 'unsent' && error instanceof GatewayError && error.status === 402 && turn.has_text) {
          show([{ delta: {}, finish_reason: 'length', native_finish_reason: null }]);
          return { completion: told.result(completion.created), answered: undefined, finish_reason: 'length' };
        }
        throw ended === 'failed' ? clientError(session.failed) : error;
      }
      const { value, prepared, candidate } = tried;
      session.step_first_token_ms = clock.monotonic_ms();
      const attempt = note(session, candidate, { status: 200, failure: null });
      completion = value.completion;
      answered = { meter: value.meter, candidate, prepared, attempt };
    }
  }

  return async (received, watch) => {
    const opening = open(received, watch);
    const session = opening instanceof Promise ? await opening : opening;
    const { call } = session;
    const tried = await tryEach(session, session.plan.attempts, chat.whole(session));
    if ('ended' in tried) throw await giveUp(session, tried);
    const { value, prepared, candidate } = tried;
    session.first_token_ms = clock.monotonic_ms();
    const attempt = note(session, candidate, { status: 200, failure: null });
    const first: AnsweredStep = { meter: value.meter, candidate, prepared, attempt };
    const answer = loop.begin(session);
    let ended: LoopEnd;
    if (answer === undefined) ended = { completion: value.completion, answered: first };
    else {
      try {
        ended = await withTools(session, answer, value.completion, first);
      } catch (error) {
        await settle(session, outcomeOf(error, call), undefined);
        throw error;
      }
    }
    const { answered, completion } = ended;
    try {
      watch?.review(completion);
    } catch (error) {
      await settle(session, 'failed', answered);
      throw error;
    }
    const outcome = outcomeOfWhole(call);
    const finish_reason = isWithheld(session) ? 'content_filter' : ended.finish_reason;
    const usage = await settle(session, outcome, answered, finish_reason);
    const last = answered?.candidate ?? candidate;
    if (outcome === 'completed') session.home?.keep(last, usage.prompt_tokens_details.cached_tokens);
    const keeper = states.keeper(session.call, last, wireOf(last));
    const told =
      answer === undefined
        ? cited(session, keeper?.whole(completion) ?? completion)
        : withSeal(completion, sealOf(keeper, answer.turn, completion));
    const metadata = metadataOf(session, last);
    return { completion: told, served: servedBy(last), usage, classes: session.usage, metadata };
  };
}
