import Type from 'typebox';
import { limits } from '../limits.ts';
import { LedgerNodeStatus } from './system.ts';

/** The node whose reservations an administrator releases. It must not return. */
export const LedgerReleaseRequest = Type.Object(
  {
    node_id: Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'The node, as `ledger status` lists it. It must not have sent a sign of life for a minute.',
    }),
  },
  { additionalProperties: false, title: 'LedgerReleaseRequest' },
);

/** The amounts that a release frees. */
export const LedgerRelease = Type.Object(
  {
    node_id: Type.String(),
    released: Type.Number({ description: 'USD that were reserved for the node and are free now.' }),
    windows: Type.Integer({ description: 'The number of limit windows.' }),
    booked: Type.Number({
      description:
        'USD that had been booked as spent for the node (`ledger.lost_node_release_after`) and are free now.',
    }),
  },
  { title: 'LedgerRelease' },
);

/** A generation whose cost is an estimate. */
const EstimatedGeneration = Type.Object({
  id: Type.String(),
  created_at: Type.String({ format: 'date-time' }),
  node_id: Type.String({ description: 'The node that settled it.' }),
  key_hash: Type.String(),
  model: Type.String(),
  cost: Type.Number({ description: 'USD that were charged.' }),
  estimated: Type.Number({ description: 'USD of these that are an estimate.' }),
});

/** Reserved and doubtful money. */
export const LedgerStatus = Type.Object(
  {
    nodes: Type.Array(LedgerNodeStatus, { description: 'The last seen first, at most 200.' }),
    node_count: Type.Integer(),
    held: Type.Number({ description: 'USD that are reserved for all nodes.' }),
    in_doubt: Type.Number({ description: 'USD of these that are reserved for lost nodes.' }),
    booked: Type.Number({ description: 'USD that were booked as spent for lost nodes.' }),
    estimated: Type.Number({ description: 'USD that were charged by estimate.' }),
    estimated_count: Type.Integer({ description: 'The number of generations with an estimate.' }),
    generations: Type.Array(EstimatedGeneration, { description: 'Generations with an estimate, by id.' }),
    next: Type.Union([Type.String(), Type.Null()], {
      description: 'The value of `after` for the next ones; null: none.',
    }),
  },
  { title: 'LedgerStatus' },
);

/** Corrects the cost of a generation whose end is not known. */
export const LedgerResolveRequest = Type.Object(
  {
    generation_id: Type.String({ minLength: 1, maxLength: 200 }),
    cost: Type.Number({ minimum: 0, maximum: limits.usd_max, description: 'What it cost, USD.' }),
    reason: Type.Optional(Type.String({ minLength: 1, maxLength: limits.reason_chars_max })),
  },
  { additionalProperties: false, title: 'LedgerResolveRequest' },
);

export const LedgerResolution = Type.Object(
  {
    generation_id: Type.String(),
    before: Type.Number({ description: 'USD that had been charged.' }),
    cost: Type.Number({ description: 'USD that are charged now.' }),
    windows: Type.Integer({ description: 'The number of limit windows that were corrected.' }),
  },
  { title: 'LedgerResolution' },
);

/** The result of adding up every window and day again. */
export const LedgerVerification = Type.Object(
  {
    generations: Type.Integer({ description: 'The number of generations that were added up.' }),
    windows: Type.Integer({ description: 'The number of limit windows that were compared.' }),
    differences: Type.Array(
      Type.Object({
        of: Type.Enum([
          'window',
          'leases',
          'usage',
          'activity',
          'requests',
          'generations',
          'analytics',
          'total',
        ] as const),
        name: Type.String(),
        expected: Type.Number({ description: 'The sum of what was settled, nano-USD or requests.' }),
        actual: Type.Number({ description: 'The stored sum.' }),
      }),
      { description: `At most ${limits.verify_differences_max}. None: all sums agree.` },
    ),
    seconds: Type.Number(),
  },
  { title: 'LedgerVerification' },
);
