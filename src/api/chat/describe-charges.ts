import { amountAtto } from '../../ledger/prices/charge.ts';
import type { AttemptRecord, ChargeLine, FeeRecord, GenerationRecord } from '../../ledger/records.ts';
import type { PublicCharge } from '../../schemas/generation.ts';

const ATTO_PER_NANO = 1_000_000_000n;
const ATTO_PER_PICO = 1_000_000n;

/** An amount in atto-USD (10^-18) as an exact decimal of USD. */
function decimal(atto: bigint): string {
  const digits = String(atto < 0n ? -atto : atto).padStart(19, '0');
  const fraction = digits.slice(-18).replace(/0+$/, '');
  return `${atto < 0n ? '-' : ''}${digits.slice(0, -18)}${fraction === '' ? '' : `.${fraction}`}`;
}

type Whose = Pick<PublicCharge, 'attempt' | 'endpoint_id' | 'is_byok'>;

function describeLine(line: ChargeLine, whose: Whose): PublicCharge {
  return {
    class: line.class,
    model: line.model ?? null,
    units: line.units / (line.price_units ?? 1),
    unit_price: decimal(BigInt(line.unit_price_pico) * ATTO_PER_PICO),
    discount: (line.discount_ppm ?? 0) / 1_000_000,
    amount: decimal(amountAtto(line)),
    ...whose,
  };
}

/** The difference between the lines of an attempt and its cost: the rounding, or an unknown outcome. */
function difference(atto: bigint, whose: Whose): PublicCharge[] {
  if (atto === 0n) return [];
  const name = atto < 0n ? 'bound' : atto < ATTO_PER_NANO ? 'rounding' : 'unknown_outcome';
  const amount = decimal(atto);
  return [{ class: name, model: null, units: 1, unit_price: amount, discount: 0, amount, ...whose }];
}

function ofAttempt({ charges = [], cost_nano, endpoint_id, is_byok }: AttemptRecord, index: number): PublicCharge[] {
  const whose = { attempt: index + 1, endpoint_id, is_byok };
  const sum = charges.reduce((total, line) => total + amountAtto(line), 0n);
  const left = BigInt(cost_nano) * ATTO_PER_NANO - sum;
  return [...charges.map((line) => describeLine(line, whose)), ...difference(left, whose)];
}

function ofFee({ charges }: FeeRecord): PublicCharge[] {
  return charges.map((line) => describeLine(line, { attempt: 0, endpoint_id: '', is_byok: false }));
}

/**
 * The lines of a generation's cost, which add up to it exactly. Lines of attempts with the organization's own credentials add up to the cost
 * there.
 */
export function describeCharges(record: GenerationRecord): PublicCharge[] {
  const { attempts, cost_nano, byok_cost_nano = 0, endpoint_id } = record;
  const lines = [...attempts.flatMap(ofAttempt), ...(record.fees ?? []).flatMap(ofFee)];
  const feeNano = (record.fees ?? []).reduce((sum, fee) => sum + fee.cost_nano, 0);
  // An attempt that was running when the process died has a cost but no lines.
  const open = (isByok: boolean, cost: number): PublicCharge[] => {
    const besideNano = isByok ? 0 : feeNano;
    const known = attempts.reduce(
      (sum, attempt) => sum + (attempt.is_byok === isByok ? attempt.cost_nano : 0),
      besideNano,
    );
    const whose = { attempt: attempts.length + 1, endpoint_id: endpoint_id ?? '', is_byok: isByok };
    return difference(BigInt(cost - known) * ATTO_PER_NANO, whose);
  };
  return [...lines, ...open(false, cost_nano), ...open(true, byok_cost_nano)];
}
