import { type Candidate, tagOf } from './candidate.ts';

/** Names of a client's list, as they are compared, each with its place in it. */
export type NameList = ReadonlyMap<string, number>;

/** A client's list of names; undefined where it is empty, so that it says nothing. */
export function nameList(given: readonly string[] | null | undefined): NameList | undefined {
  if (!given?.length) return undefined;
  const list = new Map<string, number>();
  for (const [place, name] of given.entries()) {
    const compared = name.toLowerCase();
    if (!list.has(compared)) list.set(compared, place);
  }
  return list;
}

/**
 * The place of the first name that means this endpoint: a provider's slug or display name, or an endpoint's own tag; undefined:
 * none does. A service tier has to be named with its tag, unless the request asks for tiers in another way (public service's
 * documentation, "Service tiers").
 */
export function placeIn(list: NameList, candidate: Candidate, tiersAsked: boolean): number | undefined {
  const { provider, endpoint, tier } = candidate;
  const exact = tier === undefined ? undefined : list.get(tagOf(candidate).toLowerCase());
  if (tier !== undefined && !tiersAsked) return exact;
  let first = exact;
  for (const name of [provider.slug, provider.name.toLowerCase(), endpoint.tag.toLowerCase()]) {
    const place = list.get(name);
    if (place !== undefined && (first === undefined || place < first)) first = place;
  }
  return first;
}

/** Whether one of the names means it. */
export function isNamed(list: NameList, candidate: Candidate, tiersAsked: boolean): boolean {
  return placeIn(list, candidate, tiersAsked) !== undefined;
}
