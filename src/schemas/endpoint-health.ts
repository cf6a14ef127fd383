import Type from 'typebox';

/** The calls of an endpoint by UTC day. */
export const EndpointHealth = Type.Object(
  {
    tag: Type.String({ description: 'As in the list of endpoints.' }),
    provider_name: Type.String(),
    days: Type.Array(
      Type.Object({
        date: Type.String({ description: 'YYYY-MM-DD' }),
        calls: Type.Integer({ description: 'Calls that were answered or failed.' }),
        errors: Type.Integer({ description: 'Calls that failed, as in the uptime.' }),
        rate_limited: Type.Integer({ description: 'Calls that were rate-limited: they count neither way.' }),
        uptime: Type.Union([Type.Number(), Type.Null()], {
          description: 'Percent of the calls that were answered completely; null below 10 calls.',
        }),
      }),
    ),
  },
  { title: 'EndpointHealth' },
);
