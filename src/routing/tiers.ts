import type { Endpoint } from '../catalog/model.ts';
import type { ChatRequest } from '../schemas/inner.ts';
import { FLEX_TIERS, type ModelVariant, PRIORITY_TIERS } from './model-variant.ts';
import type { NameList } from './names.ts';

/** What a request wants of service tiers. */
export interface TierWish {
  /** The tiers that it asks for. */
  names: readonly string[];
  /** Asked for other than by naming their endpoints. */
  asked: boolean;
  /** An endpoint that has the tier serves in it alone. */
  alone: boolean;
}

const NONE: TierWish = { names: [], asked: false, alone: false };
const FLEX: TierWish = { names: FLEX_TIERS, asked: true, alone: true };
const PRIORITY: TierWish = { names: PRIORITY_TIERS, asked: true, alone: false };

/**
 * The service tiers of a request for a model: `service_tier`, else what its variant lets in, unless `provider.order` or another
 * `service_tier` says otherwise (public service's documentation, "Service tiers").
 */
export function tierWish(
  { service_tier: serviceTier }: ChatRequest,
  wish: ModelVariant | undefined,
  order: NameList | undefined,
): TierWish {
  if (serviceTier != null) {
    if (FLEX_TIERS.includes(serviceTier)) return FLEX;
    return PRIORITY_TIERS.includes(serviceTier) ? PRIORITY : NONE;
  }
  if (wish?.tiers === undefined || order !== undefined) return NONE;
  return { names: wish.tiers, asked: true, alone: false };
}

/** The tiers of an endpoint that may serve: those that are wished for, and those that a list names with the endpoint's tag. */
export function tiersOf(
  { service_tiers: serviceTiers, tag }: Endpoint,
  { names }: TierWish,
  lists: readonly NameList[],
): readonly string[] {
  if (serviceTiers === undefined || (names.length === 0 && lists.length === 0)) return NO_TIERS;
  return Object.keys(serviceTiers).filter(
    (tier) => names.includes(tier) || lists.some((list) => list.has(`${tag}/${tier}`.toLowerCase())),
  );
}

const NO_TIERS: readonly string[] = [];

/** What of a request differs in a tier, or outside of the tier that it asks for; undefined: nothing. */
export function sendsFor(
  { service_tier: serviceTier }: ChatRequest,
  tier: string | undefined,
  own: Partial<ChatRequest> | undefined,
): Partial<ChatRequest> | undefined {
  const told = serviceTier ?? undefined;
  const isPriority = told !== undefined && PRIORITY_TIERS.includes(told);
  if (tier === undefined) return isPriority ? { ...own, service_tier: null } : own;
  return told === tier ? own : { ...own, service_tier: tier };
}
