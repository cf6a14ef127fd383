import { GatewayError } from '../../errors.ts';
import type { Analyzer } from '../../guardrails/entities/analyzer.ts';
import type { Finding } from '../../guardrails/finding.ts';
import { type FilterSet, filterSetOf } from '../../guardrails/policy/filter-set.ts';
import { filterStages } from '../../guardrails/policy/verdict.ts';
import { createNumbering } from '../../guardrails/redaction.ts';
import { type FoundText, type Refusal, type Subject, screen } from '../../guardrails/requests/screen.ts';
import { nextTurn } from '../../next-turn.ts';
import type { BoundGuardrail } from '../../schemas/guardrail.ts';
import type { Stage } from '../../schemas/routing-metadata.ts';

/** The effect that guardrails would have on a request. */
export interface DryRun<T> {
  /** The strictest action. */
  verdict: 'passed' | 'flagged' | 'redacted' | 'blocked';
  /** The content after redaction. */
  subject: T;
  refusal: Refusal | undefined;
  matches: readonly FoundText[];
  /** The texts of `matches` that would be changed. */
  changed: ReadonlyMap<FoundText, string>;
  /** The filters that the findings of `matches` refer to by index. */
  filters: FilterSet['filters'];
  stages: Stage[];
}

export interface DryRunOptions {
  analyzer: Analyzer;
  timeout_ms: number;
  /** Countries whose telephone numbers are recognized without their calling code. */
  phone_regions?: readonly string[] | undefined;
}

/**
 * Applies the filters of guardrails to texts, by the code that filters requests. Nothing is counted or stored. Throws `GatewayError` 503
 * if the search for names and addresses takes too long.
 */
export async function dryRun<T>(
  subject: Subject<T>,
  guardrails: readonly BoundGuardrail[],
  { analyzer, timeout_ms, phone_regions }: DryRunOptions,
): Promise<DryRun<T>> {
  const set = filterSetOf(guardrails, phone_regions);
  if (set === undefined) {
    return {
      verdict: 'passed',
      subject: subject((text) => text),
      refusal: undefined,
      matches: [],
      changed: new Map(),
      filters: [],
      stages: [],
    };
  }
  const screened = await screen(subject, {
    set,
    guardrails,
    numbering: createNumbering(),
    pause: nextTurn,
    analyze: (texts) => analyzeInTime(analyzer, texts, timeout_ms).catch(unavailable),
  });
  const { matches, refusal } = screened;
  const findings = matches.flatMap((one) => one.findings);
  const stages = filterStages(set, findings, refusal?.filter);
  return { ...screened, verdict: verdictOf(findings, refusal, set), filters: set.filters, stages };
}

function verdictOf(findings: readonly Finding[], refusal: Refusal | undefined, { filters }: FilterSet) {
  if (refusal !== undefined) return 'blocked';
  if (findings.length === 0) return 'passed';
  return findings.some(({ filter }) => filters[filter]?.action === 'redact') ? 'redacted' : 'flagged';
}

/** Throws the refusal of a dry run whose analyzer failed. */
export function unavailable(cause: unknown): never {
  throw new GatewayError(503, 'The search for names and addresses took too long; try again soon', {
    headers: { 'retry-after': '1' },
    cause,
  });
}

/** The result of an analyzer. Rejects after `timeoutMs`. */
export async function analyzeInTime(
  analyzer: Analyzer,
  texts: readonly string[],
  timeoutMs: number,
): ReturnType<Analyzer['analyze']> {
  const signal = AbortSignal.timeout(timeoutMs);
  const { promise, reject } = Promise.withResolvers<never>();
  const late = () => reject(signal.reason as Error);
  signal.addEventListener('abort', late, { once: true });
  try {
    return await Promise.race([analyzer.analyze(texts, signal), promise]);
  } finally {
    signal.removeEventListener('abort', late);
  }
}
