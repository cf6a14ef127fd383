import { effect, signal } from '@preact/signals';
import { type FunctionComponent, render } from 'preact';
import { useEffect } from 'preact/hooks';
import { Palette } from './palette.tsx';
import { go, isAdmin, loadSession, money, notice, route, session, signOut, theme, zone } from './state.ts';
import { isPaletteOpen, messageOf } from './ui.tsx';

type PageModule = { default: FunctionComponent };

/** The pages, in the order of the menu. Each is loaded when it is first opened. */
const PAGES: { path: string; title: string; forAdmins?: boolean; load(): Promise<PageModule> }[] = [
  { path: '', title: 'Overview', load: () => import('./pages/overview.tsx') },
  { path: 'logs', title: 'Logs', load: () => import('./pages/logs.tsx') },
  { path: 'sessions', title: 'Sessions', load: () => import('./pages/sessions.tsx') },
  { path: 'usage', title: 'Usage', load: () => import('./pages/usage.tsx') },
  { path: 'keys', title: 'Keys', load: () => import('./pages/keys.tsx') },
  { path: 'models', title: 'Models', load: () => import('./pages/models.tsx') },
  { path: 'playground', title: 'Playground', load: () => import('./pages/playground.tsx') },
  { path: 'workspaces', title: 'Workspaces', load: () => import('./pages/workspaces.tsx') },
  { path: 'budgets', title: 'Budgets', load: () => import('./pages/budgets.tsx') },
  { path: 'guardrails', title: 'Guardrails', forAdmins: true, load: () => import('./pages/guardrails.tsx') },
  { path: 'routing', title: 'Routing', load: () => import('./pages/routing.tsx') },
  { path: 'credentials', title: 'Credentials', forAdmins: true, load: () => import('./pages/credentials.tsx') },
  { path: 'audit', title: 'Audit', forAdmins: true, load: () => import('./pages/audit.tsx') },
  { path: 'ledger', title: 'Ledger', forAdmins: true, load: () => import('./pages/ledger.tsx') },
  { path: 'system', title: 'System', forAdmins: true, load: () => import('./pages/system.tsx') },
];

/** The page of a path: the overview for an unknown one. */
const pageOf = (path: string) => PAGES.find((page) => page.path === path) ?? PAGES[0];

const shown = signal<{ path: string; Page: FunctionComponent } | undefined>(undefined);
const failure = signal<string | undefined>(undefined);

/** Loads the page of the address, once the person is known. */
effect(() => {
  const { page } = route.value;
  if (session.value === undefined || shown.peek()?.path === page) return;
  const entry = pageOf(page);
  if (entry === undefined) return;
  entry.load().then(
    ({ default: Page }) => {
      // The person may have opened another page meanwhile.
      if (pageOf(route.peek().page) !== entry) return;
      const isFirst = shown.peek() === undefined;
      shown.value = { path: entry.path, Page };
      document.title = `${entry.title} – Model Gateway`;
      // Makes screen readers announce the page.
      if (!isFirst) requestAnimationFrame(() => document.querySelector<HTMLElement>('main h1')?.focus());
    },
    (error: unknown) => {
      failure.value = `${messageOf(error)} Reload the page.`;
    },
  );
});

/** Opens links to pages of the console without loading the document again. */
document.addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const link = (event.target as Element).closest<HTMLAnchorElement>('a[data-page]');
  if (link === null) return;
  event.preventDefault();
  document.getElementById('menu')?.hidePopover?.();
  go(link.href);
});

function MenuLinks() {
  const { page } = route.value;
  return (
    <ul>
      {PAGES.filter(({ forAdmins }) => forAdmins !== true || isAdmin.value).map(({ path, title }) => (
        <li key={path}>
          <a href={path === '' ? './' : path} data-page aria-current={path === page ? 'page' : undefined}>
            {title}
          </a>
        </li>
      ))}
      <li class="apart">
        <a href="docs">API reference</a>
      </li>
    </ul>
  );
}

function Choice<T extends string>({
  label,
  of,
  values,
}: {
  label: string;
  of: { value: T };
  values: readonly [T, string][];
}) {
  return (
    <fieldset class="choice">
      <legend>{label}</legend>
      {values.map(([value, text]) => (
        <button
          type="button"
          key={value}
          aria-pressed={of.value === value}
          onClick={() => {
            of.value = value;
          }}
        >
          {text}
        </button>
      ))}
    </fieldset>
  );
}

function Account() {
  const { user_name = '', user_email = null, role } = session.value ?? {};
  return (
    <>
      <button type="button" class="quiet person" popovertarget="account">
        <bdi>{user_name}</bdi>
      </button>
      <div id="account" popover="auto">
        <p>
          <strong>
            <bdi>{user_name}</bdi>
          </strong>
          <br />
          <span class="dim">
            {user_email !== null && user_email !== user_name && (
              <>
                <bdi>{user_email}</bdi>,{' '}
              </>
            )}
            {role === 'admin' ? 'administrator' : 'member'}
          </span>
        </p>
        <Choice
          label="Theme"
          of={theme}
          values={[
            ['system', 'System'],
            ['light', 'Light'],
            ['dark', 'Dark'],
          ]}
        />
        <Choice
          label="Times"
          of={zone}
          values={[
            ['UTC', 'UTC'],
            ['local', 'Local'],
          ]}
        />
        <Choice
          label="Money"
          of={money}
          values={[
            ['short', 'Short'],
            ['exact', 'To the nano-dollar'],
          ]}
        />
        <div class="actions">
          <button type="button" onClick={() => void signOut(false)}>
            Sign out
          </button>
          <button type="button" onClick={() => void signOut(true)}>
            Sign out everywhere
          </button>
        </div>
      </div>
    </>
  );
}

function App() {
  useEffect(() => {
    loadSession().catch((error: unknown) => {
      failure.value = messageOf(error);
    });
    const onKey = (event: KeyboardEvent) => {
      const isTyping = (event.target as Element).closest?.('input, textarea, select, dialog') !== null;
      const isCommand = event.key === 'k' && (event.ctrlKey || event.metaKey);
      if (!isCommand && (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey)) return;
      event.preventDefault();
      isPaletteOpen.value = true;
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  if (session.value === undefined) {
    return failure.value === undefined ? (
      <p class="dim start">Loading …</p>
    ) : (
      <main>
        <p class="failure" role="alert">
          {failure.value}
        </p>
      </main>
    );
  }
  // A page that is left must not read the query of the next one, which is still being loaded.
  const Page = shown.value?.path === pageOf(route.value.page)?.path ? shown.value?.Page : undefined;
  return (
    <>
      <button type="button" class="skip" onClick={() => document.querySelector<HTMLElement>('main h1')?.focus()}>
        Skip to the content
      </button>
      <header class="top">
        <button type="button" class="quiet menu-button" popovertarget="menu" aria-label="Menu">
          ☰
        </button>
        <a class="brand" href="./" data-page>
          Model Gateway
        </a>
        <button
          type="button"
          class="find"
          onClick={() => {
            isPaletteOpen.value = true;
          }}
        >
          Go to … <kbd>/</kbd>
        </button>
        <Account />
      </header>
      <nav id="menu" class="menu" popover="auto" aria-label="Pages, as a menu">
        <MenuLinks />
      </nav>
      <nav class="side" aria-label="Pages">
        <MenuLinks />
      </nav>
      <main id="content">
        {session.value.is_demo && (
          <p class="demo">
            <strong>Demo.</strong> A month of invented traffic of an invented company; nothing here was spent.
          </p>
        )}
        {failure.value !== undefined && (
          <p class="failure" role="alert">
            {failure.value}
          </p>
        )}
        {Page && <Page />}
      </main>
      {isPaletteOpen.value && <Palette pages={PAGES.filter(({ forAdmins }) => forAdmins !== true || isAdmin.value)} />}
      <p class={`notice${notice.value === '' ? '' : ' shown'}`} role="status">
        {notice.value}
      </p>
    </>
  );
}

const root = document.getElementById('app');
if (root !== null) render(<App />, root);
