import { type Signal, useSignal } from '@preact/signals';
import { useId } from 'preact/hooks';
import type { Key, OrganizationMember, Workspace } from './api.gen.ts';
import { call } from './api.ts';
import { bind, Field, useLoaded } from './ui.tsx';

/** How many names of a list are offered at once. */
export const OFFERED_MAX = 100;

interface Suggestion {
  value: string;
  title: string;
}

/** Models whose id or name contains a text. */
export const suggestModels = async (q: string, signal: AbortSignal): Promise<Suggestion[]> => {
  const { data } = await call('listModels', { query: { limit: 50, ...(q === '' ? {} : { q }) } }, signal);
  return data.map(({ id, name }) => ({ value: id, title: name }));
};

/** All providers. */
export const suggestProviders = async (_: string, signal: AbortSignal): Promise<Suggestion[]> => {
  const { data } = await call('listProviders', {}, signal);
  return data.map(({ slug, name }) => ({ value: slug, title: name }));
};

/** A list of names that a person writes one at a time, with suggestions. */
export function NameList({
  label,
  hint,
  names,
  suggest,
}: {
  label: string;
  hint: string;
  names: Signal<string[]>;
  suggest(text: string, signal: AbortSignal): Promise<Suggestion[]>;
}) {
  const id = useId();
  const text = useSignal('');
  const q = text.value.trim();
  const suggestions = useLoaded((signal) => suggest(q, signal), q);
  // Also when the field is left, so that no name is lost that was written and not added.
  const add = () => {
    if (q === '') return;
    if (!names.value.includes(q)) names.value = [...names.value, q];
    text.value = '';
  };
  return (
    <div class="names">
      {names.value.length > 0 && (
        <ul class="chips" aria-label={label}>
          {names.value.map((name) => (
            <li key={name}>
              <bdi>{name}</bdi>
              <button
                type="button"
                class="quiet"
                aria-label={`Remove ${name} from ${label}`}
                onClick={() => {
                  names.value = names.value.filter((one) => one !== name);
                }}
              >
                ✕
              </button>
            </li>
          ))}
        </ul>
      )}
      <div class="inline">
        <Field label={label} hint={hint}>
          <input
            list={id}
            autocomplete="off"
            {...bind(text)}
            onBlur={add}
            onKeyDown={(event) => {
              if (event.key !== 'Enter' || q === '') return;
              event.preventDefault();
              add();
            }}
          />
        </Field>
        <button type="button" aria-label={`Add to ${label}`} disabled={q === ''} onClick={add}>
          Add
        </button>
      </div>
      <datalist id={id}>
        {(suggestions.value ?? []).map(({ value, title }) => (
          <option key={value} value={value}>
            {title}
          </option>
        ))}
      </datalist>
    </div>
  );
}

/** How a person is named: by the address, else by name. */
export const personName = ({ email, first_name, last_name, id }: OrganizationMember) =>
  email || [first_name, last_name].filter(Boolean).join(' ') || `${id.slice(0, 8)}…`;

/** Chooses one of the workspaces; the first is the default one. */
export function WorkspaceSelect({
  of,
  value,
  label = 'Workspace',
  onChoose,
}: {
  of: Workspace[];
  value: string;
  label?: string;
  onChoose(id: string): void;
}) {
  return (
    <select aria-label={label} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
      {of.map(({ id, name }, index) => (
        <option key={id} value={index === 0 ? '' : id}>
          {name}
        </option>
      ))}
    </select>
  );
}

/** The keys of a workspace to choose from. */
export const loadKeys = (workspace: string, signal: AbortSignal) =>
  call(
    'listKeys',
    {
      query: {
        include_disabled: 'true',
        limit: OFFERED_MAX,
        ...(workspace === '' ? {} : { workspace_id: workspace }),
      },
    },
    signal,
  );

/** Chooses one of some keys. */
export function KeySelect({ of, value, onChoose }: { of: Key[]; value: string; onChoose(hash: string): void }) {
  return (
    <select value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
      <option value="">Choose a key</option>
      {of.map(({ hash, name, label }) => (
        <option key={hash} value={hash}>
          {`${name} (${label})`}
        </option>
      ))}
    </select>
  );
}
