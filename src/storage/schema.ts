/**
 * What the tables hold, once: the TypeScript rows are derived from it and a test compares it with a migrated database,
 * both ways, on both engines. `boolean` and `json` columns read the same on both engines: the drivers convert by
 * declared type.
 */
import type { ColumnType as KyselyColumn } from 'kysely';

type Kind = 'text' | 'bigint' | 'boolean' | 'json';

interface Column<T> {
  readonly kind: Kind;
  readonly nullable: boolean;
  /** The type of a value as read; never set. */
  readonly value?: T;
}

const text: Column<string> = { kind: 'text', nullable: false };
const textOrNull: Column<string | null> = { kind: 'text', nullable: true };
const bigint: Column<number> = { kind: 'bigint', nullable: false };
const bigintOrNull: Column<number | null> = { kind: 'bigint', nullable: true };
const boolean: Column<boolean> = { kind: 'boolean', nullable: false };
const integersOrNull: Column<number[] | null> = { kind: 'json', nullable: true };

/** Every table and column of the store. */
export const tables = {
  organizations: { id: text, name: text, created_at: text },
  users: { id: text, name: text, email: textOrNull, created_at: text },
  organization_members: { id: text, organization_id: text, user_id: text, role: text, created_at: text },
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
  },
  workspace_members: { id: text, workspace_id: text, user_id: text, role: text, created_at: text },
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
  },
  /** The last number given out under a name; the engines share no syntax for generated integers. */
  counters: { name: text, value: bigint },
  usage_days: {
    scope: text,
    scope_id: text,
    day: text,
    usage_nano: bigint,
    byok_usage_nano: bigint,
    requests: bigint,
  },
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
  },
} as const satisfies Record<string, Record<string, Column<unknown>>>;

type Value<C> = C extends Column<infer T> ? T : never;
/** JSON goes in as text and comes out parsed. */
type Written<C> = C extends { kind: Kind } & Column<infer T> ? (T extends unknown[] | null ? string | null : T) : never;

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
