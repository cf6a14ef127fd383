import type { Prices } from '../schemas/prices.ts';
import { type Candidate, healthId, type Place, pricesOf, servedId } from './candidate.ts';
import { type Cutoffs, missesCutoff } from './cutoffs.ts';
import type { Health } from './health.ts';
import { PRIORITY_TIERS, type Sort } from './model-variant.ts';
import { placeIn } from './names.ts';
import { isTight } from './needs.ts';
import type { Asked } from './rules.ts';

/** What the order of endpoints hangs on, beside the request. */
export interface OrderContext {
  health: Pick<Health, 'coolingUntil' | 'hadOutage' | 'performance'>;
  now_ms: number;
  draw: number;
  cutoffs: Cutoffs | undefined;
  /** Absent: by a weighted draw. */
  sortOf(candidate: Candidate): Sort | undefined;
  prefers: ((candidate: Candidate) => boolean) | undefined;
  sticky: ((candidate: Candidate) => boolean) | undefined;
}

/** What a typical call costs: three prompt tokens and one of completion; what transcribes by the second has no price of these. An unknown price is the dearest. */
export function typicalPrice({ prompt, completion, audio_second: audioSecond, discount = 0 }: Prices): number {
  if (prompt === undefined && completion === undefined && audioSecond === undefined) return Number.POSITIVE_INFINITY;
  return (3 * (prompt ?? 0) + (completion ?? 0) + (audioSecond ?? 0)) * (1 - discount);
}

/** How much each thing moves an endpoint back: the greater goes before all the smaller ones together. */
const BEHIND = { below_preferred: 8, recent_outage: 4, prompt_may_not_fit: 2, state_elsewhere: 1 } as const;

interface Ranked {
  candidate: Candidate;
  cooling: number;
  behind: number;
  sort: Sort | undefined;
  /** By what it is sorted; the smaller stands first. */
  key: number;
  price: number;
}

/** By what an endpoint is sorted, smaller first; what nothing is known of comes last. */
function keyOf(candidate: Candidate, sort: Sort | undefined, price: number, context: OrderContext): number {
  if (sort === undefined || sort === 'price') return price;
  const known = context.health.performance(servedId(candidate), context.now_ms);
  if (sort === 'latency') return known.latency_ms?.p50 ?? Number.POSITIVE_INFINITY;
  const speed = known.throughput?.p50;
  if (sort === 'throughput') return speed === undefined ? Number.POSITIVE_INFINITY : -speed;
  // Tool calls that differ by less than two in a hundred are told apart by speed.
  if (known.tool_success === null) return Number.POSITIVE_INFINITY;
  return -Math.round(known.tool_success * 50) - (speed === undefined ? 0 : speed / (speed + 1));
}

function rank(candidate: Candidate, asked: Asked, context: OrderContext): Ranked {
  const { health, now_ms: nowMs, prefers, cutoffs } = context;
  const id = healthId(candidate);
  const price = typicalPrice(pricesOf(candidate, asked.needs.prompt_tokens));
  const sort = context.sortOf(candidate);
  let behind = 0;
  if (cutoffs !== undefined && missesCutoff(cutoffs, health.performance(servedId(candidate), nowMs))) {
    behind += BEHIND.below_preferred;
  }
  // Who says what to sort by gets that order, as long as nothing is known to be down.
  if (sort === undefined && health.hadOutage(id, nowMs)) behind += BEHIND.recent_outage;
  if (isTight(candidate.endpoint, asked.needs)) behind += BEHIND.prompt_may_not_fit;
  if (prefers !== undefined && !prefers(candidate)) behind += BEHIND.state_elsewhere;
  return {
    candidate,
    cooling: health.coolingUntil(id, nowMs),
    behind,
    sort,
    key: keyOf(candidate, sort, price, context),
    price,
  };
}

function compare(a: Ranked, b: Ranked): number {
  // Infinity minus itself is no number.
  return a.cooling - b.cooling || a.behind - b.behind || less(a.key, b.key) || less(a.price, b.price);
}

function less(a: number, b: number): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** One of those that stand alike at the head, drawn by the inverse square of its price; each keeps its share. Free ones before all, evenly. */
function drawn(head: readonly Ranked[], draw: number): number {
  const least = head[0]?.price ?? 0;
  let total = 0;
  for (const { price } of head) total += weightOf(price, least);
  let chosen = -1;
  let rest = draw * total;
  for (let at = 0; at < head.length; at += 1) {
    const { candidate, price } = head[at] as Ranked;
    const weight = weightOf(price, least);
    candidate.weight = weight / total;
    rest -= weight;
    if (chosen === -1 && rest < 0) chosen = at;
  }
  return Math.max(chosen, 0);
}

function weightOf(price: number, least: number): number {
  if (price === least) return 1;
  return least === 0 || price === Number.POSITIVE_INFINITY ? 0 : (least / price) ** 2;
}

const BY: Readonly<Record<Sort, readonly Place[]>> = {
  price: ['price'],
  throughput: ['throughput'],
  latency: ['latency'],
  exacto: ['exacto'],
};

function explain({ sort, cooling, behind }: Ranked, context: OrderContext): readonly Place[] {
  const by = BY[sort ?? 'price'];
  const withState = context.prefers !== undefined && (behind & BEHIND.state_elsewhere) === 0;
  if (cooling === 0 && behind === 0 && !withState) return by;
  const because: Place[] = withState ? ['state', ...by] : [...by];
  if (cooling > 0) because.push('cooling_down');
  if (behind & BEHIND.below_preferred) because.push('below_preferred');
  if (behind & BEHIND.recent_outage) because.push('recent_outage');
  if (behind & BEHIND.prompt_may_not_fit) because.push('prompt_may_not_fit');
  return because;
}

/** Those at the head that nothing but what they are sorted by tells apart; none where there is an order that a client or its caller wants. */
function headOf(all: readonly Ranked[], asked: Asked): readonly Ranked[] {
  const [first] = all;
  const isFree = ({ cooling, sort }: Ranked) => cooling === 0 && sort === undefined;
  if (asked.order !== undefined || first === undefined) return [];
  const end = all.findIndex((one) => !isFree(one) || one.behind !== first.behind);
  return end === -1 ? all : all.slice(0, end);
}

/** Of each endpoint the first: several credentials for one are used in their own order, and do not make it likelier. */
function firstOfEach(head: readonly Ranked[]): readonly Ranked[] {
  if (head.every(({ candidate }) => candidate.own === undefined)) return head;
  const seen = new Set<string>();
  return head.filter(({ candidate }) => {
    const id = servedId(candidate);
    return !seen.has(id) && seen.add(id);
  });
}

/**
 * By rank: cooling ones last, then those that something moves back, then what is sorted by. Without a sort the first is the
 * one that the conversation went to before, or is drawn, among those that stand alike; the others follow by price.
 */
function ranked(candidates: readonly Candidate[], asked: Asked, context: OrderContext): Candidate[] {
  const all = candidates.map((candidate) => rank(candidate, asked, context));
  if (all.length > 1) all.sort(compare);
  for (const one of all) one.candidate.because = explain(one, context);
  const inOrder = all.map(({ candidate }) => candidate);
  const head = headOf(all, asked);
  if (head.length < 2) return inOrder;
  const { sticky } = context;
  const kept = sticky === undefined ? undefined : head.find(({ candidate }) => sticky(candidate));
  const drawable = kept === undefined ? firstOfEach(head) : [kept];
  const { candidate: chosen } = drawable[drawable.length > 1 ? drawn(drawable, context.draw) : 0] as Ranked;
  if (kept !== undefined) withPlace(chosen, 'sticky');
  else if (drawable.length > 1) withPlace(chosen, 'drawn');
  return [chosen, ...inOrder.filter((candidate) => candidate !== chosen)];
}

function withPlace(candidate: Candidate, place: Place): void {
  candidate.because = [place, ...(candidate.because ?? [])];
}

/** Among credentials of one kind: the client's `order` first, as given; then the rest by rank, when fallbacks are allowed. */
function alike(candidates: readonly Candidate[], asked: Asked, context: OrderContext): Candidate[] {
  const byRank = tiersFirst(ranked(candidates, asked, context), asked);
  const { order } = asked;
  if (order === undefined) return byRank;
  const places = new Map<Candidate, number>();
  for (const candidate of byRank) {
    const place = placeIn(order, candidate, asked.tiers_asked);
    if (place !== undefined) places.set(candidate, place);
  }
  // Sorting keeps the rank of those that one name means.
  const chosen = [...places.keys()].sort((a, b) => (places.get(a) ?? 0) - (places.get(b) ?? 0));
  for (const candidate of chosen) withPlace(candidate, 'order');
  if (asked.preferences.allow_fallbacks === false) return chosen;
  return [...chosen, ...byRank.filter((candidate) => !places.has(candidate))];
}

/** A request for the priority tier goes to endpoints that have it first, as at the public service. */
function tiersFirst(candidates: Candidate[], { request: { service_tier: serviceTier } }: Asked): Candidate[] {
  if (serviceTier == null || !PRIORITY_TIERS.includes(serviceTier)) return candidates;
  const inTier = candidates.filter(({ tier }) => tier !== undefined);
  if (inTier.length === 0) return candidates;
  for (const candidate of inTier) withPlace(candidate, 'service_tier');
  return [...inTier, ...candidates.filter(({ tier }) => tier === undefined)];
}

/**
 * The order of these candidates: own credentials, the gateway's, own credentials that are a fallback (the public service's
 * documentation, "BYOK": own ones stand before the client's `order`).
 */
export function inOrder(candidates: readonly Candidate[], asked: Asked, context: OrderContext): Candidate[] {
  if (candidates.every(({ own }) => own === undefined)) return alike(candidates, asked, context);
  const own = alike(
    candidates.filter(({ own }) => own?.is_fallback === false),
    asked,
    context,
  );
  for (const candidate of own) withPlace(candidate, 'own_credential');
  const shared = alike(
    candidates.filter(({ own }) => own === undefined),
    asked,
    context,
  );
  const later = alike(
    candidates.filter(({ own }) => own?.is_fallback === true),
    asked,
    context,
  );
  for (const candidate of later) withPlace(candidate, 'own_credential_fallback');
  return [...own, ...shared, ...later];
}
