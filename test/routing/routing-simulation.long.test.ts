/** Routing under outages, latency shifts and rate limits, in virtual time: a short form of `npm run bench -- --only routing`. */
import { expect, test } from 'vitest';
import { GATEWAY } from '../../bench/routing/gateway.ts';
import { SCENARIOS, type Scenario } from '../../bench/routing/scenarios.ts';
import { askOracles, figuresOf, type RunOptions, runStrategy } from '../../bench/routing/simulate.ts';

function scenario(name: string): Scenario {
  const scenario = SCENARIOS.find((one) => one.name === name);
  if (scenario === undefined) throw new Error(`there is no ${name}`);
  return scenario;
}

const TWO_HOURS = { seed: 1, minutes: 120, per_second: 3, first_token_ms_max: 30_000 };
const SHORT = { ...TWO_HOURS, minutes: 12 };
const DYING: Scenario = {
  ...scenario('dying streams'),
  incidents: [{ provider: 'thrift', is: 'dies', share: 0.3, from_min: 2, to_min: 10 }],
};

function strategy(name: string) {
  const scenario = GATEWAY.find((one) => one.name === name);
  if (scenario === undefined) throw new Error(`there is no ${name}`);
  return scenario;
}

async function figures(name: string, scenario: Scenario, options: RunOptions) {
  const oracles = await askOracles(scenario, options);
  return figuresOf([{ run: await runStrategy(strategy(name), scenario, options), oracles }]);
}

test('while a provider is up, every answerable request is answered, at little more than the cost of the cheapest one', async () => {
  const { requests, up, success, cost_ratio } = await figures(
    'gateway, sort: price',
    scenario('two bad hours'),
    TWO_HOURS,
  );
  expect(requests).toBeGreaterThan(20_000);
  expect(up).toBeGreaterThan(0.99 * requests);
  expect(success).toBeGreaterThanOrEqual(0.999);
  expect(cost_ratio).toBeLessThanOrEqual(1.05);
}, 180_000);

test('streams that break off are continued if that is enabled', async () => {
  expect((await figures('gateway, sort: price', DYING, SHORT)).success).toBeLessThan(1);
  expect((await figures('gateway, sort: price, continued', DYING, SHORT)).success).toBe(1);
});

test('an endpoint that becomes silent delays only the calls that it already had, for any allowed wait', async () => {
  const hanging: Scenario = {
    ...DYING,
    incidents: [{ provider: 'thrift', is: 'hangs', from_min: 4, to_min: 9 }],
  };
  const options = { ...SHORT, first_token_ms_max: 300_000 };
  const { served } = await runStrategy(strategy('gateway, sort: price'), hanging, options);
  const heldUp = served.filter(({ lost_ms }) => lost_ms > 60_000);
  // In its first ten seconds, and one call for each trial afterwards.
  expect(heldUp.length).toBeGreaterThan(0);
  expect(heldUp.length).toBeLessThan(3 * 20);
  expect(served.every(({ ok }) => ok)).toBe(true);
});

test('calls with long silences do not close an endpoint to calls that it answers', async () => {
  const slow: Scenario = {
    ...DYING,
    incidents: [{ provider: 'thrift', is: 'hangs', share: 0.02, from_min: 2, to_min: 10 }],
  };
  const options = { ...SHORT, first_token_ms_max: 900_000 };
  const { served } = await runStrategy(strategy('gateway, sort: price'), slow, options);
  const atOnce = served.filter(({ attempts }) => attempts === 1);
  expect(atOnce.length / served.length).toBeGreaterThan(0.95);
  expect(atOnce.every(({ by }) => by === 'thrift')).toBe(true);
});

test('the same seed gives the same run, another seed another', async () => {
  const run = (seed: number) => runStrategy(strategy('gateway'), DYING, { ...SHORT, seed, minutes: 5 });
  const first = await run(1);
  expect(await run(1)).toEqual(first);
  expect(await run(2)).not.toEqual(first);
});
