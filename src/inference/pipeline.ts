import { GatewayError } from '../errors.ts';
import { METERED } from '../http/metered.ts';
import { type Events, withSources } from '../http/sources.ts';
import { choicesOf } from '../schemas/by-choice.ts';
import type { ChatCompletion } from '../schemas/inner.ts';
import type { Call, CallOutcome } from './call.ts';
import type { Engine, Inference } from './create-inference.ts';
import type { StreamEvent, StreamPart, WholeAnswer } from './events.ts';
import type { Prepared } from './money/admission.ts';
import type { Task, TaskAnswer } from './operations/task.ts';
import type { Wanted } from './plan/planner.ts';
import type { AnswerWatch } from './state.ts';
import { type AnswerTransform, type EventHooks, TransformedEvents, transformInTurns, withStages } from './transform.ts';

/** The operation of a call. `routing`: reports how a refused call would have been routed. */
export type Purpose = 'answer' | 'task' | 'explain' | 'countTokens' | 'routing';

/** The part of the following pipeline that a middleware may use. */
export interface CallContext {
  /** See `Inference.routingOf`. */
  routingOf: Inference['routingOf'];
}

/** Processes calls and their answers before and after the engine. */
export interface Middleware {
  readonly name: string;
  /** It applies only to callers that have these. Not set: to all. */
  readonly of?: 'guardrails' | 'logging';
  /** The hooks of one call; undefined if the middleware does not apply to it. Called once for a call. Must not have side effects. */
  begin(call: Call, purpose: Purpose, context: CallContext): CallHooks | undefined;
}

/** A call of an operation other than chat, and its task. */
export interface TaskCall<P extends Prepared, A> {
  call: Call;
  task: Task<P, A>;
}

/** The end of a call. */
export interface CallEnd extends CallOutcome {
  /** The error that the client gets. Undefined if the call did not fail. */
  error: unknown;
}

/** The hooks of one middleware for one call. Request hooks run in the order of the middleware, answer hooks in reverse. */
export interface CallHooks extends EventHooks {
  /** Returns the call to continue with, or throws to refuse it. Not called for tasks. */
  onRequest?(call: Call): Call | Promise<Call>;
  /** The same for a task. */
  onTask?<P extends Prepared, A>(call: Call, task: Task<P, A>): TaskCall<P, A> | Promise<TaskCall<P, A>>;
  /** Creates the transform of the answer, after `onRequest`. Undefined if there is none. Used for whole answers if `onWhole` is not set. */
  createTransform?(choices: number): AnswerTransform | undefined;
  /** Checks a whole answer before its settlement. Returns the error that refuses it, if any. */
  onSettling?(completion: ChatCompletion): Promise<GatewayError | undefined>;
  /** Changes a whole answer after its settlement. */
  onWhole?(answer: WholeAnswer): WholeAnswer | Promise<WholeAnswer>;
  /** Changes the answer of a task. */
  onTaskAnswer?<A>(answer: TaskAnswer<A>): TaskAnswer<A>;
  /** Called once for each started call, whatever its outcome. Must not throw. */
  onEnd?(end: CallEnd): void;
}

/** The hooks of one middleware, and the index of the next middleware. */
interface Begun {
  hooks: CallHooks;
  next: number;
}

/** Follows one call for its hooks. */
class CallWatch implements AnswerWatch {
  /** The error that the client gets. */
  error: unknown = undefined;
  /** In the order in which they process the answer. */
  readonly hooks: CallHooks[] = [];
  /** The transforms of a stream, in the same order. */
  transforms: readonly AnswerTransform[] = [];
  /** The error that refuses a whole answer. */
  #refusal: GatewayError | undefined = undefined;

  get isWithheld(): boolean {
    for (const { refusal } of this.transforms) if (refusal !== undefined) return true;
    return this.#refusal !== undefined;
  }

  review(completion: ChatCompletion): Promise<void> | undefined {
    return this.hooks.some(({ onSettling }) => onSettling !== undefined) ? this.#review(completion) : undefined;
  }

  async #review(completion: ChatCompletion): Promise<void> {
    for (const one of this.hooks) this.#refusal ??= await one.onSettling?.(completion);
  }

  /** Stores an error of the call and returns it as the client sees it. */
  failed(error: unknown): unknown {
    this.error = error;
    for (const one of this.hooks) {
      if (this.error instanceof GatewayError) this.error = one.onError?.(this.error, 'thrown') ?? this.error;
    }
    return this.error;
  }

  end({ outcome }: Call): void {
    for (const one of this.hooks) one.onEnd?.({ error: this.error, ...outcome });
  }
}

/** Answers calls through an ordered list of middleware. A call without hooks goes straight to the engine. */
export function createPipeline(engine: Engine, middleware: readonly Middleware[]): Inference {
  const contexts = middleware.map(
    (_, at): CallContext => ({ routingOf: (call, wanted) => routingFrom(at + 1, call, wanted) }),
  );

  /** The first middleware from an index on that has hooks for a call. */
  function begin(call: Call, purpose: Purpose, from = 0): Begun | undefined {
    for (let at = from; at < middleware.length; at += 1) {
      const one = middleware[at]!;
      if (one.of === 'guardrails' && call.principal.guardrails.length === 0) continue;
      if (one.of === 'logging' && call.principal.logging === undefined) continue;
      const hooks = one.begin(call, purpose, contexts[at]!);
      if (hooks !== undefined) return { hooks, next: at + 1 };
    }
    return undefined;
  }

  /** Runs the request hooks. Adds the hooks of each middleware to the front of `hooks` before they run. */
  async function prepare(call: Call, purpose: Purpose, first: Begun, hooks: CallHooks[]): Promise<Call> {
    let prepared = call;
    let begun: Begun | undefined = first;
    while (begun !== undefined) {
      hooks.unshift(begun.hooks);
      prepared = (await begun.hooks.onRequest?.(prepared)) ?? prepared;
      begun = begin(prepared, purpose, begun.next);
    }
    return prepared;
  }

  async function prepareTask<P extends Prepared, A>(
    received: TaskCall<P, A>,
    first: Begun,
    hooks: CallHooks[],
  ): Promise<TaskCall<P, A>> {
    let prepared = received;
    let begun: Begun | undefined = first;
    while (begun !== undefined) {
      hooks.unshift(begun.hooks);
      prepared = (await begun.hooks.onTask?.(prepared.call, prepared.task)) ?? prepared;
      begun = begin(prepared.call, 'task', begun.next);
    }
    return prepared;
  }

  /** Runs one call to its end. */
  async function answered<T>(call: Call, work: (watch: CallWatch) => Promise<T>): Promise<T> {
    const watch = new CallWatch();
    try {
      return await work(watch);
    } catch (error) {
      throw watch.failed(error);
    } finally {
      watch.end(call);
    }
  }

  function complete(call: Call, first: Begun): Promise<WholeAnswer> {
    return answered(call, async (watch) => {
      const prepared = await prepare(call, 'answer', first, watch.hooks);
      let answer = await engine.complete(prepared, watch);
      for (const one of watch.hooks) {
        if (one.onWhole === undefined) answer = await transformed(answer, one);
        else answer = await one.onWhole(answer);
      }
      return { ...answer, metadata: withStages(answer.metadata, prepared.stages) };
    });
  }

  async function transformed(answer: WholeAnswer, hooks: CallHooks): Promise<WholeAnswer> {
    const transform = hooks.createTransform?.(answer.completion.choices.length);
    if (transform === undefined) return answer;
    const completion = await transformInTurns(answer.completion, transform);
    if (transform.refusal !== undefined) throw transform.refusal;
    return completion === answer.completion ? answer : { ...answer, completion };
  }

  async function* streamed(call: Call, first: Begun): AsyncGenerator<StreamPart, void, undefined> {
    const watch = new CallWatch();
    const { hooks } = watch;
    try {
      const prepared = await prepare(call, 'answer', first, hooks);
      const choices = choicesOf(prepared.request);
      const transforms = hooks.flatMap((one) => one.createTransform?.(choices) ?? []);
      watch.transforms = transforms;
      const events = withSources(engine.stream(prepared, watch));
      const shown = new TransformedEvents(events, { hooks, transforms, stages: prepared.stages });
      yield* handedOn(events, shown);
      watch.error = shown.error;
    } catch (error) {
      throw watch.failed(error);
    } finally {
      watch.end(call);
    }
  }

  /** Passes the events on. If the consumer throws on an event, the engine settles the call as failed and its last event follows. */
  async function* handedOn(
    events: Events<StreamEvent>,
    shown: TransformedEvents,
  ): AsyncGenerator<StreamPart, void, undefined> {
    try {
      yield shown;
    } catch (error) {
      const last = await events.throw(error);
      if (last.done !== true) yield shown.shown(last.value);
    } finally {
      if (!events.ended) await events.return();
    }
  }

  function run<P extends Prepared, A>(received: TaskCall<P, A>, first: Begun): Promise<TaskAnswer<A>> {
    return answered(received.call, async (watch) => {
      const { call, task } = await prepareTask(received, first, watch.hooks);
      let answer = await engine.run(call, task, watch);
      for (const one of watch.hooks) answer = one.onTaskAnswer?.(answer) ?? answer;
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
      return withSources(begun === undefined ? engine.stream(call) : streamed(call, begun));
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
