import type { JsonObject } from '../../schemas/json.ts';
import type { Stage } from '../../schemas/routing-metadata.ts';
import type { Finding } from '../finding.ts';
import type { Refusal } from '../requests/screen.ts';
import type { ActiveFilter, FilterSet, FilterSlug } from './filter-set.ts';

const INJECTION: FilterSlug = 'regex-prompt-injection';

/** What is found by its meaning, not by its form. */
const ANALYZED: ReadonlySet<FilterSlug | undefined> = new Set<FilterSlug>(['person-name', 'address']);

/** What the public service calls the kinds of what it finds. */
const ENTITY_TYPES: Readonly<Partial<Record<FilterSlug, string>>> = {
  email: 'EMAIL',
  phone: 'PHONE',
  ssn: 'SSN',
  'credit-card': 'CREDIT_CARD',
  'ip-address': 'IP_ADDRESS',
  'person-name': 'PERSON',
  address: 'LOCATION',
};

/** What a filter is called where it is counted: never the pattern of a user's. */
export function filterName({ slug }: Pick<ActiveFilter, 'slug'>): string {
  return slug ?? 'custom';
}

/** What a client is told of a refusal, as by the public service: which filter and where, never what was found. */
export function refusalTold({ filter, field, patterns, is_pinned }: Refusal): {
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

const DONE = { block: 'blocked', redact: 'redacted', flag: 'flagged' } as const;

/** What filters of one guardrail did in the same way. */
interface Group {
  filter: ActiveFilter;
  action: (typeof DONE)[keyof typeof DONE];
  counts: Map<string, number>;
  types: Set<string>;
  engines: Set<string>;
  patterns: Set<string>;
}

const counted = (group: Group) => [...group.counts.values()].reduce((sum, count) => sum + count, 0);

/**
 * What filters did, as stages of the pipeline: one for each guardrail and action, prompt injection apart. `refusal`: the filter
 * that ended the call, whatever its own action is. How many and of which kind, never what.
 */
export function filterStages(
  { filters }: Pick<FilterSet, 'filters'>,
  findings: Iterable<Finding>,
  refusal: ActiveFilter | undefined,
): Stage[] {
  const groups = new Map<string, Group>();
  for (const { filter: index, pattern } of findings) {
    const filter = filters[index];
    if (filter === undefined) continue;
    const action = filter === refusal ? 'blocked' : DONE[filter.action];
    const key = `${filter.slug === INJECTION} ${filter.guardrail_id} ${filter.guardrail_scope} ${action}`;
    let group = groups.get(key);
    if (group === undefined) {
      group = { filter, action, counts: new Map(), types: new Set(), engines: new Set(), patterns: new Set() };
      groups.set(key, group);
    }
    const name = filter.slug ?? filter.label;
    group.counts.set(name, (group.counts.get(name) ?? 0) + 1);
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
