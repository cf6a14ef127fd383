import { GatewayError } from '../errors.ts';
import { METERED } from '../http/metered.ts';
import { type Events, type Source, withSources } from '../http/sources.ts';
import { choicesOf } from '../schemas/by-choice.ts';
import type { Prepared } from './admission.ts';
import type { Inference, WholeAnswer } from './answer.ts';
import type { Call } from './call.ts';
import type { Wanted } from './steps.ts';
import type { StreamEvent } from './stream-answer.ts';
import type { Task, TaskAnswer } from './task.ts';
import { type AnswerTransform, type EventHooks, TransformedEvents, transformWhole, withStages } from './transform.ts';

/** What a call is begun for. `routing`: to say how a call that is refused would have been routed. */
export type Purpose = 'answer' | 'task' | 'explain' | 'countTokens' | 'routing';

/** What a middleware may use of the pipeline behind it. */
export interface CallContext {
  /** See `Inference.routingOf`. */
  routingOf: Inference['routingOf'];
}

/** Something that is done to calls and their answers, beside asking a model. */
export interface Middleware {
  readonly name: string;
  /** The hooks of one call; undefined: nothing is to be done for it. Once a call, synchronous, without an effect of its own. */
  begin(call: Call, purpose: Purpose, context: CallContext): CallHooks | undefined;
}

/** A call that is not chat, and its task. */
export interface TaskCall<P extends Prepared, A> {
  call: Call;
  task: Task<P, A>;
}

/** How a call has ended. `error`: what its client is shown of a failure; absent if it did not fail. */
export interface CallEnd {
  error?: unknown;
}

/** What one middleware does for one call. Those of requests run in the order of the middleware, those of answers in reverse. */
export interface CallHooks extends EventHooks {
  /** The call as it goes on. Refuses it by throwing. Of every call but a task. */
  onRequest?(call: Call): Call | Promise<Call>;
  /** The same of a call that is not chat. */
  onTask?<P extends Prepared, A>(call: Call, task: Task<P, A>): TaskCall<P, A> | Promise<TaskCall<P, A>>;
  /** Makes what changes the answer; undefined: nothing does. After `onRequest`. Of whole answers where there is no `onWhole`. */
  createTransform?(choices: number): AnswerTransform | undefined;
  /** A whole answer, after its settlement. */
  onWhole?(answer: WholeAnswer): WholeAnswer | Promise<WholeAnswer>;
  /** The answer to a call that is not chat. */
  onTaskAnswer?<A>(answer: TaskAnswer<A>): TaskAnswer<A>;
  /** Once for each call that was begun to be answered, whatever became of it. Must not throw. */
  onEnd?(end: CallEnd): void;
}

/** The hooks of one middleware, and where the next one stands. */
interface Begun {
  hooks: CallHooks;
  next: number;
}

function shownError(error: unknown, hooks: readonly CallHooks[]): unknown {
  let shown = error;
  for (const one of hooks) {
    if (shown instanceof GatewayError) shown = one.onError?.(shown, 'thrown') ?? shown;
  }
  return shown;
}

/** Answers calls through an ordered list of middleware. A call for which none has anything to do goes to the engine at once. */
export function createPipeline(engine: Inference, middleware: readonly Middleware[]): Inference {
  const contexts = middleware.map(
    (_, at): CallContext => ({ routingOf: (call, wanted) => routingFrom(at + 1, call, wanted) }),
  );

  /** The first middleware from a place on that has something to do for a call. */
  function begin(call: Call, purpose: Purpose, from = 0): Begun | undefined {
    for (let at = from; at < middleware.length; at += 1) {
      const hooks = middleware[at]!.begin(call, purpose, contexts[at]!);
      if (hooks !== undefined) return { hooks, next: at + 1 };
    }
    return undefined;
  }

  /** Runs the request hooks; `answering` gets those of each middleware before they run, the last one first. */
  async function prepare(call: Call, purpose: Purpose, first: Begun, answering: CallHooks[]): Promise<Call> {
    let prepared = call;
    let begun: Begun | undefined = first;
    while (begun !== undefined) {
      const { hooks, next } = begun;
      answering.unshift(hooks);
      if (hooks.onRequest !== undefined) prepared = await hooks.onRequest(prepared);
      begun = begin(prepared, purpose, next);
    }
    return prepared;
  }

  async function prepareTask<P extends Prepared, A>(
    given: TaskCall<P, A>,
    first: Begun,
    answering: CallHooks[],
  ): Promise<TaskCall<P, A>> {
    let prepared = given;
    let begun: Begun | undefined = first;
    while (begun !== undefined) {
      const { hooks, next } = begun;
      answering.unshift(hooks);
      if (hooks.onTask !== undefined) prepared = await hooks.onTask(prepared.call, prepared.task);
      begun = begin(prepared.call, 'task', next);
    }
    return prepared;
  }

  /** Runs one call to its end, whose hooks stand in `answering` by then. */
  async function answered<T>(answering: readonly CallHooks[], work: () => Promise<T>): Promise<T> {
    const end: CallEnd = {};
    try {
      return await work();
    } catch (error) {
      end.error = shownError(error, answering);
      throw end.error;
    } finally {
      for (const hooks of answering) hooks.onEnd?.(end);
    }
  }

  async function complete(call: Call, first: Begun): Promise<WholeAnswer> {
    const answering: CallHooks[] = [];
    return answered(answering, async () => {
      const prepared = await prepare(call, 'answer', first, answering);
      let answer = await engine.complete(prepared);
      for (const hooks of answering) {
        if (hooks.onWhole !== undefined) answer = await hooks.onWhole(answer);
        else answer = transformed(answer, hooks);
      }
      return { ...answer, metadata: withStages(answer.metadata, prepared.stages) };
    });
  }

  function transformed(answer: WholeAnswer, hooks: CallHooks): WholeAnswer {
    const transform = hooks.createTransform?.(answer.completion.choices.length);
    if (transform === undefined) return answer;
    const completion = transformWhole(answer.completion, transform);
    if (transform.refusal !== undefined) throw transform.refusal;
    return completion === answer.completion ? answer : { ...answer, completion };
  }

  async function* streamed(
    call: Call,
    first: Begun,
  ): AsyncGenerator<StreamEvent | Source<StreamEvent>, void, undefined> {
    const hooks: CallHooks[] = [];
    const end: CallEnd = {};
    try {
      const prepared = await prepare(call, 'answer', first, hooks);
      const choices = choicesOf(prepared.request);
      const transforms = hooks.flatMap((one) => one.createTransform?.(choices) ?? []);
      const events = engine.stream(prepared);
      const shown = new TransformedEvents(events, { hooks, transforms, stages: prepared.stages });
      yield* handedOn(events, shown);
      end.error = shown.error;
    } catch (error) {
      end.error = shownError(error, hooks);
      throw end.error;
    } finally {
      for (const one of hooks) one.onEnd?.(end);
    }
  }

  /** The events, and the last one of the engine where an event cannot be used: the engine settles such a call as failed. */
  async function* handedOn(
    events: Events<StreamEvent>,
    shown: TransformedEvents,
  ): AsyncGenerator<StreamEvent | Source<StreamEvent>, void, undefined> {
    try {
      yield shown;
    } catch (error) {
      const last = await events.throw(error);
      if (last.done !== true) yield shown.shown(last.value);
    } finally {
      if (!events.ended) await events.return();
    }
  }

  async function run<P extends Prepared, A>(given: TaskCall<P, A>, first: Begun): Promise<TaskAnswer<A>> {
    const answering: CallHooks[] = [];
    return answered(answering, async () => {
      const { call, task } = await prepareTask(given, first, answering);
      let answer = await engine.run(call, task);
      for (const hooks of answering) if (hooks.onTaskAnswer !== undefined) answer = hooks.onTaskAnswer(answer);
      return { ...answer, metadata: withStages(answer.metadata, call.stages) };
    });
  }

  async function routingFrom(at: number, call: Call, wanted: Wanted | undefined) {
    const begun = begin(call, 'routing', at);
    return engine.routingOf(begun === undefined ? call : await prepare(call, 'routing', begun, []), wanted);
  }

  return {
    [METERED]: true,
    complete(call) {
      const begun = begin(call, 'answer');
      return begun === undefined ? engine.complete(call) : complete(call, begun);
    },
    stream(call) {
      const begun = begin(call, 'answer');
      return begun === undefined ? engine.stream(call) : withSources(streamed(call, begun));
    },
    run(call, task) {
      const begun = begin(call, 'task');
      return begun === undefined ? engine.run(call, task) : run({ call, task }, begun);
    },
    explain(call) {
      const begun = begin(call, 'explain');
      if (begun === undefined) return engine.explain(call);
      return prepare(call, 'explain', begun, []).then((prepared) => engine.explain(prepared));
    },
    countTokens(call) {
      const begun = begin(call, 'countTokens');
      if (begun === undefined) return engine.countTokens(call);
      return prepare(call, 'countTokens', begun, []).then((prepared) => engine.countTokens(prepared));
    },
    routingOf: (call, wanted) => routingFrom(0, call, wanted),
  };
}
