import type { Wire } from '../schemas/inner.ts';
import type { EmbeddingWire } from './embeddings/dialect.ts';
import type { Quirks } from './quirks.ts';
import type { TranscriptionWire } from './transcription/dialect.ts';

export type { Quirks } from './quirks.ts';

/** What a provider does with data, as the operator declares or the provider publishes; `unknown` counts as the worst. */
export interface DataPolicy {
  training: boolean | 'unknown';
  /** Days that data is retained; 0 is zero retention. */
  retention_days: number | 'unknown';
}

/** A company or deployment that serves models: a row of data. */
export interface Provider {
  slug: string;
  /** Display name, as in `provider_name`. */
  name: string;
  dialect: Wire;
  base_url: string;
  /** The gateway's credential for the upstream; undefined if it needs none. Never logged, never sent to a client. */
  credential: string | undefined;
  quirks: Quirks;
  /** The wire of embeddings, if it does not follow from the chat wire. */
  embeddings_dialect?: EmbeddingWire | undefined;
  /** The wire of transcriptions, if it does not follow from the chat wire. */
  transcription_dialect?: TranscriptionWire | undefined;
  data_policy: DataPolicy;
  /** The models that the published policy does not cover, and the policy of those; see `dataPolicyOf`. */
  data_policy_apart?: { models: RegExp; policy: DataPolicy };
  /** Whether closing the connection ends the provider's work and its billing. */
  abort_stops_billing: boolean;
  /** The address that reports the outcome of an attempt, as the sandbox has; undefined if there is none. */
  attempts_url?: string | undefined;
  /**
   * The bundled endpoint variants (`eu`, `turbo`) that the provider serves; undefined: all. Endpoints without a variant are always
   * served.
   */
  variants?: readonly string[];
  /** Headers sent with every request. */
  headers: Record<string, string>;
  /** Returns invented answers: calls are routed to it only if they name it. */
  is_sandbox?: true;
  /** The gateway has no credential for it: only callers with their own credential are served. */
  is_own_only?: true;
}

/** The policy for the data of calls to one of a provider's endpoints. */
export function dataPolicyOf(
  { data_policy: dataPolicy, data_policy_apart: apart }: Pick<Provider, 'data_policy' | 'data_policy_apart'>,
  model: { canonical_slug: string },
  endpoint: { upstream_model: string },
): DataPolicy {
  if (apart === undefined) return dataPolicy;
  return apart.models.test(`${model.canonical_slug} ${endpoint.upstream_model}`) ? apart.policy : dataPolicy;
}
