import type { Prices } from '../schemas/prices.ts';
import { type Candidate, healthId, pricesOf, type RankReason, servedId } from './candidate.ts';
import { type Cutoffs, missesCutoff } from './cutoffs.ts';
import type { Health } from './health.ts';
import { PRIORITY_TIERS, type Sort } from './model-variant.ts';
import { positionIn } from './names.ts';
import { isTight } from './needs.ts';
import type { RuleInput } from './rules.ts';

/** The inputs of the order of endpoints, in addition to the request. */
export interface OrderContext {
  health: Pick<Health, 'coolingUntil' | 'hadOutage' | 'performance'>;
  now_ms: number;
  draw: number;
  cutoffs: Cutoffs | undefined;
  /** Undefined for a weighted draw. */
  sortOf(candidate: Candidate): Sort | undefined;
  prefers: ((candidate: Candidate) => boolean) | undefined;
  sticky: ((candidate: Candidate) => boolean) | undefined;
}

/** The price of a typical call, in pico-USD: three prompt tokens and one completion token; transcription by the second has no token prices. An unknown price is infinite. */
export function typicalPrice({ prompt, completion, audio_second: audioSecond, discount = 0 }: Prices): number {
  if (prompt === undefined && completion === undefined && audioSecond === undefined) return Number.POSITIVE_INFINITY;
  return (3 * (prompt ?? 0) + (completion ?? 0) + (audioSecond ?? 0)) * (1 - discount);
}

/** The penalty of each condition: a greater one outweighs all smaller ones together. */
const BEHIND = { below_preferred: 8, recent_outage: 4, prompt_may_not_fit: 2, state_elsewhere: 1 } as const;

interface Standing {
  cooling: number;
  behind: number;
  sort: Sort | undefined;
}

interface Ranked extends Standing {
  candidate: Candidate;
  /** The sort key; smaller is first. */
  key: number;
  price: number;
}

/** The sort key of an endpoint, smaller first; infinite if unknown. */
function keyOf(candidate: Candidate, sort: Sort | undefined, price: number, context: OrderContext): number {
  if (sort === undefined || sort === 'price') return price;
  const known = context.health.performance(servedId(candidate), context.now_ms);
  if (sort === 'latency') return known.latency_ms?.p50 ?? Number.POSITIVE_INFINITY;
  const speed = known.throughput?.p50;
  if (sort === 'throughput') return speed === undefined ? Number.POSITIVE_INFINITY : -speed;
  // Differences of less than two percent in tool success are decided by speed.
  if (known.tool_success === null) return Number.POSITIVE_INFINITY;
  return -Math.round(known.tool_success * 50) - (speed === undefined ? 0 : speed / (speed + 1));
}

function rank(candidate: Candidate, input: RuleInput, context: OrderContext): Ranked {
  const standing = explain(candidate, input, context);
  const price = typicalPrice(pricesOf(candidate, input.needs.prompt_tokens));
  return { ...standing, candidate, key: keyOf(candidate, standing.sort, price, context), price };
}

function compare(a: Ranked, b: Ranked): number {
  // Infinity minus infinity is not a number.
  return a.cooling - b.cooling || a.behind - b.behind || less(a.key, b.key) || less(a.price, b.price);
}

function less(a: number, b: number): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** The index of one candidate of the head, drawn by the inverse square of its price; each records its share. Free ones first, evenly. */
function drawIndex(head: readonly Ranked[], draw: number): number {
  const lowest = head[0]?.price ?? 0;
  let total = 0;
  for (const { price } of head) total += weightOf(price, lowest);
  let chosen = -1;
  let rest = draw * total;
  for (let at = 0; at < head.length; at += 1) {
    const { candidate, price } = head[at] as Ranked;
    const weight = weightOf(price, lowest);
    candidate.weight = weight / total;
    rest -= weight;
    if (chosen === -1 && rest < 0) chosen = at;
  }
  return Math.max(chosen, 0);
}

function weightOf(price: number, lowest: number): number {
  if (price === lowest) return 1;
  return lowest === 0 || price === Number.POSITIVE_INFINITY ? 0 : (lowest / price) ** 2;
}

const BY: Readonly<Record<Sort, readonly RankReason[]>> = {
  price: ['price'],
  throughput: ['throughput'],
  latency: ['latency'],
  exacto: ['exacto'],
};

/** Sets why a candidate has its rank. Returns its standing: what sets it behind others, and by what it is sorted. */
export function explain(candidate: Candidate, input: RuleInput, context: OrderContext): Standing {
  const { health, now_ms: nowMs, prefers, cutoffs } = context;
  const id = healthId(candidate);
  const sort = context.sortOf(candidate);
  let behind = 0;
  if (cutoffs !== undefined && missesCutoff(cutoffs, health.performance(servedId(candidate), nowMs))) {
    behind += BEHIND.below_preferred;
  }
  // An explicit sort order is kept as long as the endpoint is not known to be down.
  if (sort === undefined && health.hadOutage(id, nowMs)) behind += BEHIND.recent_outage;
  if (isTight(candidate.endpoint, input.needs)) behind += BEHIND.prompt_may_not_fit;
  if (prefers !== undefined && !prefers(candidate)) behind += BEHIND.state_elsewhere;
  const cooling = health.coolingUntil(id, nowMs);
  const standing = { cooling, behind, sort };
  const by = BY[sort ?? 'price'];
  candidate.because = by;
  const withState = prefers !== undefined && (behind & BEHIND.state_elsewhere) === 0;
  if (cooling === 0 && behind === 0 && !withState) return standing;
  const because: RankReason[] = withState ? ['state', ...by] : [...by];
  if (cooling > 0) because.push('cooling_down');
  if (behind & BEHIND.below_preferred) because.push('below_preferred');
  if (behind & BEHIND.recent_outage) because.push('recent_outage');
  if (behind & BEHIND.prompt_may_not_fit) because.push('prompt_may_not_fit');
  candidate.because = because;
  return standing;
}

/** The candidates at the head that only the sort key distinguishes; none if the client or its caller sets an order. */
function headOf(all: readonly Ranked[], input: RuleInput): readonly Ranked[] {
  const [first] = all;
  const isFree = ({ cooling, sort }: Ranked) => cooling === 0 && sort === undefined;
  if (input.order !== undefined || first === undefined) return [];
  const end = all.findIndex((one) => !isFree(one) || one.behind !== first.behind);
  return end === -1 ? all : all.slice(0, end);
}

/** The first candidate of each endpoint: several credentials for one are used in their own order, and do not increase its chance. */
function firstOfEach(head: readonly Ranked[]): readonly Ranked[] {
  if (head.every(({ candidate }) => candidate.own === undefined)) return head;
  const seen = new Set<string>();
  return head.filter(({ candidate }) => {
    const id = servedId(candidate);
    return !seen.has(id) && seen.add(id);
  });
}

/**
 * By rank: cooling endpoints last, then those with penalties, then by sort key. Without a sort order, the first is the conversation's
 * former endpoint, or drawn, among those of equal rank; the others follow by price.
 */
function ranked(candidates: readonly Candidate[], input: RuleInput, context: OrderContext): Candidate[] {
  const all = candidates.map((candidate) => rank(candidate, input, context));
  if (all.length > 1) all.sort(compare);
  const inOrder = all.map(({ candidate }) => candidate);
  const head = headOf(all, input);
  if (head.length < 2) return inOrder;
  const { sticky } = context;
  const stickyOne = sticky === undefined ? undefined : head.find(({ candidate }) => sticky(candidate));
  const drawable = stickyOne === undefined ? firstOfEach(head) : [stickyOne];
  const { candidate: chosen } = drawable[drawable.length > 1 ? drawIndex(drawable, context.draw) : 0] as Ranked;
  if (stickyOne !== undefined) addReason(chosen, 'sticky');
  else if (drawable.length > 1) addReason(chosen, 'drawn');
  return [chosen, ...inOrder.filter((candidate) => candidate !== chosen)];
}

function addReason(candidate: Candidate, reason: RankReason): void {
  candidate.because = [reason, ...(candidate.because ?? [])];
}

/** Orders credentials of one kind: the client's `order` first, as listed; then the rest by rank, if fallbacks are allowed. */
function orderGroup(candidates: readonly Candidate[], input: RuleInput, context: OrderContext): Candidate[] {
  const byRank = tiersFirst(ranked(candidates, input, context), input);
  const { order } = input;
  if (order === undefined) return byRank;
  const positions = new Map<Candidate, number>();
  for (const candidate of byRank) {
    const position = positionIn(order, candidate, input.selectsTiers);
    if (position !== undefined) positions.set(candidate, position);
  }
  // Sorting is stable: candidates of one name keep their rank.
  const chosen = [...positions.keys()].sort((a, b) => (positions.get(a) ?? 0) - (positions.get(b) ?? 0));
  for (const candidate of chosen) addReason(candidate, 'order');
  if (input.preferences.allow_fallbacks === false) return chosen;
  return [...chosen, ...byRank.filter((candidate) => !positions.has(candidate))];
}

/** A request for the priority tier prefers endpoints that have it, as at the public service. */
function tiersFirst(candidates: Candidate[], { request: { service_tier: serviceTier } }: RuleInput): Candidate[] {
  if (serviceTier == null || !PRIORITY_TIERS.includes(serviceTier)) return candidates;
  const inTier = candidates.filter(({ tier }) => tier !== undefined);
  if (inTier.length === 0) return candidates;
  for (const candidate of inTier) addReason(candidate, 'service_tier');
  return [...inTier, ...candidates.filter(({ tier }) => tier === undefined)];
}

/**
 * The order of these candidates: own credentials, the gateway's, own credentials that are a fallback (the public service's
 * documentation, "BYOK": own ones precede the client's `order`).
 */
export function inOrder(candidates: readonly Candidate[], input: RuleInput, context: OrderContext): Candidate[] {
  if (candidates.every(({ own }) => own === undefined)) return orderGroup(candidates, input, context);
  const own = orderGroup(
    candidates.filter(({ own }) => own?.is_fallback === false),
    input,
    context,
  );
  for (const candidate of own) addReason(candidate, 'own_credential');
  const shared = orderGroup(
    candidates.filter(({ own }) => own === undefined),
    input,
    context,
  );
  const later = orderGroup(
    candidates.filter(({ own }) => own?.is_fallback === true),
    input,
    context,
  );
  for (const candidate of later) addReason(candidate, 'own_credential_fallback');
  return [...own, ...shared, ...later];
}
