import Type, { type Static, type TSchema } from 'typebox';

const nullable = <T extends TSchema>(schema: T, description: string) =>
  Type.Union([schema, Type.Null()], { description });

/** A setting of a running gateway, without anything that could be a secret. */
export const EffectiveSetting = Type.Object(
  {
    name: Type.String({ description: 'As in `gateway.yaml`, or the name of the environment variable.' }),
    value: Type.String({
      description:
        'The value of a number, a switch or a choice. Of texts, lists and objects only whether they are set: they may hold a secret or an address.',
    }),
    source: Type.Enum(['default', 'file', 'environment'] as const),
    takes_effect: Type.Enum(['at once', 'at the next start'] as const, { description: 'When a change takes effect.' }),
    meaning: Type.String({ description: 'What the setting is for.' }),
  },
  { title: 'EffectiveSetting' },
);
export type EffectiveSetting = Static<typeof EffectiveSetting>;

/** A node of the ledger: a process that settles calls in the store. */
export const LedgerNodeStatus = Type.Object(
  {
    id: Type.String(),
    seconds_unseen: nullable(Type.Number(), "Since the node's last sign of life; null: none yet."),
    is_lost: Type.Boolean({ description: 'It sent no sign of life for a minute.' }),
    held: Type.Number({ description: 'USD that are reserved for the node.' }),
    windows: Type.Integer({ description: 'The number of limit windows in which it has reserved money.' }),
  },
  { title: 'LedgerNodeStatus' },
);

/** What a setting of `retention` deletes, and what it has deleted. */
const RetentionStatus = Type.Object(
  {
    kind: Type.Enum(['generations', 'audit', 'closed_windows'] as const),
    days: nullable(Type.Integer(), 'For how many days rows are kept; null: for ever.'),
    deleted: Type.Integer({ description: 'Rows that were deleted so far.' }),
    deleted_before: nullable(
      Type.String({ format: 'date-time' }),
      'Older rows are deleted, or are being deleted; null: none.',
    ),
    ended_at: nullable(Type.String({ format: 'date-time' }), 'The end of the last sweep; null: it is not complete.'),
  },
  { title: 'RetentionStatus' },
);

/** The program, its store and its configuration (`GET /system`). */
export const System = Type.Object(
  {
    version: Type.String({ description: 'The version of the node that answers.' }),
    runtime: Type.String({ description: 'The version of Node.js.' }),
    started_at: Type.String({ format: 'date-time', description: 'When the node that answers has read its settings.' }),
    node: Type.String({ description: 'The node that answers.' }),
    store: Type.Enum(['sqlite', 'postgres'] as const),
    nodes: Type.Array(LedgerNodeStatus, { description: 'The last seen first, at most 200.' }),
    node_count: Type.Integer(),
    migrations: Type.Array(Type.Object({ name: Type.String(), applied_at: Type.String({ format: 'date-time' }) }), {
      description: 'The migrations of the store, the newest first.',
    }),
    settings: Type.Array(EffectiveSetting),
    retention: Type.Array(RetentionStatus),
  },
  { title: 'System' },
);

const setupSteps = ['provider', 'key', 'first_call', 'limit', 'console'] as const;
const setupWarnings = [
  'no_provider',
  'no_tls',
  'secret_per_node',
  'secret_beside_data',
  'unpriced_model',
  'model_expires',
  'model_expired',
] as const;

/** What has been set up, and what should be looked at (`GET /setup`). */
export const Setup = Type.Object(
  {
    is_demo: Type.Boolean({ description: 'The store holds invented data (`model-gateway demo`).' }),
    steps: Type.Array(
      Type.Object({
        step: Type.Enum(setupSteps),
        title: Type.String(),
        is_done: Type.Boolean(),
        at: nullable(Type.String(), 'When it was done for the first time: a moment or a UTC day; null if not known.'),
        detail: Type.String({ description: 'What has happened, or what to do.' }),
        command: Type.String({ description: 'A command that completes the step.' }),
      }),
    ),
    warnings: Type.Array(
      Type.Object({
        warning: Type.Enum(setupWarnings),
        message: Type.String(),
        command: nullable(Type.String(), 'A command or setting that removes the cause.'),
      }),
      { description: 'At most 20 of each kind.' },
    ),
  },
  { title: 'Setup' },
);
export type Setup = Static<typeof Setup>;
