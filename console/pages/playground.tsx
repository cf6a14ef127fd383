import { useSignal } from '@preact/signals';
import { useRef, useState } from 'preact/hooks';
import { home } from '../address.ts';
import { call } from '../api.ts';
import {
  hasPrompt,
  images,
  PROMPT_CHARS_MAX,
  prompt,
  schemaFault,
  secret,
  shownBody,
  toolsFault,
  turns,
} from '../playground/draft.ts';
import { Estimates } from '../playground/estimate.tsx';
import { BoundedText, focusPrompt, kept } from '../playground/fields.tsx';
import { type Image, imageFaults, readImages } from '../playground/images.ts';
import { restore } from '../playground/restore.ts';
import { clear, costOfTurns, isRunning, send, stop } from '../playground/run.ts';
import { ModelNotes, Settings } from '../playground/settings.tsx';
import { Images, TurnView } from '../playground/turn.tsx';
import { takeDraft } from '../replay.ts';
import { requests } from '../snippets.ts';
import { go, route, say, setQuery } from '../state.ts';
import { bind, Code, Dialog, Field, Heading, Money, Snippets, useAction, useLoaded } from '../ui.tsx';

const MODELS_MAX = 4;

/** The models in the address of the page. */
const chosenModels = (): string[] =>
  (route.value.query.get('models') ?? '')
    .split(',')
    .filter((id, index, all) => id !== '' && all.indexOf(id) === index)
    .slice(0, MODELS_MAX);

function KeyField() {
  const make = useAction(async () => {
    const expires = new Date(Date.now() + 3_600_000).toISOString();
    const made = await call('createKey', { body: { name: 'Playground', limit: 1, expires_at: expires } });
    secret.value = made.key;
    say('Made a key with a limit of $1 that expires in an hour.');
  });
  return (
    <div class="key-field">
      <Field
        label="API key"
        hint="Calls count against this key's limits and guardrails. It stays in this tab's memory."
      >
        <input type="password" autocomplete="off" spellcheck={false} placeholder="sk-gw-…" {...bind(secret)} />
      </Field>
      <button type="button" disabled={make.isRunning} onClick={make.start}>
        Make a $1 key for an hour
      </button>
      {make.failure}
    </div>
  );
}

function ModelPicker({ chosen, onChange }: { chosen: string[]; onChange(models: string[]): void }) {
  const text = useSignal('');
  const q = text.value.trim();
  const models = useLoaded(
    (abort) => call('listModels', { query: { limit: 50, ...(q === '' ? {} : { q }) } }, abort),
    q,
  );
  const add = useAction(async () => {
    const wanted = text.value.trim();
    if (wanted === '') return;
    // The list may still be that of a shorter text, whose first model is another one.
    const { data } = await call('listModels', { query: { limit: 50, q: wanted } });
    const model = data.find(({ id }) => id === wanted) ?? data[0];
    if (model === undefined) throw new Error(`No model matches ${wanted}.`);
    if (text.value.trim() === wanted) text.value = '';
    const now = chosenModels();
    if (!now.includes(model.id)) onChange([...now, model.id]);
  });
  return (
    <div class="picker">
      {chosen.length < MODELS_MAX && (
        <form onSubmit={add.start}>
          <Field label={chosen.length === 0 ? 'Model' : 'Compare with'}>
            <input
              list="playground-models"
              placeholder="Type to search"
              autocomplete="off"
              {...bind(text)}
              onChange={() => {
                // A whole id needs no further step: it was chosen from the list, or written before another field.
                if (models.value?.data.some(({ id }) => id === text.value.trim())) add.start();
              }}
            />
          </Field>
          <datalist id="playground-models">
            {(models.value?.data ?? []).map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </datalist>
          <button type="submit">Add</button>
        </form>
      )}
      {add.failure}
      <ul class="chips" aria-label="Chosen models">
        {chosen.map((id) => (
          <li key={id}>
            <bdi>{id}</bdi>
            <button
              type="button"
              class="quiet"
              aria-label={`Remove ${id}`}
              onClick={() => onChange(chosen.filter((one) => one !== id))}
            >
              ✕
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The request as code: for each of the chosen models. */
function CodeDialog({ models, onClose }: { models: readonly string[]; onClose(): void }) {
  const chosen = useSignal(models[0] ?? '');
  return (
    <Dialog title="This request as code" isWide onClose={onClose}>
      {models.length > 1 && (
        <Field label="For the model">
          <select {...bind(chosen)}>
            {models.map((id) => (
              <option key={id}>{id}</option>
            ))}
          </select>
        </Field>
      )}
      {[toolsFault.value, schemaFault.value].map(
        (fault) =>
          fault !== undefined && (
            <p class="failure" key={fault}>
              Left out of the code. {fault}
            </p>
          ),
      )}
      <Snippets of={requests(home, shownBody(chosen.value))} label="Request" />
      <h3>The key</h3>
      <Code text="export GATEWAY_KEY=sk-gw-…" label="Key" />
    </Dialog>
  );
}

const bytesOf = (of: readonly Image[]) => of.reduce((sum, { bytes }) => sum + bytes, 0);

/** The reason why the prompt cannot be sent, and the field to correct. */
function missingFor(models: readonly string[]): { message: string; field: string } | undefined {
  if (isRunning()) return { message: 'Wait for the answers, or stop them.', field: '.composer textarea' };
  if (models.length === 0) return { message: 'Add a model first.', field: '.picker input' };
  if (!hasPrompt()) return { message: 'Write a prompt first.', field: '.composer textarea' };
  const fault = toolsFault.value ?? schemaFault.value;
  if (fault !== undefined) return { message: fault, field: '.settings [aria-invalid="true"]' };
  if (secret.value.trim() === '') return { message: 'Enter an API key, or make one.', field: '.key-field input' };
  return undefined;
}

function Composer({ models }: { models: readonly string[] }) {
  const files = useRef<HTMLInputElement>(null);
  const isOver = useSignal(false);
  const hasRunning = isRunning();
  const isReady = models.length > 0 && hasPrompt();
  const add = async (list: FileList | null | undefined) => {
    const used = bytesOf(images.value) + turns.value.reduce((sum, turn) => sum + bytesOf(turn.images), 0);
    images.value = [...images.value, ...(await readImages([...(list ?? [])], images.value, used))];
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const missing = missingFor(models);
    if (missing !== undefined) {
      say(missing.message);
      const field = document.querySelector<HTMLElement>(missing.field);
      field?.closest('details')?.setAttribute('open', '');
      field?.focus();
      return;
    }
    imageFaults.value = [];
    send(models);
  };
  return (
    <form
      class={`card composer${isOver.value ? ' over' : ''}`}
      aria-label="Next prompt"
      onSubmit={submit}
      onDragOver={(event) => {
        if (!event.dataTransfer?.types.includes('Files')) return;
        event.preventDefault();
        isOver.value = true;
      }}
      onDragLeave={() => {
        isOver.value = false;
      }}
      onDrop={(event) => {
        isOver.value = false;
        if (!event.dataTransfer?.files.length) return;
        event.preventDefault();
        void add(event.dataTransfer.files);
      }}
    >
      <BoundedText
        label="Prompt"
        hint="Ctrl-Enter sends. Images: paste them, drop them here, or choose files."
        max={PROMPT_CHARS_MAX}
        rows={4}
        {...kept(prompt)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit(event);
        }}
        onPaste={(event) => {
          if (!event.clipboardData?.files.length) return;
          event.preventDefault();
          void add(event.clipboardData.files);
        }}
      />
      <Images
        of={images.value}
        onRemove={(image) => {
          images.value = images.value.filter((one) => one !== image);
          imageFaults.value = [];
          focusPrompt();
        }}
      />
      <div aria-live="polite">
        {imageFaults.value.map((fault) => (
          <p class="failure" key={fault}>
            <bdi>{fault}</bdi>
          </p>
        ))}
      </div>
      <Estimates models={models} />
      <span class="hidden" role="status">
        {hasRunning ? 'The models answer.' : turns.value.length > 0 && 'The answers are complete.'}
      </span>
      <div class="actions">
        <input
          ref={files}
          type="file"
          hidden
          multiple
          accept="image/png,image/jpeg,image/webp,image/gif"
          onChange={(event) => {
            void add(event.currentTarget.files);
            // The same file can then be chosen once more.
            event.currentTarget.value = '';
          }}
        />
        <button type="button" onClick={() => files.current?.click()}>
          Add images
        </button>
        {hasRunning ? (
          <button type="button" onClick={stop}>
            {models.length > 1 ? 'Stop all' : 'Stop'}
          </button>
        ) : (
          <button type="submit" class="primary" disabled={!isReady}>
            {models.length > 1 ? `Send to ${models.length} models` : 'Send'}
          </button>
        )}
        {models.length === 0 && (
          <span class="dim">
            Add a model first.{' '}
            <button type="button" class="link" onClick={() => go('models')}>
              See all models
            </button>
          </span>
        )}
      </div>
    </form>
  );
}

function ConversationCost() {
  const total = costOfTurns(turns.value);
  return turns.value.length > 1 && total > 0 ? (
    <p class="dim">
      The conversation cost <Money usd={total} />
    </p>
  ) : null;
}

export default function Playground() {
  const chosen = chosenModels();
  const isCode = useSignal(false);
  // A call to replay.
  useState(() => {
    const draft = takeDraft();
    if (draft !== undefined) restore(draft);
  });
  return (
    <>
      <Heading title="Playground">
        {turns.value.length > 0 && (
          <button
            type="button"
            onClick={() => {
              clear();
              focusPrompt();
            }}
          >
            New conversation
          </button>
        )}
        <button
          type="button"
          disabled={chosen.length === 0 || (!hasPrompt() && turns.value.length === 0)}
          onClick={() => {
            isCode.value = true;
          }}
        >
          Code
        </button>
      </Heading>
      <div class="playground">
        <div class="setup">
          <KeyField />
          <ModelPicker chosen={chosen} onChange={(models) => setQuery({ models: models.join(',') })} />
        </div>
        {chosen.map((id) => (
          <ModelNotes key={id} of={id} />
        ))}
        <Settings />
        {turns.value.map((turn, index) => (
          <TurnView key={turn.id} of={turn} number={index + 1} models={chosen} />
        ))}
        <ConversationCost />
        <Composer models={chosen} />
      </div>
      {isCode.value && (
        <CodeDialog
          models={chosen}
          onClose={() => {
            isCode.value = false;
          }}
        />
      )}
    </>
  );
}
