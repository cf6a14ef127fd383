/** One turn of the conversation: what the person sent, and the answers beside each other. */
import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { say } from '../state.ts';
import { Money } from '../ui.tsx';
import { CellView } from './answer.tsx';
import { PROMPT_CHARS_MAX, secret, type Turn, turns } from './draft.ts';
import { BoundedText, focusPrompt, LongText } from './fields.tsx';
import { type Image, megabytes } from './images.ts';
import { costOfTurns, remove, resend } from './run.ts';

export function Images({ of, onRemove }: { of: readonly Image[]; onRemove?(image: Image): void }) {
  if (of.length === 0) return null;
  return (
    <ul class="images" aria-label="Images">
      {of.map((image) => (
        <li key={image.id}>
          <img src={image.url} alt="" />
          <span>
            <bdi>{image.name === '' ? 'pasted image' : image.name}</bdi> <small>{megabytes(image.bytes)}</small>
          </span>
          {onRemove && (
            <button
              type="button"
              class="quiet"
              aria-label={`Remove the image ${image.name === '' ? 'that was pasted' : image.name}`}
              onClick={() => onRemove(image)}
            >
              ✕
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}

function Edit({ of, models, onClose }: { of: Turn; models: readonly string[]; onClose(): void }) {
  const text = useSignal(of.text);
  const field = useRef<HTMLTextAreaElement>(null);
  // Before the next key press: what a person types right after opening belongs to the field.
  useLayoutEffect(() => field.current?.focus(), []);
  const after = turns.value.length - 1 - turns.value.indexOf(of);
  const sendAgain = () => {
    if (text.value.trim() === '' && of.images.length === 0) return say('Write a prompt first.');
    if (secret.value.trim() === '') return say('Enter an API key, or make one.');
    focusPrompt();
    resend(of, text.value, models.length > 0 ? models : of.cells.map(({ model }) => model));
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        sendAgain();
      }}
    >
      <BoundedText
        label="Edit the prompt"
        max={PROMPT_CHARS_MAX}
        rows={3}
        inputRef={field}
        value={text.value}
        onChange={(next) => {
          text.value = next;
        }}
        onKeyDown={(event) => {
          if (event.key === 'Escape') onClose();
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) sendAgain();
        }}
      />
      <div class="actions">
        <span class="dim">
          {after === 0
            ? 'Its answers are replaced.'
            : `Its answers are replaced, and ${after === 1 ? 'the turn' : `the ${after} turns`} after it removed.`}
        </span>
        <button type="button" class="small" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" class="small primary">
          Send again
        </button>
      </div>
    </form>
  );
}

export function TurnView({ of, number, models }: { of: Turn; number: number; models: readonly string[] }) {
  const isEdited = useSignal(false);
  const change = useRef<HTMLButtonElement>(null);
  const start = useRef<HTMLElement>(null);
  useEffect(() => start.current?.scrollIntoView({ block: 'nearest' }), []);
  const cost = costOfTurns([of]);
  const isRunning = of.cells.some(({ steps }) => steps.value.at(-1)?.answer.value.state === 'running');
  return (
    <section class="turn" ref={start} aria-label={`Turn ${number}`}>
      <div class="card prompt">
        <div class="heading">
          <h2>Prompt{number > 1 && ` ${number}`}</h2>
          <div class="actions">
            {!isEdited.value && (
              <button
                type="button"
                class="small"
                ref={change}
                aria-label={`Edit prompt ${number}, or send it again`}
                onClick={() => {
                  isEdited.value = true;
                }}
              >
                Edit
              </button>
            )}
            <button
              type="button"
              class="small danger"
              aria-label={`Remove prompt ${number} and its answers`}
              onClick={() => {
                remove(of);
                say('Removed the prompt and its answers.');
                focusPrompt();
              }}
            >
              Remove
            </button>
          </div>
        </div>
        {isEdited.value ? (
          <Edit
            of={of}
            models={models}
            onClose={() => {
              isEdited.value = false;
              requestAnimationFrame(() => change.current?.focus());
            }}
          />
        ) : (
          <LongText text={of.text} label={`Text of prompt ${number}`} />
        )}
        <Images of={of.images} />
      </div>
      <div class="answers">
        {of.cells.map((cell) => (
          <CellView key={cell.model} of={cell} turn={of} number={number} />
        ))}
      </div>
      {!isRunning && of.cells.length > 1 && cost > 0 && (
        <p class="dim">
          Together <Money usd={cost} />
        </p>
      )}
    </section>
  );
}
