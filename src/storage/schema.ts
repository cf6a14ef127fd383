/**
 * The tables, declared once: the TypeScript rows are derived from them, and a test compares them with a migrated database,
 * both ways, on both engines. `boolean` and `json` columns read the same on both engines: the drivers convert by declared
 * type.
 */
import type { ColumnType as KyselyColumn } from 'kysely';
import type { BuiltinFilter, CustomFilter } from '../schemas/guardrail.ts';

type Kind = 'text' | 'bigint' | 'boolean' | 'json';

interface Column<T> {
  readonly kind: Kind;
  readonly nullable: boolean;
  /** Carries the type of a value as read; never set. */
  readonly value?: T;
}

/** JSON is written as text and read parsed. */
interface JsonColumn<T> extends Column<T> {
  readonly kind: 'json';
}

const text: Column<string> = { kind: 'text', nullable: false };
const textOrNull: Column<string | null> = { kind: 'text', nullable: true };
const bigint: Column<number> = { kind: 'bigint', nullable: false };
const bigintOrNull: Column<number | null> = { kind: 'bigint', nullable: true };
const boolean: Column<boolean> = { kind: 'boolean', nullable: false };
const booleanOrNull: Column<boolean | null> = { kind: 'boolean', nullable: true };
const integersOrNull: JsonColumn<number[] | null> = { kind: 'json', nullable: true };
const textsOrNull: JsonColumn<string[] | null> = { kind: 'json', nullable: true };
const builtinsOrNull: JsonColumn<BuiltinFilter[] | null> = { kind: 'json', nullable: true };
const filtersOrNull: JsonColumn<CustomFilter[] | null> = { kind: 'json', nullable: true };
const stateOrNull: JsonColumn<Record<string, unknown> | null> = { kind: 'json', nullable: true };

/** Every table and column of the store. */
export const tables = {
  organizations: { id: text, name: text, created_at: text },
  users: {
    id: text,
    name: text,
    email: textOrNull,
    created_at: text,
    first_name: textOrNull,
    last_name: textOrNull,
    issuer: textOrNull,
    subject: textOrNull,
  },
  organization_members: { id: text, organization_id: text, user_id: text, role: text, created_at: text, seq: bigint },
  workspaces: {
    id: text,
    organization_id: text,
    is_default: boolean,
    name: text,
    slug: text,
    description: textOrNull,
    created_at: text,
    created_by: textOrNull,
    updated_at: textOrNull,
    default_image_model: textOrNull,
    default_text_model: textOrNull,
    default_provider_sort: textOrNull,
    io_logging_api_key_ids: integersOrNull,
    /** In ten-thousandths: the smallest rate is 0.0001. */
    io_logging_sampling_rate_bp: bigint,
    is_data_discount_logging_enabled: boolean,
    is_observability_broadcast_enabled: boolean,
    is_observability_io_logging_enabled: boolean,
    seq: bigint,
    version: bigint,
    include_byok_in_budgets: boolean,
    default_guardrail_id: textOrNull,
  },
  workspace_members: { id: text, workspace_id: text, user_id: text, role: text, created_at: text, seq: bigint },
  workspace_budgets: {
    id: text,
    workspace_id: text,
    reset_interval: text,
    limit_nano: bigint,
    created_at: text,
    updated_at: textOrNull,
  },
  api_keys: {
    id: bigint,
    hash: text,
    organization_id: text,
    workspace_id: text,
    creator_user_id: textOrNull,
    name: text,
    label: text,
    is_management: boolean,
    disabled: boolean,
    limit_nano: bigintOrNull,
    limit_reset: textOrNull,
    include_byok_in_limit: boolean,
    expires_at: textOrNull,
    created_at: text,
    updated_at: textOrNull,
    version: bigint,
    budget_mode: textOrNull,
    parent_hash: textOrNull,
    made_by: textOrNull,
    external_user: textOrNull,
  },
  api_key_ancestors: { key_hash: text, ancestor_hash: text },
  guardrails: {
    id: text,
    seq: bigint,
    version: bigint,
    organization_id: text,
    workspace_id: text,
    name: text,
    description: textOrNull,
    allowed_models: textsOrNull,
    ignored_models: textsOrNull,
    allowed_providers: textsOrNull,
    ignored_providers: textsOrNull,
    limit_nano: bigintOrNull,
    reset_interval: textOrNull,
    enforce_zdr: booleanOrNull,
    enforce_zdr_anthropic: booleanOrNull,
    enforce_zdr_openai: booleanOrNull,
    enforce_zdr_google: booleanOrNull,
    enforce_zdr_other: booleanOrNull,
    enforce_zdr_xai: booleanOrNull,
    include_byok_in_budgets: boolean,
    content_filter_builtins: builtinsOrNull,
    content_filters: filtersOrNull,
    content_filter_output: booleanOrNull,
    content_filter_reversible: booleanOrNull,
    created_at: text,
    updated_at: textOrNull,
  },
  guardrail_key_assignments: {
    id: text,
    seq: bigint,
    organization_id: text,
    guardrail_id: text,
    key_hash: text,
    assigned_by: textOrNull,
    created_at: text,
  },
  guardrail_member_assignments: {
    id: text,
    seq: bigint,
    organization_id: text,
    guardrail_id: text,
    user_id: text,
    assigned_by: textOrNull,
    created_at: text,
  },
  apps: { id: bigint, organization_id: text, origin: text, created_at: text },
  authorization_codes: {
    code_hash: text,
    organization_id: text,
    workspace_id: text,
    user_id: textOrNull,
    asker_key_hash: textOrNull,
    app_id: bigintOrNull,
    callback_url: textOrNull,
    code_challenge: textOrNull,
    code_challenge_method: textOrNull,
    key_label: text,
    limit_nano: bigintOrNull,
    limit_reset: textOrNull,
    key_expires_at: textOrNull,
    failures: bigint,
    created_at: text,
    expires_at: text,
    used_at: textOrNull,
    made_by: text,
  },
  sessions: {
    id: text,
    token_hash: text,
    previous_hash: textOrNull,
    organization_id: text,
    user_id: text,
    credential: text,
    created_at: text,
    rotated_at: text,
    expires_at: text,
  },
  byok_credentials: {
    id: text,
    seq: bigint,
    version: bigint,
    organization_id: text,
    workspace_id: text,
    provider: text,
    label: text,
    sealed: text,
    name: textOrNull,
    disabled: boolean,
    is_fallback: boolean,
    allow_shared_fallback: boolean,
    sort_order: bigint,
    allowed_models: textsOrNull,
    allowed_api_key_hashes: textsOrNull,
    allowed_user_ids: textsOrNull,
    created_at: text,
    updated_at: textOrNull,
    declared_zdr: booleanOrNull,
    declared_region: textOrNull,
    is_byok_only: boolean,
  },
  audit_events: {
    seq: bigint,
    id: text,
    organization_id: text,
    created_at: text,
    actor_key_hash: textOrNull,
    actor_user_id: textOrNull,
    actor: text,
    action: text,
    resource_type: text,
    resource_id: text,
    state_before: stateOrNull,
    state_after: stateOrNull,
    request_id: textOrNull,
  },
  activity_days: {
    organization_id: text,
    workspace_id: text,
    key_hash: text,
    user_id: text,
    day: text,
    model: text,
    model_permaslug: text,
    endpoint_id: text,
    provider_name: text,
    usage_nano: bigint,
    byok_usage_nano: bigint,
    requests: bigint,
    prompt_tokens: bigint,
    completion_tokens: bigint,
    reasoning_tokens: bigint,
  },
  /** The last number assigned under a name; the engines share no syntax for generated integers. */
  counters: { name: text, value: bigint },
  usage_days: {
    scope: text,
    scope_id: text,
    day: text,
    usage_nano: bigint,
    byok_usage_nano: bigint,
    requests: bigint,
    last_used_at: textOrNull,
  },
  ledger_budgets: {
    id: text,
    scope: text,
    subject: text,
    guardrail_id: textOrNull,
    label: text,
    reset_interval: text,
    limit_nano: bigintOrNull,
    include_byok: boolean,
    version: bigint,
  },
  ledger_windows: {
    budget_id: text,
    window_start: text,
    opening: bigint,
    spent: bigint,
    leased: bigint,
    wanted: bigint,
    wanted_by: text,
    wanted_at: bigint,
    granted: bigint,
    free: bigintOrNull,
    settled_elsewhere: bigint,
  },
  ledger_leases: { node_id: text, budget_id: text, window_start: text, amount: bigint, settled: bigint },
  ledger_lost_leases: { node_id: text, budget_id: text, window_start: text, amount: bigint, booked_at: text },
  ledger_adjustments: {
    id: text,
    generation_id: textOrNull,
    budget_id: text,
    window_start: text,
    amount: bigint,
    reason: text,
    created_at: text,
  },
  credit_grants: { id: text, organization_id: text, amount_nano: bigint, reason: text, created_at: text },
  endpoint_statistics: {
    endpoint_id: text,
    span: bigint,
    start: bigint,
    run: text,
    successes: bigint,
    errors: bigint,
    rate_limited: bigint,
    tool_calls: bigint,
    tool_calls_valid: bigint,
    sketches: text,
    written_at: bigint,
  },
  endpoint_probes: { endpoint_id: text, probed_at: bigint },
  reasoning_states: { id: text, owner: text, sealed: text, chars: bigint, expires_at: text },
  stored_responses: { id: text, workspace_id: text, sealed: text, chars: bigint, expires_at: text },
  logged_contents: {
    id: text,
    organization_id: text,
    workspace_id: text,
    key_hash: text,
    user_id: textOrNull,
    created_at: text,
    sealed: text,
    chars: bigint,
    expires_at: text,
  },
  rate_windows: { id: text, window_start: bigint, used: bigint, granted: bigint, counted_at: bigint },
  ledger_nodes: { id: text, epoch: bigint, instance: text, batch: bigint, seen_at: bigint },
  ledger_generations: {
    id: text,
    node_id: text,
    organization_id: text,
    workspace_id: text,
    key_hash: text,
    outcome: text,
    cost: bigint,
    cover: bigint,
    charges: text,
    record: text,
    admitted_at: bigint,
    created_at: text,
    estimated: bigint,
  },
} as const satisfies Record<string, Record<string, Column<unknown>>>;

type Value<C> = C extends Column<infer T> ? T : never;
type Written<C> = C extends JsonColumn<unknown> ? string | null : Value<C>;

/** The row of each table, for Kysely. */
export type Tables = {
  [T in keyof typeof tables]: {
    [C in keyof (typeof tables)[T]]: KyselyColumn<
      Value<(typeof tables)[T][C]>,
      Written<(typeof tables)[T][C]>,
      Written<(typeof tables)[T][C]>
    >;
  };
};
