import { computed, effect, type Signal, signal } from '@preact/signals';
import { base } from './address.ts';
import type { Session } from './api.gen.ts';
import { call, holdToken } from './api.ts';

/** A page of the console and the query that holds its filters. */
export interface Route {
  page: string;
  query: URLSearchParams;
}

function readRoute(): Route {
  return { page: location.pathname.slice(base.length), query: new URLSearchParams(location.search) };
}

export const route = signal<Route>(readRoute());
addEventListener('popstate', () => {
  route.value = readRoute();
});

/** Opens a page of the console; `replace` for a change of filters, which adds no entry to the history. */
export function go(address: string, { replace = false } = {}): void {
  const url = new URL(address, location.origin + base);
  if (replace) history.replaceState(null, '', url);
  else history.pushState(null, '', url);
  route.value = readRoute();
}

/** Sets a filter of the page in its address; an empty value removes it. */
export function setQuery(changes: Record<string, string | undefined>): void {
  const { page, query } = route.value;
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === '') next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  go(`${page === '' ? './' : page}${text === '' ? '' : `?${text}`}`, { replace: true });
}

/** A text that the browser remembers, read once. */
function remembered(name: string) {
  const read = (): string => {
    try {
      return localStorage.getItem(`gateway-${name}`) ?? '';
    } catch {
      return '';
    }
  };
  const chosen = signal(read());
  effect(() => {
    const { value } = chosen;
    try {
      if (value !== '') localStorage.setItem(`gateway-${name}`, value);
    } catch {
      // The choice then lasts until the page is closed.
    }
  });
  return chosen;
}

/** One of some values that the browser remembers; the first one by default. */
function choice<T extends string>(name: string, values: readonly [T, ...T[]]): Signal<T> {
  const chosen = remembered(name) as Signal<T>;
  if (!values.includes(chosen.value)) chosen.value = values[0];
  return chosen;
}

/** The workspace whose keys a page showed last. */
export const lastWorkspace = remembered('workspace');
export const theme = choice('theme', ['system', 'light', 'dark']);
effect(() => {
  document.documentElement.dataset['theme'] = theme.value;
});
/** How times are shown. */
export const zone = choice('zone', ['UTC', 'local']);
/** Whether money is shown to the nano-dollar. */
export const money = choice('money', ['short', 'exact']);
effect(() => {
  document.documentElement.dataset['money'] = money.value;
});

export const session = signal<Session | undefined>(undefined);
export const isAdmin = computed(() => session.value?.role === 'admin');

/** Loads the session; without one, leads to the sign-in page and back. */
export async function loadSession(): Promise<void> {
  const { data } = await call('getSession', {});
  holdToken(data.form_token);
  session.value = data;
}

/** Ends the session here, or in all browsers. */
export async function signOut(everywhere: boolean): Promise<void> {
  await call('endSession', { query: { everywhere: everywhere ? 'true' : 'false' } });
  location.assign(`${base}sign-in`);
}

/** A short message at the end of the page, also for screen readers. */
export const notice = signal('');
let clearing: ReturnType<typeof setTimeout> | undefined;
export function say(text: string): void {
  notice.value = text;
  clearTimeout(clearing);
  clearing = setTimeout(() => {
    notice.value = '';
  }, 4_000);
}
