import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { describeStores } from '../../test/ledger/store-variants.ts';
import { BulkStatement, transact } from './bulk.ts';

describeStores('a transaction of bulk statements', ({ open }) => {
  // A node that stops returns every window of its budgets in one batch, whatever their number.
  test('returns more rows than a call takes as arguments', async () => {
    const { queries } = await open();
    const many = new BulkStatement<{ at: number }, { n: number }>((tx) =>
      sql`SELECT n FROM (
        WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 150000)
        SELECT n FROM t) AS numbers WHERE n > CAST(${0} AS BIGINT)`.compile(tx),
    );
    const step = many.step([{ at: 0 }]);
    expect(await transact(queries, [step])).toBeUndefined();
    expect(step.answers).toHaveLength(150_000);
    expect(step.answers.at(-1)).toEqual({ n: 150_000 });
  });
});
