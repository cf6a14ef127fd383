/** An answer with its reasoning, calls of tools, cost or failure. Everything that models write is text. */
import { useMemo } from 'preact/hooks';
import { count, milliseconds } from '../format.ts';
import { readJson } from '../json-text.ts';
import { Copy, Money } from '../ui.tsx';
import { type Answer, type Cell, PROMPT_CHARS_MAX, type Step, type Turn, turns } from './draft.ts';
import { BoundedText, LongText, SHOWN_CHARS_MAX } from './fields.tsx';
import { ownCostOf, sendResults, tryAgain } from './run.ts';

/** The types of images that are shown; anything else stays away from the page. */
const IMAGE = /^data:image\/(?:png|jpeg|webp|gif);base64,[A-Za-z0-9+/=]+$/;

/** A text that should be JSON: formatted if it is valid, otherwise unchanged and with the error. */
function JsonView({ text, label }: { text: string; label: string }) {
  const { pretty, fault } = useMemo(() => readJson(text), [text]);
  return (
    <>
      <p class="json-state">
        {fault === undefined ? <span class="tag good">JSON</span> : <span class="tag bad">not JSON</span>}
        {fault !== undefined && <small> {fault}</small>}
      </p>
      <LongText text={fault === undefined ? pretty : text} label={label} isCode />
    </>
  );
}

const FINISHES: Readonly<Record<string, string>> = {
  length: 'Cut off at the longest answer that is allowed. Raise “Most tokens” for more.',
  content_filter: 'Ended by a content filter.',
};

function Failure({ of }: { of: NonNullable<Answer['failure']> }) {
  return (
    <div class="failure" role="alert">
      {of.code !== undefined && <strong>{of.code} </strong>}
      <bdi>{of.message}</bdi>
      {of.requestId !== undefined && (
        <div class="dim">
          Request <code>{of.requestId}</code>
        </div>
      )}
      {of.id !== undefined && <CallLink id={of.id} />}
    </div>
  );
}

const CallLink = ({ id }: { id: string }) => (
  <a href={`logs?${new URLSearchParams({ id })}`} data-page>
    Open the call
  </a>
);

function Facts({ of: { usage, id, provider, ms, firstMs } }: { of: Answer }) {
  if (usage === undefined) return id === undefined ? null : <CallFacts id={id} />;
  const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
  const reasoned = usage.completion_tokens_details?.reasoning_tokens ?? 0;
  const own = ownCostOf(usage);
  return (
    <p class="facts dim">
      {usage.cost === undefined ? 'price not known' : <Money usd={usage.cost + own} />}
      {own > 0 && ' at an own account'} · {count(usage.prompt_tokens)}
      {cached > 0 && ` (${count(cached)} cached)`} → {count(usage.completion_tokens)}
      {reasoned > 0 && ` (${count(reasoned)} reasoning)`} tokens
      {firstMs !== undefined && <> · first token after {milliseconds(firstMs)}</>}
      {ms !== undefined && <> · {milliseconds(ms)}</>}
      {provider !== undefined && (
        <>
          {' '}
          · <bdi>{provider}</bdi>
        </>
      )}
      {id !== undefined && (
        <>
          {' '}
          · <CallLink id={id} />
        </>
      )}
    </p>
  );
}

const CallFacts = ({ id }: { id: string }) => (
  <p class="facts dim">
    <CallLink id={id} />
  </p>
);

/** Keeps the focus of a person whose button is about to disappear. */
const focusCell = (event: Event): void =>
  (event.currentTarget as Element).closest<HTMLElement>('section')?.focus({ preventScroll: true });

/** The calls of the model, and fields for their results. */
function ToolCalls({ of, turn, cell, isOpen }: { of: Step; turn: Turn; cell: Cell; isOpen: boolean }) {
  const { calls } = of.answer.value;
  const results = of.results.value;
  const sent = of.areSent.value;
  return (
    <form
      class="calls"
      onSubmit={(event) => {
        event.preventDefault();
        focusCell(event);
        sendResults(turn, cell, of);
      }}
    >
      {calls.map(({ name, args }, index) => (
        <div class="call" key={String(index)}>
          <p>
            Calls <code>{name === '' ? '(no name)' : name}</code>
          </p>
          {args.trim() === '' ? (
            <p class="dim">Without arguments.</p>
          ) : of.answer.value.state === 'running' ? (
            <div class="text mono">{args.slice(0, SHOWN_CHARS_MAX)}</div>
          ) : (
            <JsonView text={args} label={`Arguments of ${name}`} />
          )}
          {sent && (
            <>
              <p class="dim">Result</p>
              <LongText
                text={results[index] === '' ? '(empty)' : (results[index] ?? '(empty)')}
                label={`Result of ${name}`}
                isCode
              />
            </>
          )}
          {isOpen && !sent && (
            <BoundedText
              label={calls.length > 1 ? `Result of ${name}, call ${index + 1}` : `Result of ${name}`}
              value={results[index] ?? ''}
              max={PROMPT_CHARS_MAX}
              rows={2}
              isCode
              placeholder="What your program would return"
              onChange={(text) => {
                const next = calls.map((_, at) => results[at] ?? '');
                next[index] = text;
                of.results.value = next;
              }}
            />
          )}
        </div>
      ))}
      {isOpen && !sent && (
        <button type="submit" class="small">
          {calls.length > 1 ? `Send ${calls.length} results` : 'Send the result'}
        </button>
      )}
    </form>
  );
}

function StepView({ of, turn, cell, isLast }: { of: Step; turn: Turn; cell: Cell; isLast: boolean }) {
  const answer = of.answer.value;
  const { text, reasoning, state, calls, images, failure, finish, isJson } = answer;
  const isRunning = state === 'running';
  const isLastTurn = turns.value.at(-1) === turn;
  const note = finish === undefined || isRunning ? undefined : FINISHES[finish];
  const isEmpty = text === '' && calls.length === 0 && images.length === 0;
  return (
    <div class="step">
      {reasoning !== '' && (
        <details open={isRunning && isEmpty}>
          <summary>Reasoning</summary>
          <div class="dim">
            <LongText text={reasoning} label="Reasoning" />
          </div>
        </details>
      )}
      {isJson && !isRunning && text !== '' && calls.length === 0 ? (
        <JsonView text={text} label="Answer" />
      ) : (
        text !== '' && <LongText text={text} label={`Answer of ${cell.model}`} />
      )}
      {isRunning && <span class="cursor" aria-hidden="true" />}
      {images.map((url, index) =>
        IMAGE.test(url) ? (
          <img key={String(index)} class="made" src={url} alt={`Made by the model, number ${index + 1}`} />
        ) : (
          <p key={String(index)} class="dim">
            Image {index + 1} has an address or a type that the page does not show.
          </p>
        ),
      )}
      {calls.length > 0 && (
        <ToolCalls of={of} turn={turn} cell={cell} isOpen={isLast && isLastTurn && state === 'done'} />
      )}
      {state === 'done' && isEmpty && <p class="dim">The answer is empty.</p>}
      {note !== undefined && <p class="dim">{note}</p>}
      {failure !== undefined && <Failure of={failure} />}
      {state === 'stopped' && <p class="dim">Stopped. What was used until then is charged.</p>}
      {!isRunning && failure?.id === undefined && <Facts of={answer} />}
      <div class="actions">
        {isRunning && (
          <button
            type="button"
            class="small"
            aria-label={`Stop ${cell.model}`}
            onClick={(event) => {
              focusCell(event);
              of.abort.abort();
            }}
          >
            Stop
          </button>
        )}
        {!isRunning && text !== '' && <Copy text={text} label="Copy" />}
        {!isRunning && isLast && isLastTurn && (
          <button
            type="button"
            class="small"
            aria-label={`Try ${cell.model} again`}
            onClick={(event) => {
              focusCell(event);
              tryAgain(turn, cell);
            }}
          >
            Try again
          </button>
        )}
      </div>
    </div>
  );
}

export function CellView({ of, turn, number }: { of: Cell; turn: Turn; number: number }) {
  const steps = of.steps.value;
  const isBusy = steps.at(-1)?.answer.value.state === 'running';
  const suffix = number === 1 ? '' : `, turn ${number}`;
  return (
    <section class="card answer" aria-label={`Answer of ${of.model}${suffix}`} aria-busy={isBusy} tabIndex={-1}>
      <h3>
        <bdi>{of.model}</bdi>
      </h3>
      {steps.map((step, index) => (
        <StepView key={String(index)} of={step} turn={turn} cell={of} isLast={index === steps.length - 1} />
      ))}
    </section>
  );
}
