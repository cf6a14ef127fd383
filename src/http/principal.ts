import type { Budget, BudgetMode } from '../schemas/budget.ts';
import type { BoundGuardrail } from '../schemas/guardrail.ts';
import type { StoreWait } from './store-wait.ts';

/** Who is calling: what the credential of a request stands for. */
export interface Principal {
  kind: 'key' | 'management';
  /** Identity of the key; null for the management key of the environment. */
  key_hash: string | null;
  key_id: number | null;
  /** What its owner calls the key; absent where it has no record. */
  key_name?: string;
  /** The name by which rates are configured for it; undefined: an application chose its name, which means nothing here. */
  rate_name?: string | undefined;
  organization_id: string;
  workspace_id: string;
  /** The user that owns the key, or the organization's owner for a management key without one. */
  user_id: string | null;
  /** What its requests are counted against. */
  budgets: readonly Budget[];
  /** What holds for its requests, all at once; most often nothing. The same list as long as nothing of it changes. */
  guardrails: readonly BoundGuardrail[];
  /** What its workspace has for requests that say nothing themselves; absent: nothing. */
  defaults?: {
    default_text_model: string | null;
    default_image_model: string | null;
    default_provider_sort: string | null;
  };
  /** What its workspace wants kept of its requests, or told of them; absent: nothing. */
  logging?: Logging;
  /** Null: as the gateway's settings say. */
  budget_mode: BudgetMode | null;
  /** The ordinary keys that its key was made with, the nearest first; absent: none, as for most. What limits them limits its requests. */
  parents?: readonly ParentKey[];
  /** The store did not answer: the key is accepted as it was known to this node. Absent: it was known to be true. */
  is_served_without_store?: boolean;
}

/** A key that another one was made with. */
export interface ParentKey {
  key_hash: string;
  key_id: number;
  rate_name: string | undefined;
}

/** What becomes of a caller's requests beside their answers. */
export interface Logging {
  /** Which share of its requests is kept with their answers, in ten-thousandths; undefined: none. */
  kept_bp: number | undefined;
  /** Whether the operator's destinations are told of its requests. */
  is_broadcast: boolean;
  /** By which a destination may tell workspaces apart. */
  workspace_slug: string;
}

/** Finds who a secret belongs to. Answers without a store round trip for keys seen lately. Throws `GatewayError` 401 when there is nobody. */
export type Authenticate = (secret: string, store_wait?: StoreWait) => Principal | Promise<Principal>;
