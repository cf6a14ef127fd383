import Type from 'typebox';

/** What an administrator releases of a node that will not return. */
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
