import { type Signal, useSignal } from '@preact/signals';
import type { Key, Workspace } from './api.gen.ts';
import { call } from './api.ts';
import { ago } from './format.ts';
import { WorkspaceSelect } from './pickers.tsx';
import { WINDOWS } from './spending.tsx';
import { say } from './state.ts';
import { bind, bindCheck, Check, Confirm, Field, FormDialog, Money, messageOf } from './ui.tsx';

function LimitFields({ limit, reset, byok }: { limit: Signal<string>; reset: Signal<string>; byok: Signal<boolean> }) {
  return (
    <div class="row limit-fields">
      <Field label="Limit in USD" hint="Empty: no limit of its own">
        <input type="number" min="0" step="any" inputMode="decimal" {...bind(limit)} />
      </Field>
      <Field label="Reset">
        <select {...bind(reset)}>
          <option value="">never</option>
          <option value="daily">daily</option>
          <option value="weekly">weekly</option>
          <option value="monthly">monthly</option>
        </select>
      </Field>
      <p class="dim">
        {limit.value.trim() === '' ? (
          'It may spend what its workspace, its guardrails and the credits allow.'
        ) : (
          <>
            It may spend at most <Money usd={Number(limit.value)} />{' '}
            {reset.value === '' ? 'in all' : `${WINDOWS[reset.value as keyof typeof WINDOWS]}, from midnight UTC`}.
          </>
        )}
      </p>
      {limit.value.trim() !== '' && (
        <Check {...bindCheck(byok)}>What calls cost at own provider accounts counts as well</Check>
      )}
    </div>
  );
}

const limitOf = (text: string) => (text.trim() === '' ? null : Number(text));
const resetOf = (text: string) => (text === '' ? null : (text as keyof typeof WINDOWS));

/** Creates a key. */
export function CreateKey({
  workspaces,
  workspace: initial,
  onClose,
  onMade,
}: {
  workspaces: Workspace[];
  workspace: string;
  onClose(): void;
  onMade(made: { name: string; secret: string }): void;
}) {
  const name = useSignal('');
  const limit = useSignal('');
  const reset = useSignal('');
  const byok = useSignal(false);
  const expires = useSignal('');
  const workspace = useSignal(initial);
  const create = async () => {
    const made = await call('createKey', {
      body: {
        name: name.value,
        limit: limitOf(limit.value),
        limit_reset: resetOf(reset.value),
        include_byok_in_limit: byok.value,
        ...(expires.value === '' ? {} : { expires_at: new Date(expires.value).toISOString() }),
        ...(workspace.value === '' ? {} : { workspace_id: workspace.value }),
      },
    });
    onMade({ name: made.data.name, secret: made.key });
  };
  return (
    <FormDialog title="Create a key" submit="Create key" run={create} onClose={onClose}>
      <Field label="Name" hint="What will use the key, such as “laptop” or “nightly job”">
        <input type="text" required maxLength={200} autofocus autocomplete="off" {...bind(name)} />
      </Field>
      <LimitFields limit={limit} reset={reset} byok={byok} />
      <Field label="Expires" hint="Your local time; empty: never">
        <input type="datetime-local" {...bind(expires)} />
      </Field>
      {workspaces.length > 1 && (
        <Field label="Workspace">
          <WorkspaceSelect
            of={workspaces}
            value={workspace.value}
            onChoose={(id) => {
              workspace.value = id;
            }}
          />
        </Field>
      )}
    </FormDialog>
  );
}

/** Changes the name and the limit of a key. */
export function EditKey({ of, onClose, onDone }: { of: Key; onClose(): void; onDone(): void }) {
  const name = useSignal(of.name);
  const limit = useSignal(of.limit === null ? '' : String(of.limit));
  const reset = useSignal<string>(of.limit_reset ?? '');
  const byok = useSignal(of.include_byok_in_limit);
  const save = async () => {
    await call('updateKey', {
      path: { hash: of.hash },
      body: {
        name: name.value,
        limit: limitOf(limit.value),
        limit_reset: resetOf(reset.value),
        include_byok_in_limit: byok.value,
      },
    });
    say('Saved.');
    onDone();
  };
  return (
    <FormDialog title="Change the key" submit="Save" run={save} onClose={onClose}>
      <Field label="Name">
        <input type="text" required maxLength={200} autocomplete="off" {...bind(name)} />
      </Field>
      <LimitFields limit={limit} reset={reset} byok={byok} />
    </FormDialog>
  );
}

/** Deletes a key after the dialog has named it. */
export function DeleteKey({ of, onClose, onDone }: { of: Key; onClose(): void; onDone(): void }) {
  const run = async () => {
    await call('deleteKey', { path: { hash: of.hash } });
    say('Deleted.');
    onDone();
  };
  return (
    <Confirm title="Delete this key?" name={of.name} run={run} onClose={onClose}>
      <p>
        <strong>
          <bdi>{of.name}</bdi>
        </strong>{' '}
        (<code>{of.label}</code>) stops working at once, on every node. So do all keys that applications made with it.
        This cannot be undone.
      </p>
      <p>
        Its usage of <Money usd={of.usage} /> stays in the accounts
        {of.last_used_at === null ? '. It was never used.' : <>. It was last used {ago(of.last_used_at)}.</>}
      </p>
    </Confirm>
  );
}

/** Disables a key, or enables it again, and says so. */
export async function turnKey(of: Key): Promise<void> {
  try {
    await call('updateKey', { path: { hash: of.hash }, body: { disabled: !of.disabled } });
    say(of.disabled ? 'Enabled.' : 'Disabled: its calls are refused.');
  } catch (error) {
    say(messageOf(error));
  }
}
