import { expect, test } from 'vitest';
import { readBundledCatalog } from '../config.ts';
import { providerRow } from '../providers/table.ts';
import { transcriptionDialectOf } from '../providers/transcription/dialects.ts';
import { isPriced } from '../schemas/prices.ts';
import { withSpeechModels } from './speech-models.ts';
import { transcribes } from './transcripts.ts';

const models = readBundledCatalog().models.filter(({ output }) => transcribes({ output_modalities: output }));

test('every transcription model has a price, and a provider with a transcription wire', () => {
  expect(models.length).toBeGreaterThan(5);
  for (const { id, endpoints } of models) {
    for (const { provider, price = {} } of endpoints) {
      const { dialect, transcription_dialect: transcriptionDialect } = providerRow.get(provider) ?? {};
      expect([id, isPriced(price), price.audio_second !== undefined || price.prompt !== 0]).toEqual([id, true, true]);
      const spoken = dialect && transcriptionDialectOf({ dialect, transcription_dialect: transcriptionDialect });
      expect([id, spoken?.by_chat]).toEqual([id, false]);
    }
  }
});

test('an hour costs its published price, and not less', () => {
  const hour = (id: string) => (models.find((model) => model.id === id)?.endpoints[0]?.price?.audio_second ?? 0) * 3600;
  expect(hour('openai/whisper-1') / 1e12).toBeCloseTo(0.36, 6);
  expect(hour('openai/whisper-large-v3') / 1e12).toBeCloseTo(0.111, 6);
  expect(hour('openai/whisper-large-v3-turbo')).toBeGreaterThanOrEqual(0.04e12);
  expect(hour('openai/whisper-large-v3-turbo') / 1e12).toBeCloseTo(0.04, 6);
});

test('a model in the facts takes precedence over the built-in one', () => {
  const own = { ...models[0]!, name: 'Told' };
  const { models: merged } = withSpeechModels({ format: 1, models: [own] });
  expect(merged.filter(({ id }) => id === own.id)).toEqual([own]);
});
