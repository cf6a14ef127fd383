import { useSignal } from '@preact/signals';
import type { Workspace } from './api.gen.ts';
import { call } from './api.ts';
import { count } from './format.ts';
import { OFFERED_MAX } from './pickers.tsx';
import { say } from './state.ts';
import { bind, Confirm, Field, FormDialog, Show, useLoaded } from './ui.tsx';

/** How many names of a kind are shown before something is deleted. */
const NAMED_MAX = 5;

/** A slug made of a name. */
const slugOf = (name: string) =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');

/** Creates a workspace, or changes one. */
export function EditWorkspace({ of, onClose, onDone }: { of?: Workspace; onClose(): void; onDone(id: string): void }) {
  const name = useSignal(of?.name ?? '');
  const slug = useSignal(of?.slug ?? '');
  const description = useSignal(of?.description ?? '');
  const model = useSignal(of?.default_text_model ?? '');
  // The slug of the default workspace is fixed.
  const hasSlug = of?.slug !== 'default';
  const save = async () => {
    const body = {
      name: name.value,
      ...(hasSlug ? { slug: slug.value } : {}),
      description: description.value.trim() || null,
      default_text_model: model.value.trim() || null,
    };
    const { data } =
      of === undefined
        ? await call('createWorkspace', { body: { ...body, slug: slug.value } })
        : await call('updateWorkspace', { path: { id: of.id }, body });
    say(of === undefined ? 'Created.' : 'Saved.');
    onDone(data.id);
  };
  return (
    <FormDialog
      title={of === undefined ? 'Create a workspace' : 'Change the workspace'}
      submit={of === undefined ? 'Create workspace' : 'Save'}
      run={save}
      onClose={onClose}
    >
      <Field label="Name">
        <input
          type="text"
          required
          maxLength={100}
          autocomplete="off"
          autofocus
          value={name.value}
          onInput={(event) => {
            const next = event.currentTarget.value;
            if (of === undefined && slug.value === slugOf(name.value)) slug.value = slugOf(next);
            name.value = next;
          }}
        />
      </Field>
      {hasSlug && (
        <Field label="Slug" hint="Its name in paths of the API">
          <input type="text" required autocomplete="off" {...bind(slug)} />
        </Field>
      )}
      <Field label="Description">
        <input type="text" maxLength={500} autocomplete="off" {...bind(description)} />
      </Field>
      <Field label="Default model" hint="For requests that name none; empty: that of the gateway">
        <input type="text" autocomplete="off" {...bind(model)} />
      </Field>
    </FormDialog>
  );
}

/** What ends with a workspace, each by its name. */
async function loadContents(
  id: string,
  signal: AbortSignal,
): Promise<{ kind: string; names: string[]; total: number }[]> {
  const query = { workspace_id: id, limit: NAMED_MAX };
  const [keys, guardrails, credentials] = await Promise.all([
    call('listKeys', { query: { workspace_id: id, limit: OFFERED_MAX, include_disabled: 'true' } }, signal),
    call('listGuardrails', { query }, signal),
    call('listByok', { query }, signal),
  ]);
  const named = (kind: string, names: string[], total = names.length) => ({
    kind,
    names: names.slice(0, NAMED_MAX),
    total,
  });
  return [
    named(
      'Keys',
      keys.data.map(({ name }) => name),
    ),
    named(
      'Guardrails',
      guardrails.data.map(({ name }) => name),
      guardrails.total_count,
    ),
    named(
      'Credentials of own accounts',
      credentials.data.map(({ name, label }) => name ?? label),
      credentials.total_count,
    ),
  ].filter(({ total }) => total > 0);
}

/** Deletes a workspace after it has named what ends with it. */
export function DeleteWorkspace({ of, onClose, onDone }: { of: Workspace; onClose(): void; onDone(): void }) {
  const contents = useLoaded((signal) => loadContents(of.id, signal), of.id);
  const run = async () => {
    await call('deleteWorkspace', { path: { id: of.id } });
    say('Deleted.');
    onDone();
  };
  return (
    <Confirm title="Delete this workspace?" name={of.name} run={run} onClose={onClose}>
      <p>
        <strong>
          <bdi>{of.name}</bdi>
        </strong>{' '}
        (<code>{of.slug}</code>) is deleted with its memberships, its budgets and all of the following. Its calls and
        what they cost stay in the accounts. This cannot be undone.
      </p>
      <Show of={contents}>
        {(kinds) =>
          kinds.length === 0 ? (
            <p>It has no key, no guardrail and no credential.</p>
          ) : (
            <ul>
              {kinds.map(({ kind, names, total }) => (
                <li key={kind}>
                  {kind}: <bdi>{names.join(', ')}</bdi>
                  {total > names.length && ` and ${count(total - names.length)} more`}
                </li>
              ))}
            </ul>
          )
        }
      </Show>
      <p class="dim">A workspace with a key in use is not deleted: disable or delete its keys first.</p>
    </Confirm>
  );
}
