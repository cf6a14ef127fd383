import { Random } from '../../test/simulation/random.ts';

/**
 * The number of models with each number of endpoints: 2,000 and 5,000 in all. The most used models have many endpoints.
 */
const SHAPE: readonly { models: number; endpoints: number }[] = [
  { models: 20, endpoints: 25 },
  { models: 180, endpoints: 8 },
  { models: 600, endpoints: 3 },
  { models: 60, endpoints: 2 },
  { models: 1_140, endpoints: 1 },
];

const PROVIDERS = 50;
const AUTHORS = 80;
const CATEGORIES = ['programming', 'roleplay', 'marketing', 'technology', 'science', 'translation', 'legal', 'finance'];
const QUANTIZATIONS = ['fp8', 'bf16', 'int8', 'unknown'];
const PARAMETERS = ['temperature', 'top_p', 'stop', 'seed', 'frequency_penalty', 'presence_penalty', 'top_k'];
const RICH_PARAMETERS = ['tools', 'tool_choice', 'response_format', 'structured_outputs', 'reasoning'];
const SENTENCE = 'It answers questions, follows instructions, writes and explains code, and keeps to a given form. ';
const DAY_S = 86_400;
const NEWEST_S = 1_760_000_000;

/** The name of the nth model; those with many endpoints come first. */
export function modelName(nth: number): string {
  return `author-${nth % AUTHORS}/model-${nth}`;
}

/** The numbers of models and endpoints of each kind. */
export const LARGE = {
  models: SHAPE.reduce((sum, { models }) => sum + models, 0),
  endpoints: SHAPE.reduce((sum, { models, endpoints }) => sum + models * endpoints, 0),
};

function endpointOf(provider: number, random: Random) {
  // One in fifty is free.
  const prompt = random.chance(0.02) ? 0 : random.between(0.05, 3);
  return {
    provider: `provider-${provider}`,
    upstream_model: 'model',
    pricing: { prompt: prompt.toFixed(4), completion: (prompt * random.between(2, 5)).toFixed(4) },
    context_length: 131_072,
    max_completion_tokens: 16_384,
    quantization: random.pick(QUANTIZATIONS),
    supported_parameters: random.chance(0.7) ? [...PARAMETERS, ...RICH_PARAMETERS] : PARAMETERS,
  };
}

/** A `gateway.yaml` as large as the largest public catalogs, as an object: JSON is YAML too. */
export function largeConfig(): Record<string, unknown> {
  const random = new Random(11);
  const models: Record<string, unknown> = {};
  let nth = 0;
  for (const { models: count, endpoints } of SHAPE) {
    for (let made = 0; made < count; made += 1) {
      const first = random.whole(0, PROVIDERS - 1);
      models[modelName(nth)] = {
        name: `Author ${nth % AUTHORS}: Model ${nth}`,
        description: SENTENCE.repeat(random.whole(2, 6)).trim(),
        created: NEWEST_S - nth * DAY_S,
        context_length: 131_072,
        input_modalities: random.chance(0.3) ? ['text', 'image'] : ['text'],
        categories: [random.pick(CATEGORIES)],
        endpoints: Array.from({ length: endpoints }, (_, at) => endpointOf((first + at) % PROVIDERS, random)),
      };
      nth += 1;
    }
  }
  const providers = Array.from({ length: PROVIDERS }, (_, index) => [
    `provider-${index}`,
    {
      name: `Provider ${index}`,
      dialect: 'openai-chat',
      base_url: `http://127.0.0.1:9/${index}`,
      api_key: 'bench-credential',
      data_policy: { training: index % 5 === 0, retention: index % 3 === 0 ? 'none' : '30d' },
    },
  ]);
  return { bundled_catalog: false, providers: Object.fromEntries(providers), models };
}
