import { type Candidate, tagOf } from './candidate.ts';

/** Names of a client's list in lower case, with their positions. */
export type NameList = ReadonlyMap<string, number>;

/** A client's list of names; undefined if it is empty, which means no restriction. */
export function nameList(names: readonly string[] | null | undefined): NameList | undefined {
  if (!names?.length) return undefined;
  const list = new Map<string, number>();
  for (const [position, name] of names.entries()) {
    const compared = name.toLowerCase();
    if (!list.has(compared)) list.set(compared, position);
  }
  return list;
}

/**
 * The position of the first name that matches this endpoint: a provider's slug or display name, or an endpoint's own tag; undefined if
 * none does. A service tier must be named with its tag, unless the request selects tiers in another way (public service's
 * documentation, "Service tiers").
 */
export function positionIn(list: NameList, candidate: Candidate, selectsTiers: boolean): number | undefined {
  const { provider, endpoint, tier } = candidate;
  const exact = tier === undefined ? undefined : list.get(tagOf(candidate).toLowerCase());
  if (tier !== undefined && !selectsTiers) return exact;
  let first = exact;
  for (const name of [provider.slug, provider.name.toLowerCase(), endpoint.tag.toLowerCase()]) {
    const position = list.get(name);
    if (position !== undefined && (first === undefined || position < first)) first = position;
  }
  return first;
}

/** Whether one of the names matches the endpoint. */
export function isNamed(list: NameList, candidate: Candidate, selectsTiers: boolean): boolean {
  return positionIn(list, candidate, selectsTiers) !== undefined;
}
