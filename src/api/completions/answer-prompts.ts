import { GatewayError, internalError } from '../../errors.ts';
import type { Inference } from '../../inference/answer.ts';
import type { Call } from '../../inference/call.ts';
import { ClientGone } from '../../inference/exchange.ts';
import type { StreamEvent } from '../../inference/stream-answer.ts';
import { limits } from '../../limits.ts';
import { toldError } from '../told-error.ts';
import type { PromptAnswer } from './encode.ts';

/** A prompt fails alone while others are answered; nobody is told where the client has left. */
function failureOf(thrown: unknown, { cancellation }: Call): GatewayError {
  const error = toldError(thrown, cancellation);
  if (error instanceof ClientGone) throw error;
  return error instanceof GatewayError ? error : internalError(error);
}

/** Answers each prompt, some at a time. Throws what the first one failed with where all of them failed. */
export async function completeAll(
  inference: Pick<Inference, 'complete'>,
  calls: readonly Call[],
): Promise<PromptAnswer[]> {
  const answers: PromptAnswer[] = [];
  let next = 0;
  const work = async () => {
    for (let index = next++; index < calls.length; index = next++) {
      const call = calls[index] as Call;
      answers[index] = await inference.complete(call).then(
        (answer) => ({ answer }),
        (error) => ({ error: failureOf(error, call) }),
      );
    }
  };
  const workers = Array.from({ length: Math.min(calls.length, limits.completion_prompts_at_once) }, work);
  // All are waited for: those that are left end by their own cancellation.
  const ended = await Promise.allSettled(workers);
  for (const one of ended) if (one.status === 'rejected') throw one.reason;
  const [first] = answers;
  if (first !== undefined && 'error' in first && answers.every((one) => 'error' in one)) throw first.error;
  return answers;
}

/** One step of the stream of several prompts. */
export type PromptEvent = { index: number; event: StreamEvent } | { index: number; failed: GatewayError };

type Step = { index: number } & ({ result: IteratorResult<StreamEvent, void> } | { thrown: unknown });

/**
 * Streams the answers to several prompts side by side, some at a time, as their pieces come. Throws what the first one failed
 * with where none was answered; `ClientGone` when the client left. The consumer reads to the end.
 */
export async function* streamAll(
  inference: Pick<Inference, 'stream'>,
  calls: readonly Call[],
): AsyncGenerator<PromptEvent, void, undefined> {
  const running = new Map<number, AsyncGenerator<StreamEvent, void, undefined>>();
  const steps: Step[] = [];
  let wake = () => {};
  const failures: { index: number; failed: GatewayError }[] = [];
  let gone: ClientGone | undefined;
  let has_begun = false;
  let next = 0;
  const advance = (index: number, events: AsyncGenerator<StreamEvent, void, undefined>) => {
    const arrive = (step: Step) => {
      steps.push(step);
      wake();
    };
    running.set(index, events);
    events.next().then(
      (result) => arrive({ index, result }),
      (thrown: unknown) => arrive({ index, thrown }),
    );
  };
  try {
    for (;;) {
      while (next < calls.length && running.size < limits.completion_prompts_at_once && gone === undefined) {
        advance(next, inference.stream(calls[next] as Call));
        next += 1;
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
      const events = running.get(index);
      running.delete(index);
      if ('thrown' in step) {
        const call = calls[index] as Call;
        if (step.thrown instanceof ClientGone && !call.cancellation.stopped) gone = step.thrown;
        else {
          failures.push({ index, failed: failureOf(step.thrown, call) });
          if (has_begun) yield* failures.splice(0);
        }
      } else if (!step.result.done && events !== undefined) {
        // Asked for before this event is taken, so that no stream waits for another; one event each is held.
        advance(index, events);
        has_begun = true;
        yield* failures.splice(0);
        yield { index, event: step.result.value };
      }
    }
    if (gone !== undefined) throw gone;
    const [first] = failures.sort((a, b) => a.index - b.index);
    if (first !== undefined) throw first.failed;
  } finally {
    await Promise.all([...running.values()].map((events) => events.return()));
  }
}
