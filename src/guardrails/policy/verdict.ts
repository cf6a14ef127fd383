import type { JsonObject } from '../../schemas/json.ts';
import type { Stage } from '../../schemas/routing-metadata.ts';
import type { CountedFinding } from '../finding.ts';
import type { Refusal } from '../requests/screen.ts';
import type { ActiveFilter, FilterSet, FilterSlug } from './filter-set.ts';

const INJECTION: FilterSlug = 'regex-prompt-injection';

/** Filters that match by meaning, with an analyzer. */
const ANALYZED: ReadonlySet<FilterSlug | undefined> = new Set<FilterSlug>(['person-name', 'address']);

/** The names of entity types in the public API. */
const ENTITY_TYPES: Readonly<Partial<Record<FilterSlug, string>>> = {
  email: 'EMAIL',
  phone: 'PHONE',
  ssn: 'SSN',
  'credit-card': 'CREDIT_CARD',
  'ip-address': 'IP_ADDRESS',
  'person-name': 'PERSON',
  address: 'LOCATION',
};

/** The name of a filter in counters and metadata. Never a user's pattern. */
export function filterName({ slug }: Pick<ActiveFilter, 'slug'>): string {
  return slug ?? 'custom';
}

/** The error of a refusal, as in the public API: the filter and the field, never the matched text. */
export function refusalError({ filter, field, patterns, is_pinned }: Refusal): {
  message: string;
  metadata: JsonObject;
} {
  const { slug, label, guardrail_id, guardrail_scope } = filter;
  const metadata: JsonObject = { filter: filterName(filter), label, field, guardrail_id, guardrail_scope };
  if (is_pinned) {
    metadata['reason'] = 'it is in a name, an address or an id, which cannot be redacted';
  }
  if (slug === INJECTION) {
    return {
      message: 'Request blocked: prompt injection patterns detected',
      metadata: { ...metadata, patterns: [...patterns] },
    };
  }
  if (ANALYZED.has(slug)) return { message: `Blocked PII detected: ${label}`, metadata };
  return { message: `Request blocked by content filter: ${label}`, metadata };
}

const ACTIONS = { block: 'blocked', redact: 'redacted', flag: 'flagged' } as const;

/** Filters of one guardrail with the same action. */
interface Group {
  filter: ActiveFilter;
  action: (typeof ACTIONS)[keyof typeof ACTIONS];
  counts: Map<string, number>;
  types: Set<string>;
  engines: Set<string>;
  patterns: Set<string>;
}

const counted = (group: Group) => [...group.counts.values()].reduce((sum, count) => sum + count, 0);

/**
 * The actions of filters as pipeline stages: one for each guardrail and action, prompt injection separately. `refusal`: the filter
 * that ended the call, whatever its own action. Stages contain counts and kinds, never matched text.
 */
export function filterStages(
  { filters }: Pick<FilterSet, 'filters'>,
  findings: Iterable<CountedFinding>,
  refusal: ActiveFilter | undefined,
): Stage[] {
  const groups = new Map<string, Group>();
  for (const { filter: index, pattern, count = 1 } of findings) {
    const filter = filters[index];
    if (filter === undefined) continue;
    const action = filter === refusal ? 'blocked' : ACTIONS[filter.action];
    const key = `${filter.slug === INJECTION} ${filter.guardrail_id} ${filter.guardrail_scope} ${action}`;
    let group = groups.get(key);
    if (group === undefined) {
      group = { filter, action, counts: new Map(), types: new Set(), engines: new Set(), patterns: new Set() };
      groups.set(key, group);
    }
    const name = filter.slug ?? filter.label;
    group.counts.set(name, (group.counts.get(name) ?? 0) + count);
    group.engines.add(ANALYZED.has(filter.slug) ? 'nlp' : 'regex');
    const type = filter.slug && ENTITY_TYPES[filter.slug];
    if (type !== undefined) group.types.add(type);
    if (pattern !== undefined) group.patterns.add(pattern);
  }
  return [...groups.values()].map(stageOf);
}

function stageOf(group: Group): Stage {
  const { filter, action, counts, types, engines, patterns } = group;
  const { guardrail_id, guardrail_scope } = filter;
  const isInjection = filter.slug === INJECTION;
  const did = `${action.slice(0, 1).toUpperCase()}${action.slice(1)}`;
  const many = isInjection ? Math.max(patterns.size, 1) : counted(group);
  const summary = isInjection
    ? `${did}: prompt injection detected (${many} ${many === 1 ? 'pattern' : 'patterns'} matched)`
    : `${did}: ${many} ${many === 1 ? 'match' : 'matches'} (${[...counts.keys()].join(', ')})`;
  return {
    type: 'guardrail',
    name: isInjection ? 'regex_pi_detection' : 'content-filter',
    guardrail_id,
    guardrail_scope,
    summary,
    data: {
      action,
      detected: true,
      engines: [...engines],
      counts: Object.fromEntries(counts),
      ...(patterns.size === 0 ? {} : { patterns: [...patterns].sort() }),
      ...(types.size === 0 ? {} : { matched_entity_types: [...types].sort() }),
    },
  };
}
