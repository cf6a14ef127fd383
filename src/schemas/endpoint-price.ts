import Type from 'typebox';
import { Pricing } from './endpoint.ts';

const PriceTiers = Type.Array(
  Type.Object({
    prompt_tokens_over: Type.Integer({ description: 'The prices apply to prompts of more tokens.' }),
    pricing: Pricing,
  }),
);

/** The prices of an endpoint from a moment on. */
export const EndpointPrice = Type.Object(
  {
    tag: Type.String({ description: 'As in the list of endpoints, without a service tier.' }),
    provider_name: Type.String(),
    from: Type.String({
      description:
        'From when on the prices are known to be in force: the declared moment of a dated price, else when a node first used them.',
    }),
    until: Type.Union([Type.String(), Type.Null()], { description: 'Until when; null for the last known prices.' }),
    changed: Type.Union([Type.Array(Type.String()), Type.Null()], {
      description:
        'The differences from the previous prices: classes of `pricing`, `price_tiers`, `service_tiers.<name>`; null for the first recorded prices.',
    }),
    pricing: Pricing,
    price_tiers: PriceTiers,
    service_tiers: Type.Record(Type.String(), Type.Object({ pricing: Pricing, price_tiers: PriceTiers })),
  },
  { title: 'EndpointPrice' },
);
