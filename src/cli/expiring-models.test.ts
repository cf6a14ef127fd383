import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Config } from '../config.ts';
import { createLog } from '../telemetry/log.ts';
import { warnOfExpiry } from './expiring-models.ts';

beforeEach(() => void vi.useFakeTimers({ now: Date.parse('2026-11-21T12:00:00Z') }));
afterEach(() => void vi.useRealTimers());

const configOf = (models: { id: string; expiration_date?: string }[]) => ({ models }) as unknown as Config;

function follow(config: Config) {
  const lines: string[] = [];
  const log = createLog('info', { write: (line) => void lines.push(JSON.parse(line).msg) });
  const replace = warnOfExpiry(config, log);
  return { lines, replace };
}

test('models are logged as expiring in their last month and afterwards, once a day', () => {
  const { lines } = follow(
    configOf([
      { id: 'acme/stays' },
      { id: 'acme/later', expiration_date: '2026-12-22' },
      { id: 'acme/expired', expiration_date: '2026-10-01' },
    ]),
  );
  const expired = 'acme/expired may be removed at any time: its last day was 2026-10-01';
  expect(lines).toEqual([expired]);
  vi.advanceTimersByTime(86_400_000);
  expect(lines).toEqual([expired, 'acme/later may be removed after 2026-12-22, in 31 days', expired]);
});

test('another configuration is logged immediately, and many models result in few lines', () => {
  const { lines, replace } = follow(configOf([]));
  expect(lines).toEqual([]);
  replace(configOf(Array.from({ length: 100 }, (_, at) => ({ id: `acme/${at}`, expiration_date: '2026-11-30' }))));
  expect(lines).toHaveLength(21);
  expect(lines.at(-1)).toBe('80 more models expire within 30 days, or have expired');
});
