import type { ChatRequest } from '../schemas/inner.ts';

export const sorts = ['price', 'throughput', 'latency', 'exacto'] as const;
/** What endpoints may be put in order by. */
export type Sort = (typeof sorts)[number];

/** What the name that a client gave a model asks for beside the model itself. */
export interface ModelVariant {
  sort?: Sort;
  /** Endpoints of these service tiers may serve as well. */
  tiers?: readonly string[];
  /** Only endpoints that cost nothing. */
  free?: true;
  /** Only endpoints with the longest context that the model has. */
  extended?: true;
  /** Fields that the request has for this model alone. */
  sends?: Partial<ChatRequest>;
}

/** `fast` is another word for `priority` (public service's documentation, "Service tiers"). */
export const PRIORITY_TIERS: readonly string[] = ['priority', 'fast'];
export const FLEX_TIERS: readonly string[] = ['flex'];
