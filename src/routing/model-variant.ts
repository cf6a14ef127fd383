import type { ChatRequest } from '../schemas/inner.ts';

export const sorts = ['price', 'throughput', 'latency', 'exacto'] as const;
/** The sort orders of endpoints. */
export type Sort = (typeof sorts)[number];

/** The options in a client's name of a model, in addition to the model itself. */
export interface ModelVariant {
  sort?: Sort;
  /** Endpoints of these service tiers may serve as well. */
  tiers?: readonly string[];
  /** Only endpoints that are free of charge. */
  free?: true;
  /** Only endpoints with the longest context that the model has. */
  extended?: true;
  /** Request fields for this model only. */
  sends?: Partial<ChatRequest>;
}

/** `fast` is a synonym of `priority` (public service's documentation, "Service tiers"). */
export const PRIORITY_TIERS: readonly string[] = ['priority', 'fast'];
export const FLEX_TIERS: readonly string[] = ['flex'];
