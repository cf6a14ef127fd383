import { expect, test } from 'vitest';
import { GatewayError } from '../../errors.ts';
import { CallCancelled } from '../attempt/upstream-call.ts';
import type { CallState } from '../state.ts';
import { createPay, feesOf } from './fees.ts';

const LIMITED = [{ id: 'b' }];

/** The state of a call with nothing but its reservation, and the steps that it took, in order. */
function opened({ budgets = LIMITED, refuses = false }: { budgets?: object[]; refuses?: boolean } = {}) {
  const done: string[] = [];
  const candidate = {
    model: { id: 'a/b' },
    provider: { name: 'A' },
    endpoint: { id: 'a|a/b' },
    own: { id: 'own' },
  };
  const state = {
    call: {
      generation_id: 'gen-1',
      request: { messages: [] },
      principal: { budgets },
      attribution: {},
      accepted_ms: 0,
    },
    plan: { attempts: [candidate] },
    hold: {},
    attempts: [{ record: { cost_nano: 1 } }],
    fees: [],
    current: undefined,
  } as unknown as CallState;
  const pay = createPay({
    rules: { budgets: 'strict' },
    recorder: {
      reserve({ full_nano, least_nano, is_byok }, hold) {
        done.push(`reserve ${full_nano} ${least_nano} ${is_byok}`);
        if (refuses) throw new GatewayError(402, 'no');
        return hold!;
      },
      attempt({ attempt, record }) {
        done.push(
          `attempt ${attempt} byok=${record.is_byok} after=${record.attempts.length}+${record.fees?.length ?? 0}`,
        );
        return Promise.resolve();
      },
      keep: (_hold, costNano, isByok) => void done.push(`keep ${costNano} ${isByok}`),
    },
  });
  const run =
    (...costs: number[]) =>
    () => {
      done.push('run');
      return Promise.resolve(
        costs.map((costNano) => ({ value: costNano, cost_nano: costNano, counts: { web_search: 1 } })),
      );
    };
  return { state, pay, run, done };
}

const fee = (costNanoMax: number) => ({ name: 'web_search', cost_nano_max: costNanoMax });

test('a fee is reserved in full, then recorded, then run, then charged at its cost, and never to a client’s account', async () => {
  const { state, pay, run, done } = opened();
  await pay(state, [fee(10), fee(10)], run(7, 10));
  expect(done).toEqual([
    'reserve 20 20 false',
    'attempt 2 byok=false after=1+0',
    'run',
    'keep 7 false',
    'keep 10 false',
  ]);
  expect(state.fees.map(({ cost_nano }) => cost_nano)).toEqual([7, 10]);
  expect(state.fees[0]!.charges).toEqual([{ class: 'web_search', units: 1, unit_price_pico: 7_000 }]);
});

test('a fee has an attempt number of its own, so that no two have one name in the journal', async () => {
  const { state, pay, run, done } = opened();
  await pay(state, [fee(10)], run(1));
  await pay(state, [fee(10)], run(1));
  expect(done.filter((step) => step.startsWith('attempt'))).toEqual([
    'attempt 2 byok=false after=1+0',
    'attempt 3 byok=false after=1+1',
  ]);
});

test('the work of a fee is not run if it cannot be paid', async () => {
  const { state, pay, run, done } = opened({ refuses: true });
  await expect(pay(state, [fee(10)], run(1))).rejects.toThrow('no');
  expect(done).toEqual(['reserve 10 10 false']);
  expect(state.record).toBeUndefined();
});

test('a fee is not charged if its work fails, in full if the client disconnects, and at most its reservation', async () => {
  const { state, pay, run } = opened();
  await expect(pay(state, [fee(10)], () => Promise.reject(new Error('late')))).rejects.toThrow('late');
  expect(state.fees).toEqual([]);
  const cancelled = new CallCancelled({ may_be_billed: false });
  await expect(pay(state, [fee(7)], () => Promise.reject(cancelled))).rejects.toBe(cancelled);
  expect(state.fees.splice(0)).toMatchObject([{ cost_nano: 7 }]);
  await pay(state, [fee(10)], run(11));
  expect(state.fees).toMatchObject([{ cost_nano: 10 }]);
});

test('a fee is recorded also without limits; work without a cost is not recorded', async () => {
  const { state, pay, run, done } = opened({ budgets: [] });
  await pay(state, [fee(10)], run(1));
  expect(done).toEqual(['attempt 2 byok=false after=1+0', 'run', 'keep 1 false']);
  done.length = 0;
  await pay(state, [fee(0)], run(0));
  expect(done).toEqual(['run']);
  expect(state.fees.at(-1)).toEqual({ name: 'web_search', cost_nano: 0, charges: [], counts: { web_search: 1 } });
});

test('work during a running attempt is refused', async () => {
  const { state, pay, done } = opened();
  state.current = { isSent: true } as CallState['current'];
  const spent = feesOf(state, pay).spend(fee(10), () => Promise.resolve({ value: 1, cost_nano: 1 }));
  await expect(spent).rejects.toMatchObject({ status: 503 });
  expect(done).toEqual([]);
});
