import Type from 'typebox';

const Calls = (window: string) =>
  Type.Object(
    {
      calls: Type.Integer({ description: 'Calls that were answered or failed.' }),
      errors: Type.Integer({ description: 'Calls that failed, as in the uptime.' }),
      rate_limited: Type.Integer({ description: 'Calls that were rate-limited: they count neither way.' }),
    },
    { description: `The calls of the last ${window}, on all nodes.` },
  );

const MomentOrNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

/** An endpoint that fails, or failed lately. */
export const FailingEndpoint = Type.Object(
  {
    model_id: Type.String(),
    model_name: Type.String(),
    provider_name: Type.String(),
    tag: Type.String({ description: 'As in the list of endpoints.' }),
    endpoint_id: Type.String({
      description: 'Its id in records of calls; `failed_endpoint` of `GET /generations` lists its failed calls.',
    }),
    condition: Type.Enum(['refused', 'failing', 'rate_limited', 'well'], {
      description:
        "`refused`: the provider refuses the gateway's credential or account; `failing`: its last call failed; `rate_limited`: it cools down after a rate limit; `well`: it answers, but at least 5 percent of its calls of the last day failed. As known to the node that answers.",
    }),
    last_failure: MomentOrNull(
      'The class of its last failure, such as `unavailable` or `timeout`; null if it is well.',
    ),
    failing_since: MomentOrNull('The first failure since it last answered; null if it is well.'),
    last_failure_at: MomentOrNull('Its last failure; null if it is well.'),
    cooling_down_until: MomentOrNull('Until when other endpoints are preferred; null if it does not cool down.'),
    last_30m: Calls('30 minutes'),
    last_1d: Calls('day'),
  },
  { title: 'FailingEndpoint' },
);
