import type { GatewayError } from '../../errors.ts';
import type { FilterSet } from '../../guardrails/policy/filter-set.ts';
import { outputFiltersOf } from '../../guardrails/policy/output-filters.ts';
import { filteredJson, filteredText, filteredTexts } from '../../guardrails/streams/deep-filter.ts';
import type { Finder } from '../../guardrails/streams/stream-filter.ts';
import { UpstreamError } from '../../providers/dialect.ts';
import type { ChatCompletion, Choice } from '../../schemas/inner.ts';
import type { JsonObject } from '../../schemas/json.ts';
import type { Call } from '../call.ts';
import type { WholeAnswer } from '../events.ts';
import type { Prepared } from '../money/admission.ts';
import type { Task, TaskAnswer } from '../operations/task.ts';
import type { CallHooks, Middleware, TaskCall } from '../pipeline.ts';
import { isSeal } from '../reasoning/seal.ts';
import { type AnswerTransform, transformInTurns, withStages } from '../transform.ts';
import { errorOf, type FilterMetrics, Findings, OutputFilter } from './output-filter.ts';

export interface OutputGuardrailsOptions {
  metrics: FilterMetrics;
  /** Countries whose telephone numbers are recognized without their calling code, as configured at the moment. */
  phoneRegions?(): readonly string[];
}

/** Filters answers by their callers' output guardrails: redacted text does not reach the client, and a blocked answer ends before the match. */
export function outputGuardrails({ metrics, phoneRegions }: OutputGuardrailsOptions): Middleware {
  return {
    name: 'output guardrails',
    of: 'guardrails',
    begin(call, purpose) {
      if (purpose !== 'answer' && purpose !== 'task') return undefined;
      const set = outputFiltersOf(call.principal.guardrails, phoneRegions?.());
      if (set === undefined) return undefined;
      return purpose === 'answer' ? new AnswerGuard(call, set, metrics) : new TaskGuard(call, set, metrics);
    },
  };
}

/**
 * An error with the provider's message filtered: some quote the model's output (`failed_generation`). The beginning of an answer that
 * could not be decoded is left out: only a decoded answer can be filtered.
 */
function filteredError(error: GatewayError, finder: Finder): GatewayError {
  const { message, metadata, cause } = error;
  if (metadata?.['provider_name'] === undefined) return error;
  const shown = (text: string) => filteredText(finder, text, /^\s*[[{]/.test(text)).value;
  const filtered: Record<string, unknown> = { ...metadata };
  const isOwnError = cause instanceof UpstreamError && cause.status !== null && cause.status >= 400;
  if (!isOwnError) delete filtered['raw'];
  for (const field of ['raw', 'provider_code']) {
    if (typeof filtered[field] === 'string') filtered[field] = shown(filtered[field]);
  }
  return error.with({ message: shown(message), metadata: filtered });
}

/** A finder whose findings are not counted. */
function quietFinder(set: FilterSet): Finder {
  return { ...new Findings(set).finder, settled() {} };
}

function withoutSeal(choice: Choice): Choice {
  const { message } = choice;
  if (message.reasoning_details?.some(isSeal) !== true) return choice;
  const details = message.reasoning_details.filter((detail) => !isSeal(detail));
  return { ...choice, message: { ...message, reasoning_details: details } };
}

/** A filtered whole answer; the same object if nothing changes. A changed answer loses its seal, which is no longer valid. */
async function filteredWhole(completion: ChatCompletion, filter: OutputFilter): Promise<ChatCompletion> {
  const [first, ...others] = completion.choices;
  const bare = { ...completion, choices: [withoutSeal(first), ...others.map(withoutSeal)] } as ChatCompletion;
  const filtered = await transformInTurns(bare, filter);
  return filter.hasChanged() ? filtered : completion;
}

/** The output guardrails of one chat call. */
class AnswerGuard implements CallHooks {
  #call: Call;
  readonly #set: FilterSet;
  readonly #metrics: FilterMetrics;
  /** Filters other texts than the answer; made when needed. */
  #quiet: Finder | undefined = undefined;

  constructor(call: Call, set: FilterSet, metrics: FilterMetrics) {
    this.#call = call;
    this.#set = set;
    this.#metrics = metrics;
  }

  onRequest(call: Call): Call {
    this.#call = call;
    return call;
  }

  createTransform(choices: number): AnswerTransform {
    return this.#filterOf(choices, this.#metrics);
  }

  /** Filters a whole answer before its settlement, so that its record has the findings. */
  async onSettling(completion: ChatCompletion): Promise<GatewayError | undefined> {
    const filter = this.#filterOf(completion.choices.length, this.#metrics);
    await filteredWhole(completion, filter);
    return filter.refusal;
  }

  /** Filters it again without a report, since repairs and citations follow the settlement. */
  async onWhole(answer: WholeAnswer): Promise<WholeAnswer> {
    const filter = this.#filterOf(answer.completion.choices.length, undefined);
    const completion = await filteredWhole(answer.completion, filter);
    if (filter.refusal !== undefined) throw refused(filter.refusal, answer, this.#call);
    return completion === answer.completion ? answer : { ...answer, completion };
  }

  /** Restored state of earlier turns is filtered as well. */
  onUpstreamBody(body: JsonObject): JsonObject {
    return filteredJson(this.#quietFinder(), body).value;
  }

  onError(error: GatewayError): GatewayError {
    return filteredError(error, this.#quietFinder());
  }

  #quietFinder(): Finder {
    this.#quiet ??= quietFinder(this.#set);
    return this.#quiet;
  }

  #filterOf(choices: number, metrics: FilterMetrics | undefined): OutputFilter {
    return new OutputFilter({ call: this.#call, set: this.#set, choices, metrics });
  }
}

/** The output guardrails of one call that is not chat. */
class TaskGuard implements CallHooks {
  #call: Call;
  readonly #set: FilterSet;
  readonly #metrics: FilterMetrics;
  /** The findings of the current attempt; undefined if the answer of the task has no text. */
  #findings: Findings | undefined = undefined;
  #hasEnded = false;

  constructor(call: Call, set: FilterSet, metrics: FilterMetrics) {
    this.#call = call;
    this.#set = set;
    this.#metrics = metrics;
  }

  /** Filters the answer as it is read, before its settlement, so that its record has the findings. */
  onTask<P extends Prepared, A>(call: Call, task: Task<P, A>): TaskCall<P, A> {
    this.#call = call;
    const { mapTexts } = task;
    if (mapTexts === undefined) return { call, task };
    this.#findings = new Findings(this.#set);
    const filtered: Task<P, A> = {
      ...task,
      send: async (prepared, upstream) => this.#filtered(await task.send(prepared, upstream), mapTexts),
    };
    return { call, task: filtered };
  }

  onTaskAnswer<A>(answer: TaskAnswer<A>): TaskAnswer<A> {
    if (this.#findings === undefined || !this.#hasEnded) return answer;
    throw refused(errorOf(this.#findings.refusal()), answer, this.#call);
  }

  onError(error: GatewayError): GatewayError {
    return this.#findings === undefined ? error : filteredError(error, quietFinder(this.#set));
  }

  #filtered<P extends Prepared, A>(answer: A, mapTexts: NonNullable<Task<P, A>['mapTexts']>): A {
    const findings = new Findings(this.#set);
    this.#findings = findings;
    const filtered = mapTexts(answer, (texts) => {
      // The words of the text appear again with their times: a repeated match is not counted twice.
      const finder = findings.isEmpty ? findings.finder : { ...findings.finder, settled() {} };
      const { value, has_ended } = filteredTexts(finder, texts);
      this.#hasEnded ||= has_ended;
      return value;
    });
    findings.report(this.#call, this.#metrics);
    return filtered;
  }
}

/** A refusal with the routing of its answer. */
function refused(error: GatewayError, { metadata }: Pick<WholeAnswer, 'metadata'>, { stages }: Call): GatewayError {
  return metadata === undefined ? error : error.with({ gateway_metadata: withStages(metadata, stages) });
}
