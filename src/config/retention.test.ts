import { expect, test } from 'vitest';
import { loadConfig } from '../config.ts';

const load = (text: string) => loadConfig({}, { config_file_content: { path: 'gateway.yaml', text } });

test('without a section everything is kept', () => {
  expect(load('{}').retention).toEqual({});
});

test('days are read, and shown as settings with their source', () => {
  const { retention, settings } = load('retention: { generations_days: 7, closed_windows_days: 7, audit_days: 30 }');
  expect(retention).toEqual({ generations_days: 7, closed_windows_days: 7, audit_days: 30 });
  expect(settings).toContainEqual(
    expect.objectContaining({
      name: 'retention.generations_days',
      value: '7',
      source: 'file',
      takes_effect: 'at once',
    }),
  );
});

test.each([
  ['retention: { generations_days: 6 }', /generations_days must be a whole number of days from 7 to 36500/],
  ['retention: { generations_days: 7.5 }', /generations_days must be a whole number of days/],
  ['retention: { audit_days: 29 }', /audit_days must be a whole number of days from 30 to 36500/],
  ['retention: { closed_windows_days: 90 }', /closed_windows_days must be at least retention.generations_days/],
  ['retention: { generations_days: 90, closed_windows_days: 89 }', /must be at least retention.generations_days/],
])('%s is refused', (text, message) => {
  expect(() => load(text)).toThrow(message);
});
