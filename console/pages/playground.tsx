import { type Signal, signal, useSignal } from '@preact/signals';
import { useState } from 'preact/hooks';
import { home } from '../address.ts';
import { call } from '../api.ts';
import { streamAnswer, type Usage } from '../chat.ts';
import { count } from '../format.ts';
import { takeDraft } from '../replay.ts';
import { requests } from '../snippets.ts';
import { go, route, say, setQuery } from '../state.ts';
import { bind, Code, Dialog, Field, Heading, Money, messageOf, Snippets, useAction, useLoaded } from '../ui.tsx';

const MODELS_MAX = 4;

/** The key of the playground: in the memory of this tab alone, and lost when it is closed. */
const secret = signal('');

interface Answer {
  model: string;
  text: string;
  reasoning: string;
  state: 'running' | 'done' | 'failed' | 'stopped';
  error?: string;
  usage?: Usage;
  provider?: string;
  ms?: number;
  firstMs?: number;
}

/** What an answer cost at the organization's own account at the provider. */
const ownCostOf = ({ cost_details }: Usage) => cost_details?.upstream_inference_cost ?? 0;
/** What an answer cost, whoever billed it. */
const costOf = (usage: Usage) => (usage.cost ?? 0) + ownCostOf(usage);

const prompt = signal('');
const system = signal('');
const temperature = signal('');
const longest = signal('');

function bodyFor(model: string) {
  return {
    model,
    messages: [
      ...(system.value.trim() === '' ? [] : [{ role: 'system' as const, content: system.value }]),
      { role: 'user' as const, content: prompt.value },
    ],
    stream: true,
    ...(temperature.value === '' ? {} : { temperature: Number(temperature.value) }),
    ...(longest.value === '' ? {} : { max_tokens: Number(longest.value) }),
  };
}

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
  const add = () => {
    const wanted = text.value.trim();
    const model =
      models.value?.data.find(({ id }) => id === wanted) ?? (wanted === '' ? undefined : models.value?.data[0]);
    if (model === undefined) return say(`No model matches ${wanted}.`);
    text.value = '';
    if (!chosen.includes(model.id)) onChange([...chosen, model.id]);
  };
  return (
    <div class="picker">
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
      {chosen.length < MODELS_MAX && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            add();
          }}
        >
          <Field label={chosen.length === 0 ? 'Model' : 'Compare with'}>
            <input
              list="playground-models"
              placeholder="Type to search"
              autocomplete="off"
              {...bind(text)}
              onChange={() => {
                // A whole id needs no further step: it was chosen from the list, or written before another field.
                if (models.value?.data.some(({ id }) => id === text.value.trim())) add();
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
    </div>
  );
}

function AnswerView({ of }: { of: Signal<Answer> }) {
  const { model, text, reasoning, state, error, usage, provider, ms, firstMs } = of.value;
  return (
    <section class="card answer" aria-label={`Answer of ${model}`} aria-busy={state === 'running'}>
      <h2>
        <bdi>{model}</bdi>
      </h2>
      {reasoning !== '' && (
        <details open={text === ''}>
          <summary>Reasoning</summary>
          <p class="text dim">{reasoning}</p>
        </details>
      )}
      <p class="text">
        {text}
        {state === 'running' && <span class="cursor" aria-hidden="true" />}
      </p>
      {error !== undefined && (
        <p class="failure" role="alert">
          {error}
        </p>
      )}
      {state === 'stopped' && <p class="dim">Stopped. What was used until then is charged.</p>}
      {usage && (
        <p class="facts dim">
          {usage.cost !== undefined && (
            <>
              <Money usd={costOf(usage)} />
              {ownCostOf(usage) > 0 && ' at an own account'} ·{' '}
            </>
          )}
          {count(usage.prompt_tokens)} → {count(usage.completion_tokens)} tokens
          {firstMs !== undefined && <> · first after {Math.round(firstMs)} ms</>}
          {ms !== undefined && <> · {(ms / 1000).toFixed(1)} s</>}
          {provider !== undefined && (
            <>
              {' '}
              · <bdi>{provider}</bdi>
            </>
          )}
        </p>
      )}
    </section>
  );
}

async function ask(of: Signal<Answer>, abort: AbortSignal): Promise<void> {
  const begun = performance.now();
  const change = (fields: Partial<Answer>) => {
    of.value = { ...of.value, ...fields };
  };
  const first = () => (of.value.firstMs === undefined ? { firstMs: performance.now() - begun } : {});
  try {
    await streamAnswer(
      secret.value,
      bodyFor(of.value.model),
      {
        onText: (text) => change({ text: of.value.text + text, ...first() }),
        onReasoning: (text) => change({ reasoning: of.value.reasoning + text, ...first() }),
        onEnd: ({ usage, provider }) =>
          change({
            state: 'done',
            ms: performance.now() - begun,
            ...(usage ? { usage } : {}),
            ...(provider ? { provider } : {}),
          }),
      },
      abort,
    );
  } catch (error) {
    if (abort.aborted) change({ state: 'stopped' });
    else change({ state: 'failed', error: messageOf(error) });
  }
}

export default function Playground() {
  const chosen = (route.value.query.get('models') ?? '')
    .split(',')
    .filter((id) => id !== '')
    .slice(0, MODELS_MAX);
  const answers = useSignal<Signal<Answer>[]>([]);
  const running = useSignal<AbortController | undefined>(undefined);
  const isCode = useSignal(false);
  // A call that is to be replayed.
  useState(() => {
    const draft = takeDraft();
    if (draft === undefined) return;
    prompt.value = draft.prompt;
    system.value = draft.system;
  });
  const send = async (event: Event) => {
    event.preventDefault();
    if (running.value) return;
    if (secret.value.trim() === '') return say('Enter an API key, or make one.');
    const abort = new AbortController();
    running.value = abort;
    answers.value = chosen.map((model) => signal<Answer>({ model, text: '', reasoning: '', state: 'running' }));
    await Promise.all(answers.value.map((one) => ask(one, abort.signal)));
    running.value = undefined;
  };
  const isReady = chosen.length > 0 && prompt.value.trim() !== '';
  const total = answers.value.reduce(
    (sum, one) => sum + (one.value.usage === undefined ? 0 : costOf(one.value.usage)),
    0,
  );
  return (
    <>
      <Heading title="Playground">
        <button
          type="button"
          disabled={!isReady}
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
        <form onSubmit={(event) => void send(event)}>
          <details>
            <summary>System prompt and parameters</summary>
            <Field label="System prompt">
              <textarea rows={3} {...bind(system)} />
            </Field>
            <div class="row">
              <Field label="Temperature">
                <input type="number" min="0" max="2" step="0.1" {...bind(temperature)} />
              </Field>
              <Field label="Most tokens">
                <input type="number" min="1" step="1" {...bind(longest)} />
              </Field>
            </div>
          </details>
          <Field label="Prompt" hint="Ctrl-Enter sends">
            <textarea
              rows={5}
              {...bind(prompt)}
              onKeyDown={(event) => {
                if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && isReady) void send(event);
              }}
            />
          </Field>
          <div class="actions">
            {running.value ? (
              <button type="button" onClick={() => running.value?.abort()}>
                Stop
              </button>
            ) : (
              <button type="submit" class="primary" disabled={!isReady}>
                {chosen.length > 1 ? `Send to ${chosen.length} models` : 'Send'}
              </button>
            )}
            {chosen.length === 0 && (
              <span class="dim">
                Add a model first.{' '}
                <button type="button" class="link" onClick={() => go('models')}>
                  See all models
                </button>
              </span>
            )}
          </div>
        </form>
      </div>
      {answers.value.length > 0 && (
        <>
          <div class="answers">
            {answers.value.map((one) => (
              <AnswerView key={one.value.model} of={one} />
            ))}
          </div>
          {answers.value.length > 1 && total > 0 && (
            <p class="dim">
              Together <Money usd={total} />
            </p>
          )}
        </>
      )}
      {isCode.value && (
        <Dialog
          title="This request as code"
          isWide
          onClose={() => {
            isCode.value = false;
          }}
        >
          {chosen.length > 1 && (
            <p class="dim">
              For <bdi>{chosen[0]}</bdi>; change the model for the others.
            </p>
          )}
          <Snippets of={requests(home, bodyFor(chosen[0] ?? ''))} label="Request" />
          <h3>The key</h3>
          <Code text="export GATEWAY_KEY=sk-gw-…" label="Key" />
        </Dialog>
      )}
    </>
  );
}
