import { GatewayError } from '../../errors.ts';
import type { CountedFinding } from '../../guardrails/finding.ts';
import type { ActiveFilter, FilterSet } from '../../guardrails/policy/filter-set.ts';
import { finderOf } from '../../guardrails/policy/output-filters.ts';
import { filterName, filterStages } from '../../guardrails/policy/verdict.ts';
import { type AnswerFilter, createAnswerFilter, wantsJson } from '../../guardrails/streams/answer-filter.ts';
import type { Finder } from '../../guardrails/streams/stream-filter.ts';
import { append } from '../../schemas/append.ts';
import { ends, OpenChoices } from '../../schemas/by-choice.ts';
import type { ChatChunk, ChoiceError } from '../../schemas/inner.ts';
import type { Metrics } from '../../telemetry/metrics.ts';
import type { Call } from '../call.ts';
import { isSeal } from '../reasoning/seal.ts';
import type { AnswerTransform } from '../transform.ts';

/** Counts findings. */
export type FilterMetrics = Pick<Metrics, 'contentFiltered'>;

/** The findings of the filters in one answer. They are reported once. */
export class Findings {
  readonly finder: Finder;
  readonly #set: FilterSet;
  /** Counted by filter and pattern: an answer may have a million findings. */
  readonly #matches = new Map<string, CountedFinding & { count: number }>();
  /** The filter that ends the answer. */
  #ending: ActiveFilter | undefined = undefined;
  #isReported = false;

  constructor(set: FilterSet) {
    this.#set = set;
    this.finder = finderOf(set, (finding) => {
      const kind = finding.pattern === undefined ? String(finding.filter) : `${finding.filter} ${finding.pattern}`;
      const known = this.#matches.get(kind);
      if (known === undefined) this.#matches.set(kind, { ...finding, count: 1 });
      else known.count += 1;
      const filter = set.filters[finding.filter]!;
      if (filter.action === 'block') this.#ending ??= filter;
    });
  }

  get isEmpty(): boolean {
    return this.#matches.size === 0;
  }

  /** Adds the findings to the stages of the call, which its record and its client show, and to the metrics. */
  report({ stages }: Pick<Call, 'stages'>, metrics: FilterMetrics): void {
    if (this.#isReported || this.isEmpty) return;
    this.#isReported = true;
    for (const stage of filterStages(this.#set, this.#matches.values(), this.#ending)) {
      stages.push({
        ...stage,
        summary: `Answer ${stage.summary?.toLowerCase()}`,
        data: { ...stage.data, in: 'answer' },
      });
    }
    const { filters } = this.#set;
    for (const { filter: index, count } of this.#matches.values()) {
      const filter = filters[index]!;
      metrics.contentFiltered(filterName(filter), filter.action, count);
    }
  }

  /** Why an answer is withheld: names the filter, never the match. */
  refusal(): ChoiceError {
    if (this.#ending === undefined) {
      return {
        code: 403,
        message: 'Response blocked by content filter: a part of it may be a match, and is too long to be held back',
      };
    }
    const { label, guardrail_id, guardrail_scope, ...filter } = this.#ending;
    return {
      code: 403,
      message: `Response blocked by content filter: ${label}`,
      metadata: { filter: filterName(filter), label, guardrail_id, guardrail_scope },
    };
  }
}

/** A refusal as an error of the call. */
export function errorOf({ message, metadata }: ChoiceError): GatewayError {
  return new GatewayError(403, message, metadata === undefined ? {} : { metadata });
}

interface OutputFilterOptions {
  call: Pick<Call, 'request' | 'stages'>;
  set: FilterSet;
  choices: number;
  /** Undefined if findings are not reported. */
  metrics: FilterMetrics | undefined;
}

/** Filters the chunks of one answer: replaces redacted text, and ends a blocked answer before the match. */
export class OutputFilter implements AnswerTransform {
  refusal: GatewayError | undefined = undefined;
  readonly #findings: Findings;
  readonly #filter: AnswerFilter;
  readonly #options: OutputFilterOptions;
  readonly #unfinished: OpenChoices;

  constructor(options: OutputFilterOptions) {
    const { call, set, choices } = options;
    this.#options = options;
    this.#findings = new Findings(set);
    this.#filter = createAnswerFilter(
      {
        finder: this.#findings.finder,
        content_is_json: wantsJson(call.request),
        keeps_signatures: false,
        isOfTurn: isSeal,
      },
      choices,
    );
    this.#unfinished = new OpenChoices(choices);
  }

  take(chunks: ChatChunk[]): ChatChunk[] {
    return this.refusal === undefined ? this.#shown(this.#filter.take(chunks)) : [];
  }

  reopen(): ChatChunk[] {
    return this.refusal === undefined ? this.#shown(this.#filter.reopen()) : [];
  }

  end(): ChatChunk[] {
    const rest = this.refusal === undefined ? this.#shown(this.#filter.end()) : [];
    this.#report();
    return rest;
  }

  hasChanged(): boolean {
    return this.#filter.hasChanged();
  }

  #shown(chunks: ChatChunk[]): ChatChunk[] {
    if (this.#filter.hasEnded()) {
      const error = this.#findings.refusal();
      this.refusal = errorOf(error);
      for (const chunk of chunks) this.#unfinished.note(chunk);
      const end: ChatChunk = { delta: {}, finish_reason: 'content_filter', native_finish_reason: null, error };
      append(chunks, ends(this.#unfinished.open, end));
    }
    if (this.refusal !== undefined || this.#hasFinished(chunks)) this.#report();
    return chunks;
  }

  /** Whether all choices have ended: their findings are reported together. */
  #hasFinished(chunks: readonly ChatChunk[]): boolean {
    const isEnding = chunks.some(({ finish_reason }) => finish_reason != null);
    if (!isEnding || this.#options.choices === 1) return isEnding;
    for (const chunk of chunks) this.#unfinished.note(chunk);
    return this.#unfinished.open.length === 0;
  }

  #report(): void {
    const { call, metrics } = this.#options;
    if (metrics !== undefined) this.#findings.report(call, metrics);
  }
}
