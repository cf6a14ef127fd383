import type { Endpoint, Model } from '../catalog/model.ts';
import { pricesFor } from '../catalog/price-list.ts';
import { dataPolicyOf, type Provider } from '../providers/provider.ts';
import type { ChatRequest } from '../schemas/inner.ts';
import type { Prices } from '../schemas/prices.ts';
import type { Sort } from './model-variant.ts';
import type { OwnCredential } from './own-credential.ts';

/** Why a candidate has its rank, as values that programs compare. */
export const rankReasons = [
  /** The own credential is used before the gateway's, or as its fallback. */
  'own_credential',
  'own_credential_fallback',
  /** The client listed it in `provider.order`. */
  'order',
  'service_tier',
  /** The conversation's opaque state was created there. */
  'state',
  /** The conversation was sent there before, and its prompt may be cached there. */
  'sticky',
  /** Drawn by weight among candidates of equal rank. */
  'drawn',
  'price',
  'throughput',
  'latency',
  'exacto',
  /** Ranked lower, for this reason. */
  'cooling_down',
  'recent_outage',
  'below_preferred',
  'prompt_may_not_fit',
] as const;
export type RankReason = (typeof rankReasons)[number];

/** One endpoint that a request could be sent to with one credential, and the reason if it is excluded. */
export interface Candidate {
  model: Model;
  endpoint: Endpoint;
  provider: Provider;
  /** The organization's own credential to call it with; not set for the gateway's. */
  own?: OwnCredential;
  /** The service tier of this candidate; not set for the endpoint's default tier. */
  tier?: string;
  /** Request fields that differ for this candidate. */
  sends?: Partial<ChatRequest>;
  excluded: { step: string; reason: string } | undefined;
  /** Its share in the draw for the first rank, from 0 to 1; not set if it took no part. */
  weight?: number;
  /** Why it has its rank; not set if it is excluded. */
  because?: readonly RankReason[] | undefined;
}

/** How one request is tried: endpoints in order, and all candidates. */
export interface Plan {
  requested: string;
  strategy: Strategy;
  /** The sort order of the endpoints, if the request or its caller's default sets one; otherwise by a weighted draw. */
  sort?: Sort;
  candidates: Candidate[];
  /** The candidates to try, in order. Empty only in a `NoEndpoint`. */
  attempts: Candidate[];
  /** The number of endpoints that each filter left. */
  funnel: { step: string; endpoint_count: number }[];
}

/** How the models of a plan were selected (public service's metadata, `strategy`). */
export type Strategy = 'direct' | 'auto' | 'free' | 'latest' | 'alias' | 'fallback';

/** Whether no data of a request is retained: as the owner of the credential declares, else by the provider's policy. */
export function keepsNothing({
  own,
  provider,
  model,
  endpoint,
}: Pick<Candidate, 'own' | 'provider' | 'model' | 'endpoint'>): boolean {
  return own?.declared_zdr ?? dataPolicyOf(provider, model, endpoint).retention_days === 0;
}

/** The key of statistics: an endpoint, or one of its service tiers, for all credentials. */
export function servedId({ endpoint, tier }: Pick<Candidate, 'endpoint' | 'tier'>): string {
  return tier === undefined ? endpoint.id : `${endpoint.id} ${tier}`;
}

/** The key of cool-downs: an organization's own credential fails for nobody else, and a tier fails separately. */
export function healthId({ endpoint, own, tier }: Pick<Candidate, 'endpoint' | 'own' | 'tier'>): string {
  const served = tier === undefined ? endpoint.id : servedId({ endpoint, tier });
  return own === undefined ? served : `${served} ${own.id}.${own.version}`;
}

/** The endpoint's tag, with the candidate's service tier: `openai/flex`. */
export function tagOf({ endpoint, tier }: Pick<Candidate, 'endpoint' | 'tier'>): string {
  return tier === undefined ? endpoint.tag : `${endpoint.tag}/${tier}`;
}

/** The prices of a prompt of about this many tokens in the candidate's tier. */
export function pricesOf({ endpoint, tier }: Pick<Candidate, 'endpoint' | 'tier'>, promptTokens = 0): Prices {
  return pricesFor(endpoint, { prompt_tokens: promptTokens, service_tier: tier });
}
