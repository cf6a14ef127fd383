import { expect, test } from 'vitest';
import type { Endpoint } from '../catalog/model.ts';
import { createEndpointStatistics } from './endpoint-statistics.ts';
import { failingEndpoints } from './failing-endpoints.ts';
import { createHealth } from './health.ts';

const NOW = 1_800_000_000_000;
const endpoint = (name: string, more: Partial<Endpoint> = {}) => ({ id: `p|a/${name}`, ...more }) as Endpoint;

test('the most severe is first; from 5 % failed calls an endpoint is listed; own credentials do not count', () => {
  const health = createHealth();
  const statistics = createEndpointStatistics();
  const count = (id: string, successes: number, errors: number) => {
    for (let n = 0; n < successes; n += 1) statistics.observe(id, { result: 'success' }, NOW);
    for (let n = 0; n < errors; n += 1) statistics.observe(id, { result: 'error' }, NOW);
  };
  count('p|a/poor', 19, 1);
  count('p|a/worse', 1, 1);
  count('p|a/good', 96, 4);
  health.failed('p|a/down', 'unavailable', undefined, NOW);
  health.failed('p|a/refused', 'credential', undefined, NOW);
  health.failed('p|a/limited', 'rate_limited', 5_000, NOW);
  health.failed('p|a/tiered flex', 'timeout', undefined, NOW);
  health.failed('p|a/own own-credential.1', 'credential', undefined, NOW);
  const endpoints = ['good', 'poor', 'worse', 'limited', 'down', 'refused', 'own'].map((name) => endpoint(name));
  endpoints.push(endpoint('tiered', { service_tiers: { flex: { pricing: {} } } }));
  const listed = failingEndpoints(endpoints, { health, statistics, now_ms: NOW });
  expect(listed.map(({ endpoint: { id }, tier, condition }) => [id.slice(4), tier, condition])).toEqual([
    ['refused', undefined, 'refused'],
    ['down', undefined, 'failing'],
    ['tiered', 'flex', 'failing'],
    ['limited', undefined, 'rate_limited'],
    ['worse', undefined, 'well'],
    ['poor', undefined, 'well'],
  ]);
  expect(listed.find(({ condition }) => condition === 'rate_limited')?.cooling_until_ms).toBe(NOW + 5_000);
});
