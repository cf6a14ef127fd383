/** Fields of the playground for long texts. */
import { type Signal, useSignal } from '@preact/signals';
import type { Ref } from 'preact';
import { useId } from 'preact/hooks';
import { count } from '../format.ts';

interface TextProps {
  label: string;
  value: string;
  max: number;
  rows: number;
  onChange(text: string): void;
  hint?: string;
  fault?: string | undefined;
  isCode?: boolean;
  placeholder?: string;
  inputRef?: Ref<HTMLTextAreaElement>;
  onKeyDown?(event: KeyboardEvent): void;
  onPaste?(event: ClipboardEvent): void;
}

/** A field of several lines. It refuses a paste beyond its bound before the browser lays the text out, and says so. */
export function BoundedText({ label, value, max, rows, onChange, hint, fault, isCode, inputRef, ...rest }: TextProps) {
  const id = useId();
  const refused = useSignal<string | undefined>(undefined);
  const bound = (event: InputEvent) => {
    const text = event.data ?? event.dataTransfer?.getData('text/plain') ?? '';
    const field = event.currentTarget as HTMLTextAreaElement;
    const replaced = field.selectionEnd - field.selectionStart;
    if (field.value.length - replaced + text.length <= max) {
      refused.value = undefined;
      return;
    }
    event.preventDefault();
    refused.value = `Not inserted: the text has ${count(text.length)} characters, and this field takes at most ${count(max)} in all.`;
  };
  const shownFault = refused.value ?? fault;
  return (
    <div class="field">
      <label for={id}>
        <span>{label}</span>
      </label>
      <textarea
        {...rest}
        {...(inputRef === undefined ? {} : { ref: inputRef })}
        id={id}
        rows={rows}
        value={value}
        class={isCode ? 'mono' : ''}
        spellcheck={!isCode}
        aria-invalid={shownFault !== undefined}
        aria-describedby={`${id}-hint`}
        onBeforeInput={bound}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      <div id={`${id}-hint`} aria-live="polite">
        {shownFault !== undefined && <p class="failure">{shownFault}</p>}
        {hint !== undefined && <small>{hint}</small>}
      </div>
    </div>
  );
}

/** A field whose text is kept in a signal. */
export const kept = (of: Signal<string>) => ({
  value: of.value,
  onChange: (text: string) => {
    of.value = text;
  },
});

/** The rest of a longer text is shown on demand. */
export const SHOWN_CHARS_MAX = 20_000;
/** A longer text scrolls in its place, so that columns stay beside each other. */
const TALL_CHARS = 3_000;

/** A text of a model or a person, however long. */
export function LongText({ text, label, isCode = false }: { text: string; label: string; isCode?: boolean }) {
  const isWhole = useSignal(false);
  const isCut = text.length > SHOWN_CHARS_MAX && !isWhole.value;
  const shown = isCut ? text.slice(0, SHOWN_CHARS_MAX) : text;
  const isTall = shown.length > TALL_CHARS;
  const scroll = isTall ? { tabIndex: 0, role: 'group' as const, 'aria-label': label } : {};
  return (
    <>
      <div class={`text${isTall ? ' tall' : ''}${isCode ? ' mono' : ''}`} {...scroll}>
        {shown}
      </div>
      {isCut && (
        <p>
          <button
            type="button"
            class="small"
            onClick={() => {
              isWhole.value = true;
            }}
          >
            Show all {count(text.length)} characters
          </button>
        </p>
      )}
    </>
  );
}

/** Moves the focus to the next prompt after a button of the conversation has disappeared. */
export const focusPrompt = (): void =>
  document.querySelector<HTMLElement>('.composer textarea')?.focus({ preventScroll: true });
