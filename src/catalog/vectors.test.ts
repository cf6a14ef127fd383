import { expect, test } from 'vitest';
import type { Endpoint } from './model.ts';
import { endpointOfVectors } from './vectors.ts';

const endpoint = { id: 'e', pricing: { prompt: 5 }, max_completion_tokens: 1024, supported_parameters: ['tools'] };

test('an embedding endpoint has completion price zero in all price lists', () => {
  const made = endpointOfVectors({
    ...endpoint,
    price_tiers: [{ prompt_tokens_over: 10, price: { prompt: 6 } }],
    service_tiers: { flex: { pricing: { prompt: 2 } } },
    price_changes: [{ from_ms: 1, pricing: { prompt: 7 } }],
  } as unknown as Endpoint);
  expect(made).toMatchObject({
    pricing: { prompt: 5, completion: 0 },
    price_tiers: [{ price: { prompt: 6, completion: 0 } }],
    service_tiers: { flex: { pricing: { prompt: 2, completion: 0 } } },
    price_changes: [{ pricing: { prompt: 7, completion: 0 } }],
    max_completion_tokens: undefined,
    supported_parameters: [],
  });
});

test('an unknown price stays unknown', () => {
  expect(endpointOfVectors({ ...endpoint, pricing: {} } as unknown as Endpoint).pricing).toEqual({});
});
