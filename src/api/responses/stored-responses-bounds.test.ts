/** Bounds of stored responses: in time and in memory, and the removal of responses that were reported as not stored. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startGateway } from '../../../test/harness.ts';
import { describeStores } from '../../../test/ledger/store-variants.ts';
import { createVault } from '../../accounts/vault.ts';
import type { Principal } from '../../http/principal.ts';
import { limits } from '../../limits.ts';
import { organizationStore } from '../../storage/organizations.ts';
import { type StoredResponseStore, storedResponseStore } from '../../storage/stored-responses.ts';
import { createStoredResponses } from './stored-responses.ts';

const AT = '2026-01-01T00:00:00.000Z';

describeStores('stored responses', ({ open }) => {
  async function setUp(store: (real: StoredResponseStore) => StoredResponseStore = (real) => real, writeMsMax = 5_000) {
    const { queries } = await open();
    const { default_workspace_id } = await organizationStore(queries).insertFirst({ at: AT });
    const warnings: string[] = [];
    const stored = createStoredResponses({
      store: store(storedResponseStore(queries)),
      vault: createVault('a secret of the test'),
      retention_days: 1,
      nowMs: () => Date.parse(AT),
      write_ms_max: writeMsMax,
      log: { warn: (_, message) => void warnings.push(message) },
    });
    const principal = { workspace_id: default_workspace_id } as Principal;
    const rows = () => queries.selectFrom('stored_responses').select(['id', 'sealed']).execute();
    const keep = (id: string, text: string) =>
      stored.keep({ generation_id: id, principal, room: undefined }, [{ role: 'user', content: text }], {
        response: [`{"id":"${id}"}`],
        output: [],
      });
    return { stored, principal, rows, keep, warnings };
  }

  test('a write that finishes after its bound is deleted, since the response was reported as not stored', async () => {
    let written = false;
    const slow = (real: StoredResponseStore): StoredResponseStore => ({
      ...real,
      async insert(row) {
        await sleep(100);
        await real.insert(row);
        written = true;
      },
    });
    const { rows, keep, warnings } = await setUp(slow, 10);
    expect(await keep('gen-1', 'Hello')).toBe(false);
    expect([written, warnings]).toEqual([false, [expect.stringContaining('could not be stored')]]);
    await expect.poll(() => written).toBe(true);
    await expect.poll(rows).toEqual([]);
  });

  test('a store that hangs is awaited up to a bound', async () => {
    const hanging = (real: StoredResponseStore): StoredResponseStore => ({
      ...real,
      insert: () => new Promise(() => undefined),
    });
    const { keep } = await setUp(hanging, 10);
    expect(await keep('gen-1', 'Hello')).toBe(false);
  });

  test('memory for decompression is reserved first', async () => {
    const { stored, principal, rows, keep } = await setUp();
    const text = 'x'.repeat(1_000_000);
    expect(await keep('gen-1', text)).toBe(true);
    expect((await rows())[0]!.sealed.length).toBeLessThan(10_000);
    const taken: number[] = [];
    const room = { take: (bytes: number) => void taken.push(bytes) };
    expect(await stored.find('gen-1', principal, room)).toMatchObject({ input: [{ content: text }] });
    expect(taken.reduce((sum, bytes) => sum + bytes)).toBeGreaterThan(limits.body_copies * text.length);
    const full = { take: () => Promise.reject(new Error('no room')) };
    await expect(stored.find('gen-1', principal, full)).rejects.toThrow('no room');
  });
});

test('memory for repeating the request in each event of a response is reserved', async () => {
  const gateway = await startGateway({ yaml: 'limits: { memory_bytes: 16777216 }' });
  try {
    const text = 'abcdefg '.repeat(170_000);
    const send = async (body: object) =>
      (await gateway.call('POST', '/responses', { model: 'sandbox/echo', stream: true, ...body })).status;
    expect(await send({ input: 'Hello', instructions: text })).toBe(413);
    expect(await send({ input: text })).not.toBe(413);
  } finally {
    await gateway.stop();
  }
});
