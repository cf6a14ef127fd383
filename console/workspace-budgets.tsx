import { useSignal } from '@preact/signals';
import type { SpendingLimit, Workspace } from './api.gen.ts';
import { call } from './api.ts';
import { usd } from './format.ts';
import { LimitBar, limitHref } from './spending.tsx';
import { say } from './state.ts';
import { bind, Confirm, Field, Show, useAction, useLoaded } from './ui.tsx';

const INTERVALS = ['daily', 'weekly', 'monthly', 'lifetime'] as const;

/** The budgets of a workspace with what was spent of them, and a form that sets one. */
export function WorkspaceBudgets({ of }: { of: Workspace }) {
  const budgets = useLoaded(
    (signal) => call('listBudgets', { query: { scope: 'workspace', workspace_id: of.id } }, signal),
    of.id,
  );
  const interval = useSignal<(typeof INTERVALS)[number]>('monthly');
  const limit = useSignal('');
  const set = useAction(async () => {
    await call('putWorkspaceBudget', {
      path: { id: of.id, interval: interval.value },
      body: { limit_usd: Number(limit.value) },
    });
    limit.value = '';
    say('Set.');
    budgets.reload();
  });
  const removed = useSignal<SpendingLimit | undefined>(undefined);
  const close = () => {
    removed.value = undefined;
  };
  const remove = async ({ reset_interval }: SpendingLimit) => {
    await call('deleteWorkspaceBudget', { path: { id: of.id, interval: reset_interval ?? 'lifetime' } });
    close();
    budgets.reload();
  };
  return (
    <section>
      <h2>Budgets</h2>
      {removed.value && (
        <Confirm
          title="Remove this budget?"
          verb="Remove"
          name={`${usd(removed.value.limit)} ${removed.value.reset_interval ?? 'in all'}`}
          run={() => remove(removed.value as SpendingLimit)}
          onClose={close}
        >
          <p>
            The spending of <bdi>{of.name}</bdi> is no longer bounded by it, at once and on every node.
          </p>
        </Confirm>
      )}
      <Show of={budgets}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="dim">No budget: only the limits of keys and credits bound its spending.</p>
          ) : (
            <ul class="rows">
              {data.map((budget) => (
                <li key={budget.reset_interval}>
                  <LimitBar of={budget} href={limitHref(budget)} />
                  <button
                    type="button"
                    class="small danger"
                    aria-label={`Remove the ${budget.reset_interval ?? 'lifetime'} budget`}
                    onClick={() => {
                      removed.value = budget;
                    }}
                  >
                    Remove
                  </button>
                </li>
              ))}
            </ul>
          )
        }
      </Show>
      <form class="inline" onSubmit={set.start}>
        <Field label="Limit in USD">
          <input type="number" min="0" step="any" required {...bind(limit)} />
        </Field>
        <Field label="Window">
          <select
            value={interval.value}
            onChange={(event) => {
              interval.value = event.currentTarget.value as typeof interval.value;
            }}
          >
            {INTERVALS.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </Field>
        <button type="submit" disabled={set.isRunning}>
          Set budget
        </button>
      </form>
      {set.failure}
    </section>
  );
}
