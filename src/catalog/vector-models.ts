import type { BundledCatalog, BundledEndpoint, BundledModel } from './bundled.ts';

/** Pico-USD per token for a price in USD per million tokens. */
const perMillion = (usd: number) => Math.round(usd * 1e6);

function endpoint(provider: string, upstream: string, promptUsd: number, more: object = {}): BundledEndpoint {
  return { provider, model: upstream, can: [], price: { prompt: perMillion(promptUsd), completion: 0, ...more } };
}

function model(
  id: string,
  name: string,
  day: string,
  { context, input = ['text'], tokenizer = 'Other' }: { context: number; input?: string[]; tokenizer?: string },
  ...endpoints: BundledEndpoint[]
): BundledModel {
  return {
    id,
    canonical_slug: `${id}-${day.replaceAll('-', '')}`,
    name,
    created: Date.parse(`${day}T00:00:00Z`) / 1000,
    context,
    input,
    output: ['embeddings'],
    tokenizer,
    endpoints,
  };
}

const both = ['text', 'image'];

/**
 * Embedding models, and providers of them, that the facts of models.dev lack: prices of their makers. Models without a certain price are
 * left to operators to declare.
 */
const vectorModels: readonly BundledModel[] = [
  // https://aws.amazon.com/bedrock/pricing
  model(
    'amazon/titan-embed-image-v1',
    'Amazon: Titan Multimodal Embeddings G1',
    '2023-11-29',
    { context: 256, input: both },
    endpoint('amazon-bedrock', 'amazon.titan-embed-image-v1', 0.8, { image: 60_000_000 }),
  ),
  model(
    'amazon/titan-embed-text-v1',
    'Amazon: Titan Embeddings G1 - Text',
    '2023-09-28',
    { context: 8_192 },
    endpoint('amazon-bedrock', 'amazon.titan-embed-text-v1', 0.1),
  ),
  model(
    'amazon/titan-embed-text-v2',
    'Amazon: Titan Text Embeddings V2',
    '2024-04-30',
    { context: 8_192 },
    endpoint('amazon-bedrock', 'amazon.titan-embed-text-v2:0', 0.02),
  ),
  // https://cohere.com/pricing
  model(
    'cohere/embed-v-4-0',
    'Cohere: Embed v4',
    '2025-04-15',
    { context: 128_000, input: both, tokenizer: 'Cohere' },
    endpoint('cohere', 'embed-v4.0', 0.12, { image_token: perMillion(0.47) }),
  ),
  model(
    'cohere/embed-v3-english',
    'Cohere: Embed v3 English',
    '2023-11-07',
    { context: 512, tokenizer: 'Cohere' },
    endpoint('cohere', 'embed-english-v3.0', 0.1),
    endpoint('amazon-bedrock', 'cohere.embed-english-v3', 0.1),
  ),
  model(
    'cohere/embed-v3-multilingual',
    'Cohere: Embed v3 Multilingual',
    '2023-11-07',
    { context: 512, tokenizer: 'Cohere' },
    endpoint('cohere', 'embed-multilingual-v3.0', 0.1),
    endpoint('amazon-bedrock', 'cohere.embed-multilingual-v3', 0.1),
  ),
  // https://docs.mistral.ai/models/codestral-embed-25-05
  model(
    'mistralai/codestral-embed-2505',
    'Mistral: Codestral Embed 2505',
    '2025-05-28',
    { context: 8_192, tokenizer: 'Mistral' },
    endpoint('mistral', 'codestral-embed-2505', 0.15),
  ),
  // https://docs.voyageai.com/docs/pricing
  ...(
    [
      ['voyage-4', 'Voyage 4', '2026-01-15', 32_000, 0.06],
      ['voyage-4-large', 'Voyage 4 Large', '2026-01-15', 32_000, 0.12],
      ['voyage-4-lite', 'Voyage 4 Lite', '2026-01-15', 32_000, 0.02],
      ['voyage-code-3', 'Voyage Code 3', '2024-12-04', 32_000, 0.18],
      ['voyage-finance-2', 'Voyage Finance 2', '2024-06-03', 32_000, 0.12],
      ['voyage-law-2', 'Voyage Law 2', '2024-04-15', 16_000, 0.12],
    ] as const
  ).map(([slug, name, day, context, usd]) =>
    model(`voyageai/${slug}`, name, day, { context }, endpoint('voyageai', slug, usd)),
  ),
  // The same page: a token of an image covers 560 pixels, of which a thousand million cost 0.60 USD.
  model(
    'voyageai/voyage-multimodal-3',
    'Voyage Multimodal 3',
    '2024-11-12',
    { context: 32_000, input: both },
    endpoint('voyageai', 'voyage-multimodal-3', 0.12, { image_token: perMillion(0.336) }),
  ),
];

/** The catalog with these models. A model that it already has gets the missing providers. */
export function withVectorModels({ models, ...catalog }: BundledCatalog): BundledCatalog {
  const additional = new Map(vectorModels.map((one) => [one.id, one]));
  const merged = models.map((known) => {
    const more = (additional.get(known.id)?.endpoints ?? []).filter(
      ({ provider }) => !known.endpoints.some((one) => one.provider === provider),
    );
    return more.length === 0 ? known : { ...known, endpoints: [...known.endpoints, ...more] };
  });
  const knownIds = new Set(models.map(({ id }) => id));
  return { ...catalog, models: [...merged, ...vectorModels.filter(({ id }) => !knownIds.has(id))] };
}
