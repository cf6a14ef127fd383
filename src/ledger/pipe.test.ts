import { expect, test, vi } from 'vitest';
import { generation } from '../../test/generation-fixture.ts';
import { realClock } from './ledger-clock.ts';
import { FLUSH_REFUSALS_MAX, Pipe } from './pipe.ts';
import { type SettleBatch, toSettle, type WindowRequest } from './settle.ts';

const record = generation({ id: 'g' });
const settle = toSettle(record, []);
const REQUEST: WindowRequest = {
  budget_id: 'b',
  window_start: '',
  is_new: true,
  own: 0,
  returned: 0,
  need: 5,
  want: 5,
  slack: 0,
  withdraws: false,
};

test('a batch of lease requests alone that the store refuses repeatedly is dropped, and outcomes are sent', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const sent: SettleBatch[] = [];
    let requests = 1;
    let frozen = 0;
    const pipe = new Pipe({
      store: {
        position: () => Promise.reject(new Error('not expected')),
        register: () => Promise.reject(new Error('not expected')),
        watch: () => Promise.reject(new Error('not expected')),
        keepAlive: () => Promise.reject(new Error('not expected')),
        look: () => Promise.reject(new Error('not expected')),
        settle: (batch) => {
          sent.push(batch);
          if (sent.length <= FLUSH_REFUSALS_MAX) return Promise.reject(new Error('no'));
          return Promise.resolve({ is: 'applied', windows: [], now: 0 });
        },
      },
      node: 'n',
      epoch: 1,
      clock: realClock(() => 0),
      log: { info() {}, warn() {}, error() {} },
      freeze: () => {
        frozen++;
        // Ends a loop that would not end.
        if (frozen > 20) throw new Error('batches of nothing are frozen again and again');
        return { windows: requests-- > 0 ? [REQUEST] : [], divisor: 2 };
      },
      onApplied: () => {},
      onLost: () => {
        requests = 1;
        return Promise.resolve({ epoch: 2, before: { epoch: 1, batch: 0 }, leases: [], now: 0 });
      },
    });
    pipe.sendNow();
    for (let turn = 0; turn < 20 && pipe.state().batches === 0; turn++) {
      await vi.advanceTimersByTimeAsync(1_000);
      await new Promise((resolve) => setImmediate(resolve));
      if (sent.length === FLUSH_REFUSALS_MAX && pipe.state().unflushed === 0) pipe.push(settle);
    }
    expect(sent.map(({ epoch, number }) => [epoch, number])).toEqual([
      ...Array.from({ length: FLUSH_REFUSALS_MAX }, () => [1, 1]),
      [2, 1],
    ]);
    expect(sent.at(-1)?.settles).toEqual([settle]);
    expect(pipe.state()).toMatchObject({ unflushed: 0, batches: 1, failing: false });
    await pipe.stop();
  } finally {
    vi.useRealTimers();
  }
});

test('an internal error after a batch is stored does not resend the batch or count it twice', async () => {
  const sent: SettleBatch[] = [];
  const errors: string[] = [];
  let faults = 1;
  const pipe = new Pipe({
    store: {
      position: () => Promise.reject(new Error('not expected')),
      register: () => Promise.reject(new Error('not expected')),
      watch: () => Promise.reject(new Error('not expected')),
      keepAlive: () => Promise.reject(new Error('not expected')),
      look: () => Promise.reject(new Error('not expected')),
      settle: (batch) => {
        sent.push(batch);
        return Promise.resolve({ is: 'applied', windows: [], now: 0 });
      },
    },
    node: 'n',
    epoch: 1,
    clock: realClock(() => 0),
    log: { info() {}, warn() {}, error: (_, message) => void errors.push(message) },
    freeze: () => ({ windows: [], divisor: 2 }),
    onApplied: () => {
      if (faults-- > 0) throw new Error('a fault of ours');
    },
    onLost: () => Promise.reject(new Error('not expected')),
  });
  pipe.push(settle);
  await pipe.flush();
  pipe.push(settle);
  await pipe.flush();
  expect(sent.map(({ number }) => number)).toEqual([1, 2]);
  expect(pipe.state()).toMatchObject({ unflushed: 0, batches: 2, failing: false });
  expect(errors).toEqual(['a batch is stored, but the journal could not note it']);
  await pipe.stop();
});

test('an internal error while a batch is built loses no outcome and keeps the order of the others', async () => {
  const sent: SettleBatch[] = [];
  const errors: string[] = [];
  let faults = 2;
  const pipe = new Pipe({
    store: {
      position: () => Promise.reject(new Error('not expected')),
      register: () => Promise.reject(new Error('not expected')),
      watch: () => Promise.reject(new Error('not expected')),
      keepAlive: () => Promise.reject(new Error('not expected')),
      look: () => Promise.reject(new Error('not expected')),
      settle: (batch) => {
        sent.push(batch);
        return Promise.resolve({ is: 'applied', windows: [], now: 0 });
      },
    },
    node: 'n',
    epoch: 1,
    clock: realClock(() => 0),
    log: { info() {}, warn() {}, error: (_, message) => void errors.push(message) },
    freeze: () => {
      if (faults-- > 0) throw new Error('a fault of ours');
      return { windows: [], divisor: 2 };
    },
    onApplied: () => {},
    onLost: () => Promise.reject(new Error('not expected')),
  });
  pipe.push(settle);
  const flushed = pipe.flush();
  pipe.push({ ...settle, id: 'second' });
  await flushed;
  await pipe.flush();
  expect(sent.flatMap(({ number, settles }) => settles.map(({ id }) => [number, id]))).toEqual([
    [1, settle.id],
    [1, 'second'],
  ]);
  expect(pipe.state()).toMatchObject({ unflushed: 0, failing: false });
  expect(errors).toEqual(['a batch of outcomes cannot be built; trying again']);
  await pipe.stop();
});

test('125 outcomes are sent at once, and fewer after a quarter of a second', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const sizes: number[] = [];
    const unexpected = () => Promise.reject(new Error('not expected'));
    const pipe = new Pipe({
      store: {
        position: unexpected,
        register: unexpected,
        watch: unexpected,
        keepAlive: unexpected,
        look: unexpected,
        settle: ({ settles }) => {
          sizes.push(settles.length);
          return Promise.resolve({ is: 'applied', windows: [], now: 0 });
        },
      },
      node: 'n',
      epoch: 1,
      clock: realClock(() => 0),
      log: { info() {}, warn() {}, error() {} },
      freeze: () => ({ windows: [], divisor: 2 }),
      onApplied: () => {},
      onLost: unexpected,
    });
    const pass = async (ms: number) => {
      await vi.advanceTimersByTimeAsync(ms);
      await new Promise((resolve) => setImmediate(resolve));
    };
    for (let count = 0; count < 124; count++) pipe.push(settle);
    await pass(10);
    expect(sizes).toEqual([]);
    pipe.push(settle);
    await pass(10);
    expect(sizes).toEqual([125]);
    pipe.push(settle);
    await pass(200);
    expect(sizes).toEqual([125]);
    await pass(60);
    expect(sizes).toEqual([125, 1]);
    await pipe.stop();
  } finally {
    vi.useRealTimers();
  }
});
