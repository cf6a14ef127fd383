import type { Report } from '../providers/dialect.ts';
import { type OwnCredential, type ShownCredential, shownCredential } from '../routing/own-credential.ts';
import type { Candidate, Plan } from '../routing/plan.ts';
import type { AttemptFacts } from './attempt-facts.ts';

/** One attempt, as the routing metadata shows it. */
export interface ShownAttempt extends Partial<AttemptFacts> {
  provider: string;
  model: string;
  /** 0 when there was no answer at all. */
  status: number;
  is_byok: boolean;
  /** The organization's own credential that was used. */
  byok?: ShownCredential;
}

/** Whose credential an endpoint is called with: what may be shown of it. */
export function shownOwn(own: OwnCredential | undefined): Pick<ShownAttempt, 'is_byok' | 'byok'> {
  return own === undefined ? { is_byok: false } : { is_byok: true, byok: shownCredential(own) };
}

/**
 * What the routing did, for clients that ask for it (`X-Gateway-Experimental-Metadata: enabled`). Names of the fields:
 * the public service's router metadata; `adjusted_parameters` is ours.
 */
export function routingMetadata(facts: {
  plan: Plan;
  requested: string;
  attempts: readonly ShownAttempt[];
  selected: Candidate | undefined;
  report: readonly Report[];
}): Record<string, unknown> {
  const { plan, selected, attempts } = facts;
  const available = plan.candidates.filter((candidate) => candidate.excluded === undefined);
  return {
    requested: facts.requested,
    strategy: plan.strategy,
    region: null,
    summary: `available=${available.length}${selected ? `, selected=${selected.provider.name}` : ''}`,
    attempt: attempts.length,
    is_byok: selected === undefined ? attempts.at(-1)?.is_byok === true : selected.own !== undefined,
    endpoints: {
      total: plan.candidates.length,
      available: available.map((candidate) => ({
        provider: candidate.provider.name,
        model: candidate.model.id,
        selected: candidate === selected,
        ...shownOwn(candidate.own),
      })),
      excluded: plan.candidates.flatMap(({ provider, model, own, excluded }) =>
        excluded ? [{ provider: provider.name, model: model.id, ...excluded, ...shownOwn(own) }] : [],
      ),
    },
    attempts,
    adjusted_parameters: facts.report,
  };
}
