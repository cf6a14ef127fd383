import { type Signal, useSignal } from '@preact/signals';
import { useId } from 'preact/hooks';
import type { Key, OrganizationMember, Workspace } from './api.gen.ts';
import { call } from './api.ts';
import { dayBefore } from './format.ts';
import { lastWorkspace, route, setQuery } from './state.ts';
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

/** The names of a list, and the text of one that is not added yet. */
export interface Names {
  added: Signal<string[]>;
  text: Signal<string>;
}

export const useNames = (initial: readonly string[]): Names => ({
  added: useSignal([...initial]),
  text: useSignal(''),
});

/** All names of a list. A name that was written and not added counts: none is lost when the form is sent. */
export function namesOf({ added, text }: Names): string[] {
  const last = text.value.trim();
  return last === '' ? added.value : [...new Set([...added.value, last])];
}

/** A list of names that a person writes one at a time, with suggestions. */
export function NameList({
  label,
  hint,
  names,
  suggest,
}: {
  label: string;
  hint: string;
  names: Names;
  suggest(text: string, signal: AbortSignal): Promise<Suggestion[]>;
}) {
  const id = useId();
  const { added, text } = names;
  const q = text.value.trim();
  const suggestions = useLoaded((signal) => suggest(q, signal), q);
  const add = () => {
    if (q === '') return;
    added.value = namesOf(names);
    text.value = '';
  };
  return (
    <div class="names">
      {added.value.length > 0 && (
        <ul class="chips" aria-label={`${label}, added`}>
          {added.value.map((name) => (
            <li key={name}>
              <bdi>{name}</bdi>
              <button
                type="button"
                class="quiet"
                aria-label={`Remove ${name} from ${label}`}
                onClick={() => {
                  added.value = added.value.filter((one) => one !== name);
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

/** The workspace with the most calls of the last 30 days, of those that the person sees. */
async function busiestWorkspace(signal: AbortSignal): Promise<string | undefined> {
  const time_range = { start: `${dayBefore(30)}T00:00:00Z`, end: `${dayBefore(-1)}T00:00:00Z` };
  const order_by = { field: 'request_count', direction: 'desc' as const };
  const body = {
    metrics: ['request_count' as const],
    dimensions: ['workspace' as const],
    time_range,
    order_by,
    limit: 1,
  };
  const { data } = await call('queryAnalytics', { body }, signal);
  const id = (data.data[0] as { workspace?: string } | undefined)?.workspace;
  return id;
}

/**
 * The workspaces, and the one that a page is about: that of the address, else the one that was chosen last in this browser, else the one with
 * the most calls, else the default one. Its id is undefined until it is known. `choose` sets the address.
 */
export function useWorkspace(parameter: 'workspace' | 'of') {
  const named = route.value.query.get(parameter) ?? '';
  const loaded = useLoaded(async (signal) => {
    const { data: all } = await call('listWorkspaces', { query: { limit: OFFERED_MAX } }, signal);
    const exists = (id: string | undefined) => all.some((one) => one.id === id);
    const last = lastWorkspace.peek();
    const busiest = named !== '' || exists(last) || all.length < 2 ? undefined : await busiestWorkspace(signal);
    return { all, start: [last, busiest].find(exists) ?? all[0]?.id ?? '' };
  });
  return {
    loaded,
    all: loaded.value?.all ?? [],
    id: named === '' ? loaded.value?.start : named,
    choose(id: string, changes: Record<string, undefined>) {
      lastWorkspace.value = id;
      setQuery({ [parameter]: id, ...changes });
    },
  };
}

/** Chooses one of the workspaces. */
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
      {of.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
  );
}

/** The keys of a workspace to choose from. */
export const loadKeys = async (workspace: string | undefined, signal: AbortSignal) =>
  workspace === undefined
    ? undefined
    : call(
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
