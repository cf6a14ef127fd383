import { GatewayError, internalError } from '../../errors.ts';
import { CallCancelled } from '../../inference/attempt/upstream-call.ts';
import type { Call } from '../../inference/call.ts';
import type { Inference } from '../../inference/create-inference.ts';
import type { StreamEvent } from '../../inference/events.ts';
import { limits } from '../../limits.ts';
import { clientError } from '../shared/client-error.ts';
import type { PromptAnswer } from './encode.ts';

/** The error of one prompt while others are answered. Throws if the client has left. */
function failureOf(thrown: unknown, { cancellation }: Call): GatewayError {
  const error = clientError(thrown, cancellation);
  if (error instanceof CallCancelled) throw error;
  return error instanceof GatewayError ? error : internalError(error);
}

/** A prompt that is being answered, perhaps for the second time. */
interface PromptCall {
  call: Call;
  /**
   * Whether it was refused only because of amounts that other calls hold: it is tried again when another prompt of its request has ended. False
   * if part of it was paid for, since that is recorded, and a generation is recorded once.
   */
  isHeldBeside(thrown: unknown): boolean;
}

function promptCallOf(call: Call): PromptCall {
  return {
    // A second try must not repeat the stages of the first.
    call: { ...call, stages: [...call.stages] },
    isHeldBeside: (thrown) =>
      !call.outcome.isSettled &&
      thrown instanceof GatewayError &&
      thrown.status === 402 &&
      thrown.metadata?.['in_flight'] === true,
  };
}

/** Answers all prompts, several at a time. If all fail, throws the error of the first. */
export async function completeAll(
  inference: Pick<Inference, 'complete'>,
  calls: readonly Call[],
): Promise<PromptAnswer[]> {
  const answers: PromptAnswer[] = [];
  let next = 0;
  let running = 0;
  let oneEnded = Promise.withResolvers<void>();
  const answer = async (call: Call): Promise<PromptAnswer> => {
    for (;;) {
      running += 1;
      const prompt = promptCallOf(call);
      const outcome = await inference.complete(prompt.call).then(
        (answer) => ({ answer }),
        (thrown: unknown) => ({ thrown }),
      );
      running -= 1;
      if ('thrown' in outcome && running > 0 && prompt.isHeldBeside(outcome.thrown)) {
        await oneEnded.promise;
        continue;
      }
      oneEnded.resolve();
      oneEnded = Promise.withResolvers();
      return 'answer' in outcome ? outcome : { error: failureOf(outcome.thrown, call) };
    }
  };
  const work = async () => {
    for (let index = next++; index < calls.length; index = next++) answers[index] = await answer(calls[index] as Call);
  };
  const workers = Array.from({ length: Math.min(calls.length, limits.completion_prompts_at_once) }, work);
  // Wait for all: those that remain end by their own cancellation.
  const ended = await Promise.allSettled(workers);
  for (const result of ended) if (result.status === 'rejected') throw result.reason;
  const [first] = answers;
  if (first !== undefined && 'error' in first && answers.every((answer) => 'error' in answer)) throw first.error;
  return answers;
}

/** An event of one of several prompts, or its failure. */
export type PromptEvent = { index: number; event: StreamEvent } | { index: number; failed: GatewayError };

type Step = { index: number } & ({ result: IteratorResult<StreamEvent, void> } | { thrown: unknown });

/**
 * Streams the answers to several prompts side by side, several at a time, as their chunks arrive. If none was answered, throws the error of the
 * first; throws `CallCancelled` if the client left. The consumer must read to the end.
 */
export async function* streamAll(
  inference: Pick<Inference, 'stream'>,
  calls: readonly Call[],
): AsyncGenerator<PromptEvent, void, undefined> {
  const running = new Map<number, { prompt: PromptCall; events: AsyncGenerator<StreamEvent, void, undefined> }>();
  const steps: Step[] = [];
  let wake = () => {};
  const failures: { index: number; failed: GatewayError }[] = [];
  let cancelled: CallCancelled | undefined;
  let hasBegun = false;
  let left = calls.map((_, index) => index);
  /** Prompts that wait until another one has ended. */
  const held: number[] = [];
  const advance = (
    index: number,
    entry: { prompt: PromptCall; events: AsyncGenerator<StreamEvent, void, undefined> },
  ) => {
    const arrive = (step: Step) => {
      steps.push(step);
      wake();
    };
    running.set(index, entry);
    entry.events.next().then(
      (result) => arrive({ index, result }),
      (thrown: unknown) => arrive({ index, thrown }),
    );
  };
  try {
    for (;;) {
      while (left.length > 0 && running.size < limits.completion_prompts_at_once && cancelled === undefined) {
        const index = left.shift() as number;
        const prompt = promptCallOf(calls[index] as Call);
        advance(index, { prompt, events: inference.stream(prompt.call) });
      }
      if (running.size === 0) break;
      const step = steps.shift();
      if (step === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        continue;
      }
      const { index } = step;
      const entry = running.get(index);
      running.delete(index);
      if ('thrown' in step && running.size > 0 && entry?.prompt.isHeldBeside(step.thrown)) {
        held.push(index);
        continue;
      }
      if ('thrown' in step || step.result.done) left = [...held.splice(0), ...left];
      if ('thrown' in step) {
        const call = calls[index] as Call;
        if (step.thrown instanceof CallCancelled && !call.cancellation.stopped) cancelled = step.thrown;
        else {
          failures.push({ index, failed: failureOf(step.thrown, call) });
          if (hasBegun) yield* failures.splice(0);
        }
      } else if (!step.result.done && entry !== undefined) {
        // Request the next event before this one is consumed, so that no stream waits for another; one event each is buffered.
        advance(index, entry);
        hasBegun = true;
        yield* failures.splice(0);
        yield { index, event: step.result.value };
      }
    }
    if (cancelled !== undefined) throw cancelled;
    const [first] = failures.sort((a, b) => a.index - b.index);
    if (first !== undefined) throw first.failed;
  } finally {
    await Promise.all([...running.values()].map(({ events }) => events.return()));
  }
}
