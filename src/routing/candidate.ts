import type { Endpoint, Model } from '../catalog/model.ts';
import { pricesFor } from '../catalog/price-list.ts';
import { dataPolicyOf, type Provider } from '../providers/provider.ts';
import type { ChatRequest } from '../schemas/inner.ts';
import type { Prices } from '../schemas/prices.ts';
import type { Sort } from './model-variant.ts';
import type { OwnCredential } from './own-credential.ts';

/** Why a candidate stands where it stands, in words that a program may compare. */
export const places = [
  /** Its model comes first, or its own credential does. */
  'own_credential',
  'own_credential_fallback',
  /** The client named it in `provider.order`. */
  'order',
  'service_tier',
  /** The conversation's opaque state was made there. */
  'state',
  /** The conversation went there before, and its prompt may be in that cache. */
  'sticky',
  /** Drawn by weight among those that stand alike. */
  'drawn',
  'price',
  'throughput',
  'latency',
  'exacto',
  /** Behind others: what moved it back. */
  'cooling_down',
  'recent_outage',
  'below_preferred',
  'prompt_may_not_fit',
] as const;
export type Place = (typeof places)[number];

/** One endpoint that a request could go to with one credential, and why it does not when it does not. */
export interface Candidate {
  model: Model;
  endpoint: Endpoint;
  provider: Provider;
  /** The organization's own credential that it would be called with; absent: the gateway's. */
  own?: OwnCredential;
  /** The service tier that it stands for; absent: the one that the endpoint serves unasked. */
  tier?: string;
  /** Fields of the request that differ for this candidate alone. */
  sends?: Partial<ChatRequest>;
  excluded: { step: string; reason: string } | undefined;
  /** Its share of the draw for the first place, from 0 to 1; absent: it was not in one. */
  weight?: number;
  /** Why it stands where it stands; absent where it was left out. */
  because?: readonly Place[] | undefined;
}

/** How one request will be tried: endpoints in order, and everything that was considered. */
export interface Plan {
  requested: string;
  strategy: Strategy;
  /** What the endpoints are sorted by, where the request or its caller's default says so; absent: by a weighted draw. */
  sort?: Sort;
  candidates: Candidate[];
  /** The candidates to try, in order. Empty only in a `NoEndpoint`. */
  attempts: Candidate[];
  /** How many endpoints each filter left. */
  funnel: { step: string; endpoint_count: number }[];
}

/** How the models of a plan came to be (public service's metadata, `strategy`). */
export type Strategy = 'direct' | 'auto' | 'free' | 'latest' | 'alias' | 'fallback';

/** Whether nothing of a request is kept there: as the owner of the credential declares, else as is known of the provider. */
export function keepsNothing({
  own,
  provider,
  model,
  endpoint,
}: Pick<Candidate, 'own' | 'provider' | 'model' | 'endpoint'>): boolean {
  return own?.declared_zdr ?? dataPolicyOf(provider, model, endpoint).retention_days === 0;
}

/** What statistics are kept by: an endpoint, or one of its service tiers, whatever the credential. */
export function servedId({ endpoint, tier }: Pick<Candidate, 'endpoint' | 'tier'>): string {
  return tier === undefined ? endpoint.id : `${endpoint.id} ${tier}`;
}

/** What a cool-down is remembered by: a credential that an organization brought fails for nobody else, a tier by itself. */
export function healthId({ endpoint, own, tier }: Pick<Candidate, 'endpoint' | 'own' | 'tier'>): string {
  const served = tier === undefined ? endpoint.id : servedId({ endpoint, tier });
  return own === undefined ? served : `${served} ${own.id}.${own.version}`;
}

/** The endpoint's tag, with the service tier that the candidate stands for: `openai/flex`. */
export function tagOf({ endpoint, tier }: Pick<Candidate, 'endpoint' | 'tier'>): string {
  return tier === undefined ? endpoint.tag : `${endpoint.tag}/${tier}`;
}

/** The prices of a prompt of about so many tokens in the tier that the candidate stands for. */
export function pricesOf({ endpoint, tier }: Pick<Candidate, 'endpoint' | 'tier'>, promptTokens = 0): Prices {
  return pricesFor(endpoint, { prompt_tokens: promptTokens, service_tier: tier });
}
