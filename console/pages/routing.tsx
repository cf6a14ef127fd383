import { signal, useSignal } from '@preact/signals';
import type { ExplainedEndpoint, Hold, Operations, RouteExplanation } from '../api.gen.ts';
import { call } from '../api.ts';
import { count, percent, time, tokens } from '../format.ts';
import { KeySelect, loadKeys, suggestModels, useWorkspace, WorkspaceSelect } from '../pickers.tsx';
import { route, setQuery } from '../state.ts';
import { bind, Empty, Field, Heading, Money, Show, Table, useAction, useLoaded } from '../ui.tsx';
import { Uptime } from '../uptime.tsx';

type Body = Operations['explainKeyRoute']['body'];

const prompt = signal('Hello');
const longest = signal('');
const preferences = signal('');
const written = signal('');
const isWritten = signal(false);

/** The form as the body of a chat completion. */
function bodyOf(model: string): Body {
  if (isWritten.value) {
    try {
      return JSON.parse(written.value) as Body;
    } catch (error) {
      throw new Error(`The request is not JSON: ${(error as Error).message}`);
    }
  }
  let provider: unknown;
  try {
    provider = preferences.value.trim() === '' ? undefined : JSON.parse(preferences.value);
  } catch (error) {
    throw new Error(`The provider preferences are not JSON: ${(error as Error).message}`);
  }
  return {
    ...(model === '' ? {} : { model }),
    messages: [{ role: 'user', content: prompt.value }],
    ...(longest.value === '' ? {} : { max_tokens: Number(longest.value) }),
    ...(provider === undefined ? {} : { provider }),
  } as Body;
}

/** How many endpoints were left after each step, as bars with a table's numbers. */
function Funnel({ of }: { of: RouteExplanation }) {
  const steps = of.routing_funnel;
  const most = Math.max(1, of.endpoints.total, ...steps.map(({ endpoint_count }) => endpoint_count));
  return (
    <Table class="funnel" caption="Endpoints left after each step" head={['Step', '>Endpoints left', '']}>
      {steps.map(({ step, endpoint_count }) => (
        <tr key={step}>
          <th scope="row">{step}</th>
          <td class="right number">{count(endpoint_count)}</td>
          <td>
            <span class="bar" aria-hidden="true">
              <span style={{ width: `${(endpoint_count / most) * 100}%` }} />
            </span>
          </td>
        </tr>
      ))}
    </Table>
  );
}

function HoldView({ of }: { of: Hold }) {
  return (
    <>
      <Money usd={of.amount} />
      {of.lowers_output && (
        <span class="dim">
          {' '}
          of <Money usd={of.wanted} />: the output bound is lowered
        </span>
      )}
      <ul class="rules">
        {of.budgets.map(({ label, available }) => (
          <li key={label}>
            <bdi>{label}</bdi>
            {available !== null && (
              <>
                {' '}
                (<Money usd={available} /> left)
              </>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

function State({ of }: { of: ExplainedEndpoint }) {
  const { health } = of;
  if (health.cooling_down_until !== null) {
    return (
      <>
        <span class="tag bad">cools down</span> until {time(health.cooling_down_until)}
      </>
    );
  }
  return health.had_recent_outage ? <span class="tag fair">failed recently</span> : <span class="tag good">ready</span>;
}

function Changes({ of }: { of: RouteExplanation['adjusted_parameters'] }) {
  return (
    <ul class="rules">
      {of.map(({ kind, field, reason }) => (
        <li key={`${field} ${reason}`}>
          <code>{field}</code> {kind}: <bdi>{reason}</bdi>
        </li>
      ))}
    </ul>
  );
}

function Planned({ of }: { of: ExplainedEndpoint }) {
  const { health } = of;
  return (
    <section
      class={`card${of.is_reached ? '' : ' unreached'}`}
      aria-label={`Attempt ${of.position}: ${of.endpoint_id}`}
    >
      <h3>
        {of.position}. <bdi>{of.provider}</bdi> <code class="dim">{of.tag}</code>
      </h3>
      <p>
        <a href={`models?${new URLSearchParams({ id: of.model })}`} data-page>
          <bdi>{of.model}</bdi>
        </a>{' '}
        <State of={of} />
      </p>
      {of.refusal !== null && (
        <p class="failure">
          Nothing would be sent to it ({of.refusal.code}): <bdi>{of.refusal.message}</bdi>
        </p>
      )}
      {!of.is_reached && <p class="dim">Not reached: an endpoint before it would end the request.</p>}
      <dl>
        <div>
          <dt>Position</dt>
          <dd>
            {of.weight !== null && `first with a chance of ${percent(of.weight * 100)}; `}
            {of.because.join('; ') || 'as ordered'}
          </dd>
        </div>
        <div>
          <dt>Output bound</dt>
          <dd class="number">{of.output_tokens === null ? 'none' : `${count(of.output_tokens)} tokens`}</dd>
        </div>
        <div>
          <dt>Cost, expected</dt>
          <dd>{of.expected_cost === null ? 'not known' : <Money usd={of.expected_cost} />}</dd>
        </div>
        <div>
          <dt>Cost, highest</dt>
          <dd>{of.worst_case_cost === null ? 'not known' : <Money usd={of.worst_case_cost} />}</dd>
        </div>
        <div>
          <dt>Would be held</dt>
          <dd>{of.hold === null ? 'nothing: no limit counts it' : <HoldView of={of.hold} />}</dd>
        </div>
        {of.service_tier !== null && (
          <div>
            <dt>Service tier</dt>
            <dd>{of.service_tier}</dd>
          </div>
        )}
        {of.adjusted_parameters.length > 0 && (
          <div>
            <dt>Changes to the request</dt>
            <dd>
              <Changes of={of.adjusted_parameters} />
            </dd>
          </div>
        )}
        <div>
          <dt>First token</dt>
          <dd class="number">{health.latency === null ? '–' : `p50 ${Math.round(health.latency.p50)} ms`}</dd>
        </div>
        <div>
          <dt>Uptime</dt>
          <dd>
            <Uptime of={health} />
          </dd>
        </div>
      </dl>
    </section>
  );
}

function Result({ of }: { of: RouteExplanation }) {
  const { endpoints, error, hold } = of;
  return (
    <>
      {error === null ? (
        <p>
          <span class="tag good">would be sent</span> {count(endpoints.planned.length)}{' '}
          {endpoints.planned.length === 1 ? 'endpoint' : 'endpoints'} in the plan
          {hold !== null && (
            <>
              ; <Money usd={hold.amount} /> would be held for the first
            </>
          )}
          . About {tokens(of.expected_prompt_tokens)} prompt tokens.
        </p>
      ) : (
        <p class="failure" role="alert">
          The client would receive {error.code}: <bdi>{error.message}</bdi>
        </p>
      )}
      <p class="dim">
        <bdi>{of.requested}</bdi> means {of.models.length === 0 ? 'no model' : <bdi>{of.models.join(', ')}</bdi>}.
        Order:{' '}
        {of.sort === null
          ? 'a draw, weighted by price; the next request may have another first endpoint'
          : `by ${of.sort}`}
        .
      </p>
      {of.warnings.map(({ model, message }) => (
        <p class="failure" key={model}>
          <bdi>{message}</bdi>
        </p>
      ))}
      {of.adjusted_parameters.length > 0 && (
        <>
          <p>Changed for every endpoint:</p>
          <Changes of={of.adjusted_parameters} />
        </>
      )}
      <section class="card">
        <h2>Funnel</h2>
        <Funnel of={of} />
      </section>
      {endpoints.planned.length > 0 && (
        <section>
          <h2>Plan, in the order of attempts</h2>
          <div class="endpoints">
            {endpoints.planned.map((one) => (
              <Planned key={one.position} of={one} />
            ))}
          </div>
        </section>
      )}
      {(endpoints.excluded.length > 0 || endpoints.unplanned.length > 0) && (
        <section class="card">
          <h2>Left out</h2>
          <Table class="cards" caption="Endpoints that are left out" head={['Endpoint', 'Step', 'Reason']}>
            {[
              ...endpoints.excluded,
              ...endpoints.unplanned.map((one) => ({
                ...one,
                step: 'Plan',
                reason: 'allowed, but not in the plan: too many, or fallbacks are not allowed',
              })),
            ].map((one) => (
              <tr key={`${one.endpoint_id} ${one.tag} ${one.step}`}>
                <th scope="row">
                  <bdi>{one.provider}</bdi>
                  <br />
                  <code class="dim">{one.endpoint_id}</code>
                </th>
                <td data-label="Step">{one.step}</td>
                <td data-label="Reason">
                  <bdi>{one.reason}</bdi>
                </td>
              </tr>
            ))}
          </Table>
        </section>
      )}
    </>
  );
}

function ModelField({ value, onChange }: { value: string; onChange(model: string): void }) {
  const suggestions = useLoaded((abort) => suggestModels(value.trim(), abort), value);
  return (
    <>
      <Field label="Model" hint="Empty: the default of the key’s owner, workspace or gateway">
        <input
          list="routing-models"
          autocomplete="off"
          placeholder="Type to search"
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      </Field>
      <datalist id="routing-models">
        {(suggestions.value ?? []).map(({ value: id, title }) => (
          <option key={id} value={id}>
            {title}
          </option>
        ))}
      </datalist>
    </>
  );
}

export default function Routing() {
  const { query } = route.value;
  const workspace = useWorkspace('of');
  const hash = query.get('key') ?? '';
  const model = query.get('model') ?? '';
  const keys = useLoaded((abort) => loadKeys(workspace.id, abort), workspace.id);
  const result = useSignal<RouteExplanation | undefined>(undefined);
  const { start, failure, isRunning } = useAction(async () => {
    if (hash === '') throw new Error('Choose a key: its limits and guardrails apply.');
    const { data } = await call('explainKeyRoute', { path: { hash }, body: bodyOf(model) });
    result.value = data;
  });
  const { all } = workspace;
  return (
    <>
      <Heading title="Routing" />
      <p class="prose">
        Where would a request go, and why? Nothing is sent, reserved or recorded; the answer is true at this moment.
      </p>
      <Show of={workspace.id === undefined ? { ...workspace.loaded, value: undefined } : keys}>
        {({ data }) =>
          data.length === 0 && all.length < 2 ? (
            <Empty title="No key yet">
              <p>A request belongs to a key, whose limits and guardrails apply.</p>
              <a class="button primary" href="keys?new=1" data-page>
                Create a key
              </a>
            </Empty>
          ) : (
            <form class="card" onSubmit={start}>
              <div class="row">
                {all.length > 1 && (
                  <Field label="Workspace">
                    <WorkspaceSelect
                      of={all}
                      value={workspace.id ?? ''}
                      onChoose={(id) => workspace.choose(id, { key: undefined })}
                    />
                  </Field>
                )}
                <Field label="As a call of the key">
                  <KeySelect of={data} value={hash} onChoose={(next) => setQuery({ key: next })} />
                </Field>
              </div>
              <fieldset class="tabs">
                <legend class="hidden">How to write the request</legend>
                <button
                  type="button"
                  aria-pressed={!isWritten.value}
                  onClick={() => {
                    isWritten.value = false;
                  }}
                >
                  Form
                </button>
                <button
                  type="button"
                  aria-pressed={isWritten.value}
                  onClick={() => {
                    if (!isWritten.value) written.value = JSON.stringify(bodyOf(model), undefined, 2);
                    isWritten.value = true;
                  }}
                >
                  JSON
                </button>
              </fieldset>
              {isWritten.value ? (
                <Field label="Body of the chat completion">
                  <textarea rows={9} required spellcheck={false} class="mono" {...(bind(written) as object)} />
                </Field>
              ) : (
                <>
                  <ModelField value={model} onChange={(next) => setQuery({ model: next })} />
                  <Field label="Prompt">
                    <textarea rows={2} required {...(bind(prompt) as object)} />
                  </Field>
                  <div class="row">
                    <Field label="Longest answer, tokens" hint="Empty: the gateway chooses">
                      <input type="number" min="1" step="1" {...bind(longest)} />
                    </Field>
                    <Field label="Provider preferences, JSON" hint={'Such as {"sort": "price"}'}>
                      <input spellcheck={false} autocomplete="off" {...bind(preferences)} />
                    </Field>
                  </div>
                </>
              )}
              {failure}
              <div class="actions">
                <button type="submit" class="primary" disabled={isRunning}>
                  Explain
                </button>
              </div>
            </form>
          )
        }
      </Show>
      <div aria-live="polite">{result.value !== undefined && <Result of={result.value} />}</div>
    </>
  );
}
