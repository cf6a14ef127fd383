import { expect } from 'vitest';
import type { JsonObject } from '../src/schemas/json.ts';
import { startGateway, type TestGateway } from './harness.ts';
import { object } from './readings/recordings.ts';

export type Ask = (
  method: string,
  path: string,
  body?: object,
  key?: string,
) => Promise<{ status: number; answer: JsonObject }>;

/** Calls operations of a gateway, with its ordinary key or another. */
export function askOf(gateway: () => TestGateway): Ask {
  return async (method, path, body, key = gateway().key) => {
    const response = await gateway().call(method, path, body, { authorization: `Bearer ${key}` });
    return { status: response.status, answer: (await response.json()) as JsonObject };
  };
}

/** The message of an error. */
export const messageOf = (answer: JsonObject) => String(object(answer['error'])['message']);

/** The events of a stream, and the response of the last one. */
export async function streamed(gateway: TestGateway, body: object) {
  const text = await (await gateway.call('POST', '/responses', { ...body, stream: true })).text();
  const events = text
    .split('\n\n')
    .flatMap((event) => /^data: (\{.*)$/m.exec(event)?.[1] ?? [])
    .map((json) => JSON.parse(json) as JsonObject);
  expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  return { events, response: object(events.at(-1)?.['response']) };
}

/** A gateway that stores responses for two days. */
export function startStoring(
  clock: { nowMs: () => number },
  { data_dir, database_url }: { data_dir?: string | undefined; database_url?: string | undefined } = {},
): Promise<TestGateway> {
  return startGateway({
    yaml: JSON.stringify({ responses: { store: true, retention_days: 2 } }),
    clock: { ...clock, monotonicMs: () => performance.now() },
    environment: {
      GATEWAY_SECRET: 'a-secret-of-the-test-long-enough-to-be-one',
      ...(database_url === undefined ? {} : { DATABASE_URL: database_url }),
    },
    ...(data_dir === undefined ? {} : { data_dir }),
  });
}
