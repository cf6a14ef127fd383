import { GatewayError, internalError } from '../../errors.ts';
import type { Inference } from '../../inference/answer.ts';
import { CallCancelled } from '../../inference/attempt/exchange.ts';
import type { Call } from '../../inference/call.ts';
import type { StreamEvent } from '../../inference/events.ts';
import { limits } from '../../limits.ts';
import { clientError } from '../shared/client-error.ts';
import type { PromptAnswer } from './encode.ts';

/** A prompt fails alone while others are answered; nobody is told where the client has left. */
function failureOf(thrown: unknown, { cancellation }: Call): GatewayError {
  const error = clientError(thrown, cancellation);
  if (error instanceof CallCancelled) throw error;
  return error instanceof GatewayError ? error : internalError(error);
}

/** A prompt as it is asked, perhaps once more. */
interface Asked {
  call: Call;
  /**
   * Whether it is refused only for what others in flight have set aside: asked again when one of its own request has ended, it may
   * be paid for. Not where something of it was paid for: that is recorded, and a generation is recorded once.
   */
  isHeldBeside(thrown: unknown): boolean;
}

function askedOf(call: Call): Asked {
  let is_recorded = false;
  return {
    call: {
      ...call,
      // What was done to it is told once.
      stages: [...call.stages],
      settled(record) {
        is_recorded = true;
        call.settled?.(record);
      },
    },
    isHeldBeside: (thrown) =>
      !is_recorded &&
      thrown instanceof GatewayError &&
      thrown.status === 402 &&
      thrown.metadata?.['in_flight'] === true,
  };
}

/** Answers each prompt, some at a time. Throws what the first one failed with where all of them failed. */
export async function completeAll(
  inference: Pick<Inference, 'complete'>,
  calls: readonly Call[],
): Promise<PromptAnswer[]> {
  const answers: PromptAnswer[] = [];
  let next = 0;
  let running = 0;
  let oneEnded = Promise.withResolvers<void>();
  const ask = async (call: Call): Promise<PromptAnswer> => {
    for (;;) {
      running += 1;
      const asked = askedOf(call);
      const told = await inference.complete(asked.call).then(
        (answer) => ({ answer }),
        (thrown: unknown) => ({ thrown }),
      );
      running -= 1;
      if ('thrown' in told && running > 0 && asked.isHeldBeside(told.thrown)) {
        await oneEnded.promise;
        continue;
      }
      oneEnded.resolve();
      oneEnded = Promise.withResolvers();
      return 'answer' in told ? told : { error: failureOf(told.thrown, call) };
    }
  };
  const work = async () => {
    for (let index = next++; index < calls.length; index = next++) answers[index] = await ask(calls[index] as Call);
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
 * with where none was answered; `CallCancelled` when the client left. The consumer reads to the end.
 */
export async function* streamAll(
  inference: Pick<Inference, 'stream'>,
  calls: readonly Call[],
): AsyncGenerator<PromptEvent, void, undefined> {
  const running = new Map<number, { asked: Asked; events: AsyncGenerator<StreamEvent, void, undefined> }>();
  const steps: Step[] = [];
  let wake = () => {};
  const failures: { index: number; failed: GatewayError }[] = [];
  let gone: CallCancelled | undefined;
  let has_begun = false;
  let left = calls.map((_, index) => index);
  /** Until another has ended. */
  const held: number[] = [];
  const advance = (index: number, one: { asked: Asked; events: AsyncGenerator<StreamEvent, void, undefined> }) => {
    const arrive = (step: Step) => {
      steps.push(step);
      wake();
    };
    running.set(index, one);
    one.events.next().then(
      (result) => arrive({ index, result }),
      (thrown: unknown) => arrive({ index, thrown }),
    );
  };
  try {
    for (;;) {
      while (left.length > 0 && running.size < limits.completion_prompts_at_once && gone === undefined) {
        const index = left.shift() as number;
        const asked = askedOf(calls[index] as Call);
        advance(index, { asked, events: inference.stream(asked.call) });
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
      const one = running.get(index);
      running.delete(index);
      if ('thrown' in step && running.size > 0 && one?.asked.isHeldBeside(step.thrown)) {
        held.push(index);
        continue;
      }
      if ('thrown' in step || step.result.done) left = [...held.splice(0), ...left];
      if ('thrown' in step) {
        const call = calls[index] as Call;
        if (step.thrown instanceof CallCancelled && !call.cancellation.stopped) gone = step.thrown;
        else {
          failures.push({ index, failed: failureOf(step.thrown, call) });
          if (has_begun) yield* failures.splice(0);
        }
      } else if (!step.result.done && one !== undefined) {
        // Asked for before this event is taken, so that no stream waits for another; one event each is held.
        advance(index, one);
        has_begun = true;
        yield* failures.splice(0);
        yield { index, event: step.result.value };
      }
    }
    if (gone !== undefined) throw gone;
    const [first] = failures.sort((a, b) => a.index - b.index);
    if (first !== undefined) throw first.failed;
  } finally {
    await Promise.all([...running.values()].map(({ events }) => events.return()));
  }
}
