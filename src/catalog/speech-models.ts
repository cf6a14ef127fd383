import type { Prices } from '../schemas/prices.ts';
import type { BundledCatalog, BundledModel } from './bundled.ts';

/** Pico-USD per second for a price in USD per minute, rounded up. */
const perMinute = (usd: number): Prices => ({
  prompt: 0,
  completion: 0,
  audio_second: Math.ceil(Math.round(usd * 1e12) / 60),
});

function model(id: string, name: string, day: string, endpoint: BundledModel['endpoints'][number]): BundledModel {
  return {
    id,
    canonical_slug: `${id}-${day.replaceAll('-', '')}`,
    name,
    created: Date.parse(`${day}T00:00:00Z`) / 1000,
    input: ['audio'],
    output: ['transcription'],
    tokenizer: 'Other',
    endpoints: [endpoint],
  };
}

/**
 * Transcription models, whose prices are not in the facts of models.dev: prices of their makers. Models without a certain price, or with
 * one that depends on options, are left to operators to declare.
 */
const speechModels: readonly BundledModel[] = [
  // https://www.assemblyai.com/pricing: 0.15 USD an hour.
  model('assemblyai/universal-2', 'AssemblyAI: Universal-2', '2024-11-04', {
    provider: 'assemblyai',
    model: 'universal-2',
    can: [],
    price: perMinute(0.0025),
  }),
  // https://deepgram.com/pricing, pre-recorded: the highest of its prices by language.
  model('deepgram/nova-3', 'Deepgram: Nova-3', '2025-02-12', {
    provider: 'deepgram',
    model: 'nova-3',
    can: [],
    price: perMinute(0.0052),
  }),
  // https://docs.mistral.ai/models/voxtral-mini-transcribe-25-07
  model('mistralai/voxtral-mini-transcribe', 'Mistral: Voxtral Mini Transcribe', '2025-07-15', {
    provider: 'mistral',
    model: 'voxtral-mini-2507',
    can: [],
    price: perMinute(0.002),
  }),
  // https://developers.openai.com/api/docs/models/gpt-4o-mini-transcribe
  model('openai/gpt-4o-mini-transcribe', 'OpenAI: GPT-4o Mini Transcribe', '2025-03-20', {
    provider: 'openai',
    model: 'gpt-4o-mini-transcribe',
    context: 16_000,
    completion_max: 2_000,
    can: [],
    price: { prompt: 1_250_000, completion: 5_000_000 },
  }),
  // https://developers.openai.com/api/docs/models/gpt-4o-transcribe
  model('openai/gpt-4o-transcribe', 'OpenAI: GPT-4o Transcribe', '2025-03-20', {
    provider: 'openai',
    model: 'gpt-4o-transcribe',
    context: 16_000,
    completion_max: 2_000,
    can: [],
    price: { prompt: 2_500_000, completion: 10_000_000 },
  }),
  // https://developers.openai.com/api/docs/models/whisper-1
  model('openai/whisper-1', 'OpenAI: Whisper', '2023-03-01', {
    provider: 'openai',
    model: 'whisper-1',
    can: [],
    price: perMinute(0.006),
  }),
  // https://groq.com/pricing: 0.111 USD an hour, and 0.04.
  model('openai/whisper-large-v3', 'OpenAI: Whisper Large V3', '2023-11-06', {
    provider: 'groq',
    model: 'whisper-large-v3',
    can: [],
    price: perMinute(0.111 / 60),
  }),
  model('openai/whisper-large-v3-turbo', 'OpenAI: Whisper Large V3 Turbo', '2024-09-30', {
    provider: 'groq',
    model: 'whisper-large-v3-turbo',
    can: [],
    price: perMinute(0.04 / 60),
  }),
];

/** The catalog with these models; models that it already has take precedence. */
export function withSpeechModels({ models, ...catalog }: BundledCatalog): BundledCatalog {
  const known = new Set(models.map(({ id }) => id));
  return { ...catalog, models: [...models, ...speechModels.filter(({ id }) => !known.has(id))] };
}
