import { type Signal, signal, useSignal } from '@preact/signals';
import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { count, usd } from './format.ts';
import type { Snippet } from './snippets.ts';
import { say, setQuery } from './state.ts';

/** The state of a page's request: loading, its answer, or its failure. */
export interface Loaded<T> {
  value: T | undefined;
  error: string | undefined;
  reload(): void;
}

/**
 * Loads the data of a page, again when `key` changes or after `reload`. The previous data stays until the next arrives;
 * undefined is no data.
 */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T | undefined>, key = ''): Loaded<T> {
  const state = useSignal<{ value: T | undefined; error: string | undefined }>({ value: undefined, error: undefined });
  const turn = useSignal(0);
  const latest = useRef(load);
  latest.current = load;
  const attempt = turn.value;
  useEffect(() => {
    const abort = new AbortController();
    latest.current(abort.signal).then(
      (value) => {
        if (!abort.signal.aborted) state.value = { value, error: undefined };
      },
      (error: unknown) => {
        if (!abort.signal.aborted) state.value = { value: state.peek().value, error: messageOf(error) };
      },
    );
    return () => abort.abort();
  }, [key, attempt]);
  return {
    ...state.value,
    reload() {
      turn.value += 1;
    },
  };
}

/** The sentence of a failure. */
export function messageOf(error: unknown): string {
  if (error instanceof TypeError) return 'The gateway does not answer. Check that it runs, then try again.';
  return error instanceof Error ? error.message : String(error);
}

/** The heading of a page with its actions. */
export function Heading({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <header class="heading">
      <h1 tabIndex={-1}>{title}</h1>
      <div class="actions">{children}</div>
    </header>
  );
}

/** Shows the content once it has arrived, and failures with a button to try again. */
export function Show<T>({ of, children }: { of: Loaded<T>; children: (value: T) => ComponentChildren }) {
  return (
    <>
      {of.error !== undefined && (
        <p class="failure" role="alert">
          {of.error}
          {/[.!?]$/.test(of.error) ? ' ' : '. '}
          <button type="button" class="link" onClick={of.reload}>
            Try again
          </button>
        </p>
      )}
      {of.value !== undefined ? children(of.value) : of.error === undefined && <p class="dim loading">Loading …</p>}
    </>
  );
}

/** Says what to do if a list is empty. */
export function Empty({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="empty">
      <p>
        <strong>{title}</strong>
      </p>
      {children}
    </div>
  );
}

/** An amount; its exact value is in its title. */
export function Money({ usd: amount }: { usd: number }) {
  return (
    <span class="number" title={usd(amount, true)}>
      {usd(amount)}
    </span>
  );
}

/** Copies a text and says so. */
export function Copy({ text, label = 'Copy', hint }: { text: string; label?: string; hint?: string }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say('Copied.');
    } catch {
      say('The browser refused to copy. Select the text and copy it.');
    }
  };
  return (
    <button type="button" class={hint === undefined ? 'small' : undefined} title={hint} onClick={() => void copy()}>
      {label}
    </button>
  );
}

/** A text in a fixed-width font, with a button that copies it. */
export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines scroll, also by keyboard. */}
      <pre tabIndex={0} role="group" aria-label={label}>
        {text}
      </pre>
      <Copy text={text} />
    </div>
  );
}

/** Several texts, one at a time. */
export function Snippets({ of, label }: { of: Snippet[]; label: string }) {
  const chosen = useSignal(0);
  const shown = of[chosen.value];
  return (
    <div class="snippets">
      <fieldset class="tabs">
        <legend class="hidden">{label}</legend>
        {of.map(({ title }, index) => (
          <button
            type="button"
            key={title}
            aria-pressed={index === chosen.value}
            onClick={() => {
              chosen.value = index;
            }}
          >
            {title}
          </button>
        ))}
      </fieldset>
      {shown && <Code text={shown.text} label={`${label}: ${shown.title}`} />}
    </div>
  );
}

/** A modal dialog; Escape and the button in its corner close it. */
export function Dialog({
  title,
  onClose,
  children,
  isWide = false,
  isHigh = false,
  actions,
}: {
  title: string;
  onClose(): void;
  children: ComponentChildren;
  isWide?: boolean;
  /** At the top of the window: its height may change without moving it. */
  isHigh?: boolean;
  /** Beside the title. */
  actions?: ComponentChildren;
}) {
  const element = useRef<HTMLDialogElement>(null);
  // Before the next key press: what a person types right after opening belongs to the dialog.
  useLayoutEffect(() => {
    const opener = document.activeElement;
    element.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return (
    <dialog ref={element} class={isWide ? 'wide' : isHigh ? 'high' : ''} aria-label={title} onClose={onClose}>
      <header>
        <h2>{title}</h2>
        {actions}
        <button type="button" class="quiet" aria-label="Close" onClick={() => element.current?.close()}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  );
}

/** Runs a change of a form or a button once at a time, and keeps its failure. */
export function useAction(run: () => Promise<void>) {
  const error = useSignal<string | undefined>(undefined);
  const isRunning = useSignal(false);
  const start = async () => {
    if (isRunning.value) return;
    isRunning.value = true;
    error.value = undefined;
    try {
      await run();
    } catch (thrown) {
      error.value = messageOf(thrown);
    } finally {
      isRunning.value = false;
    }
  };
  return {
    isRunning: isRunning.value,
    failure:
      error.value === undefined ? undefined : (
        <p class="failure" role="alert">
          {error.value}
        </p>
      ),
    start: (event?: Event) => {
      event?.preventDefault();
      void start();
    },
  };
}

/** A dialog with a form that makes one change: it shows the failure, and runs once at a time. */
export function FormDialog({
  title,
  submit,
  cancel,
  isDanger = cancel !== undefined,
  run,
  onClose,
  children,
}: {
  title: string;
  /** The content of the button that makes the change. */
  submit: ComponentChildren;
  /** The button that changes nothing; without it only the corner closes the dialog. */
  cancel?: string;
  /** Whether the change loses something. */
  isDanger?: boolean;
  run(): Promise<void>;
  onClose(): void;
  children: ComponentChildren;
}) {
  const { start, failure, isRunning } = useAction(run);
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={start}>
        {children}
        {failure}
        <div class="actions">
          {cancel !== undefined && (
            <button type="button" onClick={onClose}>
              {cancel}
            </button>
          )}
          <button type="submit" class={isDanger ? 'danger' : 'primary'} disabled={isRunning}>
            {submit}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** A verb and the name of its object, for the button of a dialog. */
export function VerbAndName({ verb, name }: { verb: string; name: string }) {
  return (
    <>
      {verb} <bdi>{name.slice(0, 40)}</bdi>
    </>
  );
}

/** Asks for confirmation before something is deleted: the text says what is lost, and the button names it. */
export function Confirm({
  verb = 'Delete',
  name,
  ...rest
}: {
  title: string;
  verb?: string;
  name: string;
  run(): Promise<void>;
  onClose(): void;
  children: ComponentChildren;
}) {
  return <FormDialog submit={<VerbAndName verb={verb} name={name} />} cancel="Keep it" {...rest} />;
}

/** The buttons Change and Delete of a record, each with its dialog, which gets a function that closes it. */
export function ChangeAndDelete({
  change,
  remove,
  children,
}: {
  change(close: () => void): VNode;
  /** Not set if the record cannot be deleted; null while it is not known what its deletion would lose. */
  remove?: ((close: () => void) => VNode) | null | undefined;
  /** Between the two buttons. */
  children?: ComponentChildren;
}) {
  const open = useSignal<'change' | 'delete' | undefined>(undefined);
  const close = () => {
    open.value = undefined;
  };
  return (
    <>
      <button
        type="button"
        onClick={() => {
          open.value = 'change';
        }}
      >
        Change
      </button>
      {children}
      {remove !== undefined && (
        <button
          type="button"
          class="danger"
          disabled={remove === null}
          onClick={() => {
            open.value = 'delete';
          }}
        >
          Delete
        </button>
      )}
      {open.value === 'change' && change(close)}
      {open.value === 'delete' && remove?.(close)}
    </>
  );
}

/** The heading of a column. Before its title, `>` aligns the column to the right and `.` hides it; `''` is no title. */
function ColumnHead({ of: title }: { of: string | VNode }) {
  if (title === '') return <td />;
  if (typeof title !== 'string') return <th scope="col">{title}</th>;
  return (
    <th scope="col" class={title.startsWith('>') ? 'right' : undefined}>
      <bdi class={title.startsWith('.') ? 'hidden' : undefined}>{title.replace(/^[>.]/, '')}</bdi>
    </th>
  );
}

/** A table with a caption for screen readers. */
export function Table({
  caption,
  head,
  class: style,
  foot,
  isGrouped = false,
  children,
}: {
  caption: string;
  /** A title for each column, see `ColumnHead`. */
  head: readonly (string | VNode)[];
  class?: string;
  /** The rows below the others. */
  foot?: ComponentChildren;
  /** The children are groups of rows, each a `tbody`. */
  isGrouped?: boolean;
  children: ComponentChildren;
}) {
  return (
    <table class={style}>
      <caption class="hidden">{caption}</caption>
      <thead>
        <tr>
          {head.map((title, index) => (
            <ColumnHead key={index} of={title} />
          ))}
        </tr>
      </thead>
      {isGrouped ? children : <tbody>{children}</tbody>}
      {foot !== undefined && <tfoot>{foot}</tfoot>}
    </table>
  );
}

/** A labelled field of a form. */
export function Field({ label, hint, children }: { label: string; hint?: string; children: ComponentChildren }) {
  return (
    <div class="field">
      {/* biome-ignore lint/a11y/noLabelWithoutControl: the control is a child. */}
      <label>
        <span>{label}</span>
        {children}
      </label>
      {hint !== undefined && <small>{hint}</small>}
    </div>
  );
}

/** A checkbox with its label. */
export function Check({
  checked,
  onChange,
  hint,
  children,
}: {
  checked: boolean;
  onChange(isChecked: boolean): void;
  hint?: string;
  children: ComponentChildren;
}) {
  const label = (style?: string) => (
    <label class={style}>
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} /> {children}
    </label>
  );
  if (hint === undefined) return label('check');
  return (
    <div class="check">
      {label()}
      <small>{hint}</small>
    </div>
  );
}

/** Binds a checkbox to a signal. */
export const bindCheck = (to: Signal<boolean>) => ({
  checked: to.value,
  onChange: (isChecked: boolean) => {
    to.value = isChecked;
  },
});

/** Binds a text field, or a list of choices, to a signal. */
export const bind = (to: Signal<string>) => ({
  value: to.value,
  onInput: (event: Event) => {
    to.value = (event.currentTarget as HTMLInputElement | HTMLSelectElement).value;
  },
});

/** Buttons for the parts of a list. */
export function Pager({
  offset,
  limit,
  total,
  onMove = (next) => setQuery({ offset: next === 0 ? undefined : String(next) }),
}: {
  offset: number;
  limit: number;
  total: number;
  /** If it is not set, the offset is part of the address. */
  onMove?(offset: number): void;
}) {
  if (total <= limit && offset === 0) return <p class="dim">{count(total)} in all</p>;
  return (
    <nav class="pager" aria-label="Parts of the list">
      <button type="button" disabled={offset === 0} onClick={() => onMove(Math.max(0, offset - limit))}>
        Previous
      </button>
      <span class="dim">
        {count(offset + 1)}–{count(Math.min(offset + limit, total))} of {count(total)}
      </span>
      <button type="button" disabled={offset + limit >= total} onClick={() => onMove(offset + limit)}>
        Next
      </button>
    </nav>
  );
}

/** A table that scrolls sideways, also by keyboard. */
export function WideTable({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: wide tables scroll, also by keyboard.
    <section class="wide-table" tabIndex={0} aria-label={label}>
      {children}
    </section>
  );
}

/** A bar of a part of a whole. */
export function Bar({ part, whole, label }: { part: number; whole: number; label: string }) {
  const share = whole <= 0 ? 100 : Math.min(100, (part / whole) * 100);
  return (
    <span class={`bar${share >= 90 ? ' high' : ''}`} role="img" aria-label={label}>
      <span style={{ width: `${share}%` }} />
    </span>
  );
}

/** Whether the command palette is open. */
export const isPaletteOpen = signal(false);
