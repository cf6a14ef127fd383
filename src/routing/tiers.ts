import type { Endpoint } from '../catalog/model.ts';
import type { ChatRequest } from '../schemas/inner.ts';
import { FLEX_TIERS, type ModelVariant, PRIORITY_TIERS } from './model-variant.ts';
import type { NameList } from './names.ts';

/** The service tiers that a request selects. */
export interface TierSelection {
  /** The requested tiers. */
  names: readonly string[];
  /** Whether they are selected other than by naming their endpoints. */
  isExplicit: boolean;
  /** Whether an endpoint with the tier serves only in it. */
  isExclusive: boolean;
}

/** No tiers are selected. */
export const NO_TIERS: TierSelection = { names: [], isExplicit: false, isExclusive: false };
const FLEX: TierSelection = { names: FLEX_TIERS, isExplicit: true, isExclusive: true };
const PRIORITY: TierSelection = { names: PRIORITY_TIERS, isExplicit: true, isExclusive: false };

/**
 * The service tiers of a request for a model: `service_tier`, else those of its variant, unless `provider.order` or another
 * `service_tier` excludes them (public service's documentation, "Service tiers").
 */
export function tierSelection(
  { service_tier: serviceTier }: ChatRequest,
  variant: ModelVariant | undefined,
  order: NameList | undefined,
): TierSelection {
  if (serviceTier != null) {
    if (FLEX_TIERS.includes(serviceTier)) return FLEX;
    return PRIORITY_TIERS.includes(serviceTier) ? PRIORITY : NO_TIERS;
  }
  if (variant?.tiers === undefined || order !== undefined) return NO_TIERS;
  return { names: variant.tiers, isExplicit: true, isExclusive: false };
}

/** An endpoint serves in its default tier only. */
export const NO_TIER: readonly undefined[] = [undefined];

/**
 * The tiers in which an endpoint may serve: the selected ones, and those that a list names with the endpoint's tag; undefined for the
 * default tier.
 */
export function tiersOf(
  { service_tiers: serviceTiers, tag }: Endpoint,
  { names, isExclusive }: TierSelection,
  lists: readonly NameList[],
): readonly (string | undefined)[] {
  if (serviceTiers === undefined || (names.length === 0 && lists.length === 0)) return NO_TIER;
  const tiers: (string | undefined)[] = Object.keys(serviceTiers).filter(
    (tier) => names.includes(tier) || lists.some((list) => list.has(`${tag}/${tier}`.toLowerCase())),
  );
  if (tiers.length === 0 || !isExclusive) tiers.push(undefined);
  return tiers;
}

/** The request fields that differ in a tier, or outside the requested tier; undefined if none. */
export function sendsFor(
  { service_tier: serviceTier }: ChatRequest,
  tier: string | undefined,
  own: Partial<ChatRequest> | undefined,
): Partial<ChatRequest> | undefined {
  const requestedTier = serviceTier ?? undefined;
  const isPriority = requestedTier !== undefined && PRIORITY_TIERS.includes(requestedTier);
  if (tier === undefined) return isPriority ? { ...own, service_tier: null } : own;
  return requestedTier === tier ? own : { ...own, service_tier: tier };
}
