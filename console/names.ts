import { call } from './api.ts';
import { isAdmin, session } from './state.ts';
import { useLoaded } from './ui.tsx';

/** Workspaces whose keys are named. Other keys are shown by the beginning of their hash. */
const WORKSPACES_NAMED_MAX = 20;

/** The names of keys, and of members for administrators; an id that has none is shown by its beginning. */
export function useNames() {
  const hasUsers = isAdmin.value;
  const { user_id, user_name } = session.value ?? {};
  const loaded = useLoaded(async (abort) => {
    const { data: workspaces } = await call('listWorkspaces', { query: { limit: WORKSPACES_NAMED_MAX } }, abort);
    const lists = workspaces.map(({ id }) =>
      call('listKeys', { query: { workspace_id: id, include_disabled: 'true', limit: 100 } }, abort),
    );
    return { workspaces, keys: (await Promise.all(lists)).flatMap(({ data }) => data) };
  });
  const users = useLoaded(
    async (abort) => (hasUsers ? call('listOrganizationMembers', { query: { limit: 100 } }, abort) : undefined),
    String(hasUsers),
  );
  const names = {
    key: new Map((loaded.value?.keys ?? []).map(({ hash, name }) => [hash, name])),
    user: new Map(
      (users.value?.data ?? []).map(({ id, email, first_name, last_name }) => [
        id,
        email || [first_name, last_name].filter(Boolean).join(' ') || (id === user_id && user_name) || id.slice(0, 8),
      ]),
    ),
  };
  if (user_id !== undefined && user_name && !names.user.has(user_id)) names.user.set(user_id, user_name);
  const of = (kind: 'key' | 'user', id: string): string => names[kind].get(id) ?? `${id.slice(0, 12)}…`;
  return {
    hasUsers,
    workspaces: loaded.value?.workspaces ?? [],
    of,
    /** The choices of a filter; with the one that is set, also if it is not in the list. */
    options: (kind: 'key' | 'user', set: string | null): [id: string, name: string][] => [
      ...names[kind],
      ...(set && !names[kind].has(set) ? [[set, of(kind, set)] as [string, string]] : []),
    ],
  };
}
