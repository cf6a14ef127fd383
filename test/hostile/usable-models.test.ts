/**
 * One key that requests its usable models on many connections. See docs/threat-model.md, "Connections and slow
 * clients".
 */
import { Session } from 'node:inspector/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../harness.ts';

const session = new Session();
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({});
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
});
afterAll(async () => {
  session.disconnect();
  await gateway.stop();
});

/** How often a function ran since the last call of this function. */
async function callsOf(file: string, name: string): Promise<number> {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const functions = result.filter(({ url }) => url.endsWith(file)).flatMap((script) => script.functions);
  return functions.reduce((sum, { functionName, ranges }) => sum + (functionName === name ? ranges[0]!.count : 0), 0);
}

test('concurrent requests for the models of one key share the work', async () => {
  const requestCount = 20;
  const one = async () => (await gateway.call('GET', '/models/user')).text();
  await one();
  await callsOf('/usable-models.ts', 'usable');
  const whole = await one();
  const models = await callsOf('/usable-models.ts', 'usable');
  expect(models).toBeGreaterThan(10);
  const answers = await Promise.all(Array.from({ length: requestCount }, one));
  expect(new Set([whole, ...answers]).size).toBe(1);
  expect(await callsOf('/usable-models.ts', 'usable')).toBeLessThan((models * requestCount) / 3);
});
