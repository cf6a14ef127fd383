import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { call } from './api.ts';
import { dayBefore } from './format.ts';
import { logsOf, usageOf } from './links.tsx';
import { go, money, signOut, theme, zone } from './state.ts';
import { Dialog, isPaletteOpen } from './ui.tsx';

interface Entry {
  title: string;
  kind: string;
  run(): void;
}

/** Pages, actions and models by name; `/` or ctrl-K opens it. */
export function Palette({ pages }: { pages: { path: string; title: string }[] }) {
  const text = useSignal('');
  const at = useSignal(0);
  const models = useSignal<Entry[]>([]);
  const needle = text.value.trim().toLowerCase();
  useEffect(() => {
    if (needle.length < 2) {
      models.value = [];
      return;
    }
    const abort = new AbortController();
    const wait = setTimeout(() => {
      call('listModels', { query: { q: needle, limit: 6 } }, abort.signal).then(
        ({ data }) => {
          models.value = data.map(({ id }) => ({
            title: id,
            kind: 'Model',
            run: () => go(`models?${new URLSearchParams({ id })}`),
          }));
        },
        () => {},
      );
    }, 150);
    return () => {
      clearTimeout(wait);
      abort.abort();
    };
  }, [needle]);
  const entries: Entry[] = [
    ...pages.map(({ path, title }) => ({ title, kind: 'Page', run: () => go(path === '' ? './' : path) })),
    { title: 'Create a key', kind: 'Action', run: () => go('keys?new=1') },
    ...(pages.some(({ path }) => path === 'credentials')
      ? [{ title: 'Add a provider', kind: 'Action', run: () => go('credentials?all=1') }]
      : []),
    ...(pages.some(({ path }) => path === 'guardrails')
      ? [{ title: 'Create a guardrail', kind: 'Action', run: () => go('guardrails?new=1') }]
      : []),
    { title: 'Calls that failed or fell back', kind: 'Action', run: () => go('logs?result=problems') },
    {
      title: 'Spend of yesterday, compared',
      kind: 'Action',
      run: () => go(usageOf({ compare: 'on' }, { from: dayBefore(1), to: dayBefore(1) })),
    },
    {
      title: 'Theme: light',
      kind: 'Setting',
      run: () => {
        theme.value = 'light';
      },
    },
    {
      title: 'Theme: dark',
      kind: 'Setting',
      run: () => {
        theme.value = 'dark';
      },
    },
    {
      title: 'Theme: as the system',
      kind: 'Setting',
      run: () => {
        theme.value = 'system';
      },
    },
    {
      title: zone.value === 'UTC' ? 'Times: local' : 'Times: UTC',
      kind: 'Setting',
      run: () => {
        zone.value = zone.value === 'UTC' ? 'local' : 'UTC';
      },
    },
    {
      title: money.value === 'short' ? 'Money: to the nano-dollar' : 'Money: short',
      kind: 'Setting',
      run: () => {
        money.value = money.value === 'short' ? 'exact' : 'short';
      },
    },
    { title: 'Sign out', kind: 'Action', run: () => void signOut(false) },
    { title: 'Sign out everywhere', kind: 'Action', run: () => void signOut(true) },
  ];
  const words = needle.split(/\s+/);
  const matching = [
    ...entries.filter(({ title }) => words.every((word) => title.toLowerCase().includes(word))),
    ...models.value,
    ...(needle.startsWith('gen-')
      ? [{ title: text.value.trim(), kind: 'Call', run: () => go(logsOf({ id: text.value.trim() })) }]
      : []),
  ];
  const chosen = Math.min(at.value, matching.length - 1);
  const close = () => {
    isPaletteOpen.value = false;
  };
  const run = (entry: Entry | undefined) => {
    if (entry === undefined) return;
    close();
    entry.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') at.value = Math.min(chosen + 1, matching.length - 1);
    else if (event.key === 'ArrowUp') at.value = Math.max(chosen - 1, 0);
    else if (event.key === 'Enter') run(matching[chosen]);
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    document.getElementById(`palette-${chosen}`)?.scrollIntoView({ block: 'nearest' });
  }, [chosen]);
  return (
    <Dialog title="Go to" isHigh onClose={close}>
      <input
        class="palette-input"
        type="text"
        role="combobox"
        aria-label="Page, action or model"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={chosen < 0 ? undefined : `palette-${chosen}`}
        placeholder="Page, action, model or id of a call"
        autocomplete="off"
        autofocus
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          at.value = 0;
        }}
        onKeyDown={onKeyDown}
      />
      <div id="palette-list" role="listbox" aria-label="Matches" class="palette-list">
        {matching.map((entry, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the keys.
          <div
            key={`${entry.kind} ${entry.title}`}
            id={`palette-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            onClick={() => run(entry)}
          >
            <bdi>{entry.title}</bdi> <span class="dim">{entry.kind}</span>
          </div>
        ))}
      </div>
      {matching.length === 0 && <p class="dim">Nothing matches.</p>}
    </Dialog>
  );
}
