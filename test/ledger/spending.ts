import { subjectsOf } from '../../src/accounts/budget.ts';
import type { Charged, GenerationRecord } from '../../src/ledger/records.ts';
import { toSettle } from '../../src/ledger/settle.ts';
import { windowStart } from '../../src/schemas/budget.ts';
import { budgetStore } from '../../src/storage/budgets.ts';
import type { Database } from '../../src/storage/database.ts';
import { ledgerStore } from '../../src/storage/ledger.ts';
import { generation } from '../generation-fixture.ts';
import { registerNode } from './registered-node.ts';

type Payment = Partial<GenerationRecord> & { id: string };

/** The budgets in force that a generation counts against, and its charges to them, as a node computes them. */
async function chargesOf({ queries }: Pick<Database, 'queries'>, record: GenerationRecord): Promise<Charged[]> {
  const { organization_id, workspace_id, key_hash, user_id = null, cost_nano, byok_cost_nano = 0 } = record;
  const subjects = subjectsOf({ organization_id, workspace_id, key_hash, user_id });
  const budgets = await budgetStore(queries).findBySubjects(subjects);
  return budgets.map(({ id, reset_interval, include_byok }) => ({
    budget_id: id,
    window_start: windowStart(reset_interval, Date.parse(record.created_at)),
    amount: cost_nano + (include_byok ? byok_cost_nano : 0),
    cover: 0,
  }));
}

/**
 * A node that settles scripted charges without leases, to the budgets in force at that moment. `byok_cost_nano` alone
 * makes a generation on the organization's own account.
 */
export async function spendingNode(database: Database, node = 'spender') {
  const ledger = ledgerStore(database.queries, database.engine);
  const { epoch } = await registerNode(ledger, node);
  let number = 0;
  return async (...payments: Payment[]): Promise<void> => {
    number += 1;
    const settles = await Promise.all(
      payments.map(async (payment) => {
        const own = payment.byok_cost_nano ?? 0;
        const paid = own > 0 ? { cost_nano: 0, upstream_cost_nano: own, is_byok: true } : { cost_nano: 0 };
        const record = generation({ ...paid, ...payment });
        return toSettle(record, await chargesOf(database, record));
      }),
    );
    const names = new Map(
      settles.flatMap(({ charges }) => charges.map((charge) => [`${charge.budget_id} ${charge.window_start}`, charge])),
    );
    const windows = [...names.values()].map(({ budget_id, window_start }) => {
      const nothing = { own: 0, returned: 0, need: 0, want: 0, slack: 0, withdraws: false };
      return { budget_id, window_start, is_new: true, ...nothing };
    });
    const answer = await ledger.settle({ node, epoch, number, at: 2, settles, windows, divisor: 2 });
    if (answer.is !== 'applied') throw new Error(`the batch was not applied: ${answer.is}`);
  };
}
