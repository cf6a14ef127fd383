import { expect, test } from 'vitest';
import { GatewayError } from '../../errors.ts';
import type { Hold, HoldRequest } from '../../ledger/leases/hold.ts';
import type { SpendBound } from '../attempt/prepare-attempt.ts';
import type { Call } from '../call.ts';
import { createAdmission, type Measured, type Prepared, type SpendingRules } from './admission.ts';

const rules: SpendingRules = {
  budgets: 'strict',
  hold: 'full',
  unknown_outcome: 'hold',
  default_output_tokens: 1_000,
  min_output_tokens: 10,
};
const exposure = {
  lines: [{ fixed_pico: 1_000_000, output_pico: 1_000, afterDiscountPpm: 1_000_000 }],
  output_tokens: 100,
};
const counted = { lines: [{ fixed_pico: 0, output_pico: 1_000, afterDiscountPpm: 1_000_000 }], output_tokens: 100 };

type Reserved = number | Promise<number> | GatewayError;

/** Admits an attempt of 100 output tokens, with a ledger that grants these amounts one after the other, or throws. */
function admission(grants: Reserved[], count: Measured['count'] = async () => undefined) {
  const asks: HoldRequest[] = [];
  const bounds: (SpendBound | undefined)[] = [];
  const reserve = (ask: HoldRequest, hold: Hold = { id: 'g', lines: [], granted_nano: 0 }): Hold | Promise<Hold> => {
    asks.push(ask);
    const granted = grants.shift()!;
    if (granted instanceof GatewayError) throw granted;
    const give = (grantedNano: number) => Object.assign(hold, { granted_nano: grantedNano });
    return granted instanceof Promise ? granted.then(give) : give(granted);
  };
  const { admit } = createAdmission({
    recorder: { reserve, reserveNow: () => false, extend: async () => false },
    rules,
  });
  const admitting = () =>
    admit<Prepared>({
      call: { generation_id: 'g', accepted_ms: 1, principal: { budgets: [{}] }, request: {} } as never as Call,
      hold: { id: 'g', lines: [], granted_nano: 0 },
      is_byok: false,
      prepare(spend) {
        bounds.push(spend);
        return { output_tokens: spend?.paid_tokens ?? 100 } as Prepared;
      },
      measure: () => ({ exposure, floor: () => counted, least_tokens: 0, count }),
    });
  return { admitting, asks, bounds };
}

const refusal = () => new GatewayError(402, 'no', { metadata: { limit_remaining: 1 } });

test('an attempt whose amount is available is admitted synchronously', () => {
  const { admitting, asks } = admission([1_100]);
  expect(admitting()).toMatchObject({
    prepared: { output_tokens: 100 },
    hold: { granted_nano: 1_100 },
    grant: { exposure, output_tokens: 100, paid_tokens: 100, mode: 'strict' },
  });
  expect(asks).toMatchObject([{ full_nano: 1_100, least_nano: 1_010, mode: 'strict' }]);
});

test('an attempt that waits for its amount is admitted with the same terms', async () => {
  const { admitting } = admission([Promise.resolve(1_100)]);
  expect(await admitting()).toMatchObject({ grant: { output_tokens: 100, paid_tokens: 100 } });
});

test.each([1_050, Promise.resolve(1_050)])('a partial grant lowers the output bound', async (granted) => {
  const { admitting, bounds } = admission([granted]);
  expect(await admitting()).toMatchObject({
    prepared: { output_tokens: 50 },
    grant: { output_tokens: 50, paid_tokens: 50 },
  });
  expect(bounds).toEqual([{ default_tokens: 1_000 }, { default_tokens: 1_000, paid_tokens: 50 }]);
});

test('a prompt with fewer tokens than bytes makes a second, smaller reservation', async () => {
  const { admitting, asks } = admission([1_050, 100], async () => counted);
  expect(await admitting()).toMatchObject({ grant: { exposure: counted, output_tokens: 100, paid_tokens: 100 } });
  expect(asks.map(({ full_nano }) => full_nano)).toEqual([1_100, 100]);
});

test('a refused reservation rejects, or is repeated once if the prompt may have fewer tokens', async () => {
  await expect(admission([refusal()]).admitting()).rejects.toMatchObject({ status: 402 });
  const { admitting } = admission([refusal(), 100], async () => counted);
  expect(await admitting()).toMatchObject({ grant: { exposure: counted, output_tokens: 100 } });
});
