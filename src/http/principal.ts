import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Budget, BudgetMode } from '../schemas/budget.ts';
import type { BoundGuardrail } from '../schemas/guardrail.ts';
import type { StoreWait } from './store-wait.ts';

/** The authenticated caller of a request. */
export interface Principal {
  kind: 'key' | 'management';
  /** Identifies the key; null for the management key of the environment. */
  key_hash: string | null;
  key_id: number | null;
  /** The SHA-256 of the secret that was sent; not set for the management key of the environment and for sessions. */
  secret_hash?: string;
  /** The name of the key; not set if it has no record. */
  key_name?: string;
  /** The key's name in the settings of rate limits; undefined if an application chose the name, so that the settings do not apply. */
  rate_name?: string | undefined;
  organization_id: string;
  workspace_id: string;
  /** The user that owns the key, or the organization's owner for a management key without one. */
  user_id: string | null;
  /** The budgets that its requests are counted against. */
  budgets: readonly Budget[];
  /** The guardrails of its requests, all in force; mostly none. The same array as long as they do not change. */
  guardrails: readonly BoundGuardrail[];
  /** The workspace's defaults for requests that do not say otherwise; not set if there are none. */
  defaults?: {
    default_text_model: string | null;
    default_image_model: string | null;
    default_provider_sort: string | null;
  };
  /** The contents of its requests that the workspace wants stored or broadcast; not set if none. */
  logging?: Logging;
  /** Null if the setting of the gateway applies. */
  budget_mode: BudgetMode | null;
  /** The keys that this key was made with, the nearest first; not set if none. Their limits apply to its requests as well. */
  parents?: readonly ParentKey[];
  /** The session of a signed-in person who calls with the cookie of the pages; not set for keys. */
  session?: CallerSession;
  /** Set if the store did not answer and the key was accepted in the state that this node last read. */
  is_served_without_store?: boolean;
}

/** The name under which a caller's requests are counted: one for all sessions of a person, who may open many. */
export function callerName({ session, user_id, key_hash }: Principal): string {
  return session === undefined ? (key_hash ?? 'environment') : `sessions of ${user_id}`;
}

/** The session of a signed-in person. */
export interface CallerSession {
  id: string;
  /** `admin`: the whole organization. `member`: the operations declared with `forMembers`, for what belongs to the member. */
  role: 'admin' | 'member';
  user_name: string;
  user_email: string | null;
  /** The token that requests with a change send in `x-form-token`. */
  form_token: string;
  expires_at: string;
}

/** A key with which another key was made. */
export interface ParentKey {
  key_hash: string;
  key_id: number;
  rate_name: string | undefined;
}

/** What is stored and broadcast of a caller's requests. */
export interface Logging {
  /** The share of requests that is stored with their answers, in ten-thousandths; undefined if none. */
  kept_bp: number | undefined;
  /** Whether requests are sent to the operator's destinations. */
  is_broadcast: boolean;
  /** Identifies the workspace to destinations. */
  workspace_slug: string;
}

/**
 * Finds the signed-in person who sent a request without a credential; undefined if it has no session. Throws a `GatewayError` 403 for a
 * request that another site may have sent.
 */
export type AuthenticateSession = (request: FastifyRequest, reply: FastifyReply) => Promise<Principal | undefined>;

/** The signed-in person of a session as it is now. Rejects with a `GatewayError` 401 if the session or the credential that opened it has ended. */
export type ConfirmSession = (principal: Principal) => Promise<Principal>;

/** Finds the caller that a secret belongs to. Synchronous for keys in memory. Throws a `GatewayError` 401 for an unknown secret. */
export type Authenticate = (secret: string, storeWait?: StoreWait) => Principal | Promise<Principal>;
