import { GatewayError } from '../errors.ts';
import { type AnswerFilterOptions, createAnswerFilter, wantsJson } from '../guardrails/answer-filter.ts';
import { filteredJson, filteredText, filteredTexts } from '../guardrails/deep-filter.ts';
import type { ActiveFilter, FilterSet } from '../guardrails/filter-set.ts';
import { filteredAnswer } from '../guardrails/filtered-answer.ts';
import type { Finding } from '../guardrails/finding.ts';
import { finderOf, outputFiltersOf } from '../guardrails/output-filters.ts';
import type { Finder } from '../guardrails/stream-filter.ts';
import { filterName, filterStages } from '../guardrails/verdict.ts';
import { METERED } from '../http/metered.ts';
import { withSources } from '../http/sources.ts';
import { append } from '../schemas/append.ts';
import { choicesOf, ends, OpenChoices } from '../schemas/by-choice.ts';
import type { ChatChunk, ChatCompletion, ChoiceError } from '../schemas/inner.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Prepared } from './admission.ts';
import type { Inference, WholeAnswer } from './answer.ts';
import type { Call } from './call.ts';
import { isSeal } from './state/seal.ts';
import type { StreamEvent } from './stream-answer.ts';
import type { Task, TaskAnswer } from './task.ts';

export interface MaskedOptions {
  metrics: Pick<Metrics, 'contentFiltered'>;
  /** What is said at the moment. Countries whose telephone numbers need no calling code to be found. */
  phone_regions?(): readonly string[];
}

/** What filters found in one answer, told once. */
interface Tally {
  readonly options: AnswerFilterOptions;
  hasFound(): boolean;
  /** The filter that ended the answer. */
  ending(): ActiveFilter | undefined;
  /** Tells what was found in the call's stages, from where it comes into its record and to the client. */
  tell(): void;
}

/** Why an answer is not shown, or not on: which filter, never what it found. */
function refusalOf({ label, guardrail_id, guardrail_scope, ...filter }: ActiveFilter): ChoiceError {
  return {
    code: 403,
    message: `Response blocked by content filter: ${label}`,
    metadata: { filter: filterName(filter), label, guardrail_id, guardrail_scope },
  };
}

/** An error with what its provider says of it filtered: some quote what the model wrote (`failed_generation`). */
function maskedError<T>(error: T, finder: Finder): T | GatewayError {
  if (!(error instanceof GatewayError) || error.metadata?.['provider_name'] === undefined) return error;
  const { status, message, metadata, gateway_metadata, headers, cause } = error;
  const shown = (text: string) => filteredText(finder, text, /^\s*[[{]/.test(text)).value;
  const told: Record<string, unknown> = { ...metadata };
  for (const field of ['raw', 'provider_code']) {
    if (typeof told[field] === 'string') told[field] = shown(told[field]);
  }
  return new GatewayError(status, shown(message), {
    metadata: told,
    ...(gateway_metadata === undefined ? {} : { gateway_metadata }),
    ...(headers === undefined ? {} : { headers }),
    cause,
  });
}

/** The routing as the client sees it, with what was done to the answer after it was written. */
function withStages<T extends Record<string, unknown> | undefined>(metadata: T, { stages }: Call): T {
  return metadata === undefined || stages.length === 0 ? metadata : { ...metadata, pipeline: stages };
}

/**
 * Holds answers against the filters of their callers' guardrails that say so: what is to be redacted does not reach the
 * client, and one that is blocked ends where the match begins. Answers that no filter holds for pass through.
 */
export function createMasked(inner: Inference, { metrics, phone_regions }: MaskedOptions): Inference {
  function tallyOf(call: Call, set: FilterSet): Tally {
    const findings: Finding[] = [];
    let ending: ActiveFilter | undefined;
    let is_told = false;
    const finder = finderOf(set, (finding) => {
      findings.push(finding);
      const filter = set.filters[finding.filter]!;
      if (filter.action === 'block') ending ??= filter;
    });
    return {
      options: { finder, content_is_json: wantsJson(call.request), keeps_signatures: false, isOfTurn: isSeal },
      hasFound: () => findings.length > 0,
      ending: () => ending,
      tell() {
        if (is_told || findings.length === 0) return;
        is_told = true;
        for (const stage of filterStages(set, findings, ending)) {
          call.stages.push({
            ...stage,
            summary: `Answer ${stage.summary?.toLowerCase()}`,
            data: { ...stage.data, in: 'answer' },
          });
        }
        for (const { filter } of findings)
          metrics.contentFiltered(filterName(set.filters[filter]!), set.filters[filter]!.action);
      },
    };
  }

  /** The same filters where what they find is not counted. */
  const quietFinder = (call: Call, set: FilterSet): Finder => ({ ...tallyOf(call, set).options.finder, settled() {} });

  async function masked(call: Call, set: FilterSet): Promise<WholeAnswer> {
    // What was found is told before the answer is settled, so that its record has it.
    let tally: Tally | undefined;
    let has_ended = false;
    const review = (completion: ChatCompletion) => {
      tally = tallyOf(call, set);
      has_ended = filteredAnswer(completion, tally.options).filter.hasEnded();
      tally.tell();
    };
    const answer = await inner
      .complete({ ...call, review, isWithheld: () => has_ended })
      .catch((error: unknown) => Promise.reject(maskedError(error, quietFinder(call, set))));
    const last = tallyOf(call, set);
    const { completion, filter } = filteredAnswer(answer.completion, last.options);
    if (tally === undefined) last.tell();
    const metadata = withStages(answer.metadata, call);
    if (filter.hasEnded()) throw refused(last.ending(), metadata);
    return completion === answer.completion ? answer : { ...answer, completion, metadata };
  }

  function refused(
    ending: ActiveFilter | undefined,
    gateway_metadata: Record<string, unknown> | undefined,
  ): GatewayError {
    const { message, metadata } = refusalTold(ending);
    return new GatewayError(403, message, {
      ...(metadata === undefined ? {} : { metadata }),
      ...(gateway_metadata === undefined ? {} : { gateway_metadata }),
    });
  }

  async function* maskedStream(call: Call, set: FilterSet): AsyncGenerator<StreamEvent, void, undefined> {
    const tally = tallyOf(call, set);
    const choices = choicesOf(call.request);
    const filter = createAnswerFilter(tally.options, choices);
    const unfinished = new OpenChoices(choices);
    const quiet = quietFinder(call, set);
    let is_open = false;
    let is_over = false;
    const shown = (chunks: ChatChunk[]): ChatChunk[] => {
      if (filter.hasEnded() && !is_over) {
        is_over = true;
        const error = refusalTold(tally.ending());
        for (const chunk of chunks) unfinished.note(chunk);
        const end: ChatChunk = { delta: {}, finish_reason: 'content_filter', native_finish_reason: null, error };
        append(chunks, ends(unfinished.open, end));
      } else if (choices > 1) for (const chunk of chunks) unfinished.note(chunk);
      if (is_over || chunks.some(({ finish_reason }) => finish_reason != null)) tally.tell();
      return chunks;
    };
    for await (const event of failing(inner.stream({ ...call, isWithheld: filter.hasEnded }), quiet)) {
      if (event.type === 'chunks') {
        const chunks = is_over ? [] : shown(filter.take(event.chunks));
        if (chunks.length > 0) yield { type: 'chunks', chunks };
        continue;
      }
      const held = is_over ? [] : shown(event.type === 'end' ? filter.end() : is_open ? filter.reopen() : []);
      if (held.length > 0) yield { type: 'chunks', chunks: held };
      if (event.type === 'end') {
        tally.tell();
        // The answer has its end; that its upstream failed after it is nothing to the client.
        yield {
          ...event,
          metadata: withStages(event.metadata, call),
          error: is_over ? undefined : maskedError(event.error, quiet),
        };
        continue;
      }
      is_open = true;
      // What comes back of former turns was not shown to the client, nor is it here.
      const upstream_bodies = event.upstream_bodies.map(({ served, body }) => ({
        served,
        body: filteredJson(quiet, body).value,
      }));
      yield { ...event, upstream_bodies };
    }
  }

  /** The answer of a call that is not chat: filtered before it is settled, so that its record says what was found. */
  async function maskedTask<P extends Prepared, A>(
    call: Call,
    task: Task<P, A>,
    retell: NonNullable<Task<P, A>['retell']>,
    set: FilterSet,
  ): Promise<TaskAnswer<A>> {
    let tally = tallyOf(call, set);
    let has_ended = false;
    const shown = (texts: readonly string[]) => {
      // Its words are told with their times as well: what is found in them again is no second finding.
      const finder = tally.hasFound() ? { ...tally.options.finder, settled: () => {} } : tally.options.finder;
      const filtered = filteredTexts(finder, texts);
      has_ended ||= filtered.has_ended;
      return filtered.value;
    };
    const masked: Task<P, A> = {
      ...task,
      async send(prepared, line) {
        tally = tallyOf(call, set);
        const retold = retell(await task.send(prepared, line), shown);
        tally.tell();
        return retold;
      },
    };
    const answer = await inner
      .run(call, masked)
      .catch((error: unknown) => Promise.reject(maskedError(error, quietFinder(call, set))));
    const metadata = withStages(answer.metadata, call);
    if (has_ended) throw refused(tally.ending(), metadata);
    return { ...answer, metadata };
  }

  const setOf = ({ principal: { guardrails } }: Call) =>
    guardrails.length === 0 ? undefined : outputFiltersOf(guardrails, phone_regions?.());

  return {
    ...inner,
    [METERED]: true,
    complete(call) {
      const set = setOf(call);
      return set === undefined ? inner.complete(call) : masked(call, set);
    },
    stream(call) {
      const set = setOf(call);
      return set === undefined ? inner.stream(call) : withSources(maskedStream(call, set));
    },
    run(call, task) {
      const set = setOf(call);
      if (set === undefined || task.retell === undefined) return inner.run(call, task);
      return maskedTask(call, task, task.retell, set);
    },
  };
}

/** The same events; what they fail with is filtered. */
async function* failing(events: AsyncIterable<StreamEvent>, finder: Finder): AsyncGenerator<StreamEvent> {
  try {
    yield* events;
  } catch (error) {
    throw maskedError(error, finder);
  }
}

/** The same where what ended the answer was no filter's finding: it might have gone on as a match for ever. */
function refusalTold(ending: ActiveFilter | undefined): ChoiceError {
  if (ending !== undefined) return refusalOf(ending);
  return {
    code: 403,
    message: 'Response blocked by content filter: a part of it may be a match, and is too long to be held back',
  };
}
