import { type Candidate, tagOf } from './candidate.ts';

/** Names of a client's list, as they are compared. */
export type NameList = readonly string[];

/** A client's list of names; undefined where it is empty, so that it says nothing. */
export function nameList(given: readonly string[] | null | undefined): NameList | undefined {
  return given?.length ? given.map((name) => name.toLowerCase()) : undefined;
}

/**
 * Whether a name means this endpoint: a provider's slug or display name, or an endpoint's own tag. A service tier has to be
 * named with its tag, unless the request asks for tiers in another way (public service's documentation, "Service tiers").
 */
export function means(name: string, candidate: Candidate, tiers_asked: boolean): boolean {
  const { provider, endpoint, tier } = candidate;
  if (tier !== undefined) {
    if (name === tagOf(candidate).toLowerCase()) return true;
    if (!tiers_asked) return false;
  }
  return name === provider.slug || name === provider.name.toLowerCase() || name === endpoint.tag.toLowerCase();
}

/** Whether one of the names means it. */
export function isNamed(list: NameList, candidate: Candidate, tiers_asked: boolean): boolean {
  return list.some((name) => means(name, candidate, tiers_asked));
}
