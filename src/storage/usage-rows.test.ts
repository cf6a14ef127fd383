import { expect, test } from 'vitest';
import type { UsageDimensions, UsageMeasures } from '../ledger/usage-facts.ts';
import { type CountedCall, countedCalls, MEASURES, SeriesNames } from './usage-rows.ts';

const DIMENSIONS: UsageDimensions = {
  organization_id: 'organization',
  workspace_id: 'workspace',
  key_hash: 'key',
  user_id: 'user',
  model: 'model',
  provider_name: 'provider',
  operation: 'completions',
  status: 'completed',
  finish_reason: 'stop',
  app: 'app',
  tags: 'tag',
  external_user: 'person',
  guardrails: '',
};

/** Every measure of a call has another value. */
const measuresOf = (factor: number) =>
  Object.fromEntries(MEASURES.map((name, at) => [name, (at + 1) * factor])) as unknown as UsageMeasures;

function callOf(id: string, factor: number, other: Partial<UsageDimensions> = {}): CountedCall {
  const usage = { dimensions: { ...DIMENSIONS, ...other }, measures: measuresOf(factor), buckets: [] };
  return { id, created_at: '2026-11-23T10:00:00.000Z', usage };
}

test('every measure of the calls of a series is summed', () => {
  const counted = countedCalls([callOf('a', 1), callOf('b', 10), callOf('c', 100)], () => 'node', new SeriesNames());
  expect(counted.hours).toHaveLength(1);
  expect(counted.hours[0]!.usage).toMatchObject(measuresOf(111));
});

test.each(Object.keys(DIMENSIONS) as (keyof UsageDimensions)[])(
  'calls that differ in %s alone are two series',
  (name) => {
    const calls = [callOf('a', 1), callOf('b', 1, { [name]: 'failed' }), callOf('c', 1)];
    const { seriesOf, series } = countedCalls(calls, () => 'node', new SeriesNames());
    expect(series).toHaveLength(2);
    expect(seriesOf.get('a')).toBe(seriesOf.get('c'));
    expect(seriesOf.get('b')).not.toBe(seriesOf.get('a'));
  },
);
