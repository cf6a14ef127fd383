import { useSignal } from '@preact/signals';
import { type ComponentChildren, Fragment } from 'preact';
import { home } from './address.ts';
import type { Generation, GenerationContent } from './api.gen.ts';
import { call } from './api.ts';
import { failureText } from './failures.ts';
import { count, counted, milliseconds, time, usd } from './format.ts';
import { Content, fieldsOf, messagesOf } from './generation-content.tsx';
import { logsOf } from './links.tsx';
import type { useNames } from './names.ts';
import { keepDraft } from './replay.ts';
import { requests } from './snippets.ts';
import { go, say } from './state.ts';
import { Copy, Dialog, Money, messageOf, Show, Snippets, Table, useAction, useLoaded, WideTable } from './ui.tsx';

type Names = ReturnType<typeof useNames>;

/** The colour of an outcome. */
export const outcomeTag = (outcome: string) =>
  outcome === 'completed' ? 'tag good' : outcome === 'failed' || outcome === 'unknown' ? 'tag bad' : 'tag';

const CLASSES: Record<string, string> = {
  in_uncached: 'input',
  in_cache_read: 'input from a cache',
  in_cache_write_5m: 'input written to a cache (5 min)',
  in_cache_write_1h: 'input written to a cache (1 h)',
  in_audio: 'audio input',
  in_image: 'image input',
  out_text: 'output',
  out_reasoning: 'reasoning',
  out_audio: 'audio output',
  out_image: 'image output',
};
/** Words for a class of tokens or a fee. */
const classText = (name: string): string => CLASSES[name] ?? name.replaceAll('_', ' ');

/** An endpoint's id as its provider and its model. */
const endpointText = (id: string) => id.replace('|', ' · ');

interface Span {
  attempt: Generation['provider_responses'][number];
  start: number;
  wait: number;
  length: number;
}

/** When the attempts were made, as far as the record says: one after the other, hedges beside the one before. */
function spansOf(of: Generation): { spans: Span[]; whole: number } {
  let end = 0;
  let former: Span | undefined;
  const spans = of.provider_responses.map((attempt, index): Span => {
    const isLast = index === of.provider_responses.length - 1;
    const answered = attempt.latency ?? 0;
    const length = isLast && attempt.failure === null ? Math.max(answered, of.generation_time ?? 0) : answered;
    const start = attempt.hedges && former !== undefined ? former.start : end;
    const span = { attempt, start, wait: attempt.wait, length };
    end = Math.max(end, start + span.wait + length);
    former = span;
    return span;
  });
  return { spans, whole: Math.max(1, end) };
}

function resultOf({ attempt }: Span, isLast: boolean): string {
  const status = attempt.status === null ? 'no answer' : `status ${attempt.status}`;
  if (attempt.failure === null) return `answered, ${status}`;
  return `failed: ${failureText(attempt.failure)} (${attempt.failure}, ${status})${isLast ? '. No further endpoint was tried' : '. The gateway went on to the next endpoint'}`;
}

function Attempts({ of }: { of: Generation }) {
  const { spans, whole } = spansOf(of);
  if (spans.length === 0) return <p>No provider was called.</p>;
  const percent = (part: number) => `${(part / whole) * 100}%`;
  return (
    <ol class="attempts">
      {spans.map((span, index) => {
        const { attempt, start, wait, length } = span;
        const notes = [
          attempt.hedges && 'sent beside the attempt before',
          attempt.continues && 'continued the text of the attempt before',
          attempt.is_byok && 'own credential',
          attempt.step !== undefined && `tool step ${attempt.step}`,
          attempt.estimated && 'estimated',
        ].filter((note): note is string => typeof note === 'string');
        return (
          <li key={index}>
            <p>
              <strong>
                <bdi>{attempt.provider_name}</bdi>
              </strong>{' '}
              <code>{attempt.model_permaslug}</code>{' '}
              <span class={attempt.failure === null ? 'tag good' : 'tag bad'}>{attempt.status ?? 'no answer'}</span>
            </p>
            <span class="waterfall" aria-hidden="true">
              <i class="waited" style={{ left: percent(start), width: percent(wait) }} />
              <i
                class={attempt.failure === null ? '' : 'failed'}
                style={{ left: percent(start + wait), width: percent(length) }}
              />
            </span>
            <p class="dim">
              <bdi>{resultOf(span, index === spans.length - 1)}</bdi>. {milliseconds(start)} after the start
              {wait >= 1 && `, waited ${milliseconds(wait)}`}, took {milliseconds(length)}
              {attempt.tokens_prompt !== null &&
                `, ${count(attempt.tokens_prompt)} → ${count(attempt.tokens_completion ?? 0)} tokens`}
              {attempt.cost !== null && attempt.cost > 0 && (
                <>
                  , <Money usd={attempt.cost} />
                </>
              )}
              {notes.length > 0 && `; ${notes.join('; ')}`}.
            </p>
          </li>
        );
      })}
    </ol>
  );
}

const REASONS: Record<string, string> = {
  own_credential: 'own credential, used before those of the gateway',
  own_credential_fallback: 'own credential, used after those of the gateway',
  order: 'in the requested order',
  service_tier: 'has the requested service tier',
  state: 'has the state of the conversation',
  sticky: 'served the conversation before; the prompt may be cached there',
  drawn: 'drawn, weighted by price',
  price: 'by price',
  throughput: 'by throughput',
  latency: 'by latency',
  exacto: 'by the quality of tool calls',
  cooling_down: 'tried later: it cools down after failures',
  recent_outage: 'tried later: it failed a short time ago',
  below_preferred: 'tried later: below the preferred speed or latency',
  prompt_may_not_fit: 'tried later: the prompt may not fit',
};
const reasonText = (reason: string) => REASONS[reason] ?? reason.replaceAll('_', ' ');

const chanceText = (weight: number): string =>
  weight > 0 && weight < 0.01 ? '< 1 %' : `${Math.round(weight * 100)} %`;

function Routing({ of }: { of: NonNullable<Generation['routing']> }) {
  const { planned, excluded, total } = of.endpoints;
  const steps = Object.entries(Object.groupBy(excluded, ({ step }) => step));
  return (
    <>
      <p class="dim">
        {counted(total, 'endpoint')} considered
        {of.sort === null ? ', in an order drawn by price' : `, sorted by ${of.sort}`} (strategy {of.strategy}).
        {of.hold !== null && (
          <>
            {' '}
            Until the end of the call, <Money usd={of.hold.amount} /> was held
            {of.hold.budgets.length > 0 && ` in these limits: ${of.hold.budgets.join(', ')}`}.
          </>
        )}
      </p>
      <WideTable label="Endpoints">
        <Table
          caption="Endpoints in the order in which they are tried"
          head={['Endpoint', 'Why there', '>Expected cost']}
        >
          {planned.map((endpoint, index) => (
            <tr key={index}>
              <td>
                {index + 1}. <bdi>{endpointText(endpoint.endpoint_id)}</bdi>
                {endpoint.service_tier !== null && ` (${endpoint.service_tier})`}{' '}
                {endpoint.selected && <span class="tag good">answered</span>}
              </td>
              <td>
                {endpoint.because.map(reasonText).join('; ') || '–'}
                {endpoint.weight !== null && ` (chance ${chanceText(endpoint.weight)})`}
              </td>
              <td class="right">{endpoint.expected_cost === null ? '–' : <Money usd={endpoint.expected_cost} />}</td>
            </tr>
          ))}
        </Table>
      </WideTable>
      {steps.length > 0 && (
        <>
          <h4>Left out</h4>
          <ul class="plain">
            {steps.map(([step, endpoints = []]) => (
              <li key={step}>
                <strong>{step}</strong>:{' '}
                <bdi>{endpoints.map(({ endpoint_id }) => endpointText(endpoint_id)).join(', ')}</bdi>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

function Charges({ of }: { of: Generation }) {
  if (of.charges.length === 0) return <p>Nothing was charged.</p>;
  return (
    <WideTable label="Charge lines">
      <Table
        caption="Charge lines"
        head={['For', '>Units × price', '>Amount']}
        foot={
          <tr>
            <th scope="row" colSpan={2}>
              Charged{of.estimated_cost ? `, of it estimated ${usd(of.estimated_cost, true)}` : ''}
            </th>
            <td class="right number">{of.total_cost === null ? 'price not known' : usd(of.total_cost, true)}</td>
          </tr>
        }
      >
        {of.charges.map((line, index) => (
          <tr key={index}>
            <td>
              <bdi>{classText(line.class)}</bdi>
              {line.model !== null && (
                <>
                  {' '}
                  <code>{line.model}</code>
                </>
              )}{' '}
              <small>
                {line.attempt === 0 ? 'fee' : `attempt ${line.attempt}`}
                {line.is_byok && ', own account'}
              </small>
            </td>
            <td class="right number">
              {line.units} × ${line.unit_price}
              {line.discount !== 0 && ` × (1 − ${line.discount})`}
            </td>
            <td class="right number">${line.amount}</td>
          </tr>
        ))}
      </Table>
    </WideTable>
  );
}

function Findings({ of }: { of: NonNullable<Generation['routing']>['pipeline'] }) {
  return (
    <ul class="plain">
      {of.map((stage, index) => (
        <li key={index}>
          <span class="tag">{stage.type.replaceAll('_', ' ')}</span> <bdi>{stage.name}</bdi>
          {stage.summary !== undefined && (
            <>
              : <bdi>{stage.summary}</bdi>
            </>
          )}
          {stage.data !== undefined && (
            <>
              {' '}
              <code>{JSON.stringify(stage.data)}</code>
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** A value with a link to the calls that have it. */
function Calls({ filter, children }: { filter: Record<string, string>; children: string }) {
  return (
    <a href={logsOf(filter)} data-page title="All calls with this value">
      <bdi>{children}</bdi>
    </a>
  );
}

function Facts({ of, names }: { of: Generation; names: Names }) {
  const requested = of.requested_model;
  const classes = Object.entries(of.token_classes ?? {}).filter(([, tokens]) => Number(tokens) > 0);
  const workspace = names.workspaces.find(({ id }) => id === of.workspace_id);
  const app = of.title ?? of.http_referer;
  const client = [of.http_referer === app ? null : of.http_referer, of.user_agent].filter(Boolean).join(', ');
  return (
    <dl class="facts-list">
      <Fact name="Model">
        {requested !== null && requested !== of.model && (
          <>
            <bdi>{requested}</bdi> →{' '}
          </>
        )}
        <Calls filter={{ model: of.model }}>{of.model}</Calls>
      </Fact>
      {of.api_key_hash !== undefined && (
        <Fact name="Key">
          <Calls filter={{ key: of.api_key_hash }}>{names.of('key', of.api_key_hash)}</Calls>
        </Fact>
      )}
      {of.user_id && (
        <Fact name="Member">
          <Calls filter={{ user: of.user_id }}>{names.of('user', of.user_id)}</Calls>
        </Fact>
      )}
      {workspace !== undefined && names.workspaces.length > 1 && (
        <Fact name="Workspace">
          <Calls filter={{ workspace: workspace.id }}>{workspace.name}</Calls>
        </Fact>
      )}
      {of.session_id !== null && (
        <Fact name="Session">
          <a href={`sessions?${new URLSearchParams({ id: of.session_id })}`} data-page>
            <bdi>{of.session_id}</bdi>
          </a>
        </Fact>
      )}
      {of.tags.length > 0 && (
        <Fact name="Tags">
          {of.tags.map((tag, index) => (
            <Fragment key={tag}>
              {index > 0 && ', '}
              <Calls filter={{ tag }}>{tag}</Calls>
            </Fragment>
          ))}
        </Fact>
      )}
      {app !== null && (
        <Fact name="App">
          <Calls filter={{ app }}>{app}</Calls>
        </Fact>
      )}
      {of.external_user !== null && (
        <Fact name="User">
          <Calls filter={{ external: of.external_user }}>{of.external_user}</Calls>
        </Fact>
      )}
      {client !== '' && (
        <Fact name="Client">
          <bdi>{client}</bdi>
        </Fact>
      )}
      <Fact name="Tokens">
        {classes.length === 0
          ? '–'
          : classes.map(([name, tokens]) => `${count(Number(tokens))} ${classText(name)}`).join(', ')}
      </Fact>
      <Fact name="Times">
        {of.latency === null && of.generation_time === null
          ? '–'
          : `${of.streamed ? 'first token after' : 'answer after'} ${milliseconds(of.latency)}, in all ${milliseconds(of.generation_time)}`}
      </Fact>
      <Fact name="End">
        {of.finish_reason ?? '–'}
        {of.native_finish_reason !== null && of.native_finish_reason !== of.finish_reason && (
          <>
            {' '}
            (<bdi>{of.native_finish_reason}</bdi>)
          </>
        )}
      </Fact>
      {of.request_id !== null && (
        <Fact name="Request">
          <code>{of.request_id}</code> <Copy text={of.request_id} />
        </Fact>
      )}
    </dl>
  );
}

function Whole({ of, names }: { of: Generation; names: Names }) {
  const content = useSignal<GenerationContent | undefined>(undefined);
  const load = useAction(async () => {
    const { data } = await call('getGenerationContent', { query: { id: of.id } });
    content.value = data;
  });
  const model = of.requested_model ?? of.model;
  const kept = content.value;
  const messages = kept === undefined ? [{ role: 'user', content: '…' }] : messagesOf(kept);
  const fields = kept === undefined ? {} : fieldsOf(kept);
  const replay = useAction(async () => {
    try {
      const { data } =
        kept === undefined ? await call('getGenerationContent', { query: { id: of.id } }) : { data: kept };
      if (data.not_kept !== undefined) throw new Error(data.not_kept.reason);
      keepDraft({ model, messages: messagesOf(data), fields: fieldsOf(data) });
    } catch (error) {
      say(`Only the model is chosen, because the prompt is not there. ${messageOf(error)}`);
    }
    go(`playground?${new URLSearchParams({ models: model })}`);
  });
  return (
    <>
      <p>
        <span class={outcomeTag(of.outcome)}>{of.outcome}</span> <span class="line-part">{time(of.created_at)}</span> ·{' '}
        {of.total_cost === null ? 'price not known' : <Money usd={of.total_cost} />}
        <br />
        <code>{of.id}</code> <Copy text={of.id} />
      </p>
      <Facts of={of} names={names} />
      <h3>Attempts</h3>
      <Attempts of={of} />
      {of.routing !== null && (
        <>
          <h3>Why these endpoints</h3>
          <Routing of={of.routing} />
          {of.routing.pipeline.length > 0 && (
            <>
              <h3>Guardrails and plugins</h3>
              <Findings of={of.routing.pipeline} />
            </>
          )}
        </>
      )}
      <h3>Charges</h3>
      <Charges of={of} />
      <h3>Prompt and answer</h3>
      {kept === undefined ? (
        <>
          <p class="dim">
            They are kept if the workspace of the key keeps requests and answers, which is set on{' '}
            <a href="workspaces" data-page>
              its page
            </a>
            .
          </p>
          <button type="button" disabled={load.isRunning} onClick={load.start}>
            Show prompt and answer
          </button>
          {load.failure}
        </>
      ) : (
        <Content of={kept} />
      )}
      <h3>Send it again</h3>
      <p>
        <button type="button" disabled={replay.isRunning} onClick={replay.start}>
          Replay in the playground
        </button>{' '}
        <small>With its messages, tools and schema, as far as they are kept. Images are not kept.</small>
      </p>
      {kept === undefined && (
        <p class="dim">The code has a placeholder in place of the prompt until you show the prompt above.</p>
      )}
      <Snippets
        of={requests(home, { model, messages, ...fields, ...(of.streamed ? { stream: true } : {}) })}
        label="Request"
      />
    </>
  );
}

/** All that is recorded of one call, in a dialog. In a list it leads to the calls beside this one. */
export function GenerationPanel({
  id,
  names,
  newer,
  older,
  onMove,
  onClose,
}: {
  id: string;
  names: Names;
  newer?: string | undefined;
  older?: string | undefined;
  onMove?(id: string): void;
  onClose(): void;
}) {
  const generation = useLoaded((abort) => call('getGeneration', { query: { id } }, abort), id);
  const move = (to: string | undefined, label: string) => (
    <button type="button" class="small" disabled={to === undefined} onClick={() => to !== undefined && onMove?.(to)}>
      {label}
    </button>
  );
  return (
    <Dialog
      title="Call"
      isWide
      onClose={onClose}
      actions={
        (newer !== undefined || older !== undefined) && (
          <>
            {move(newer, '↑ Newer')}
            {move(older, '↓ Older')}
          </>
        )
      }
    >
      <Show of={generation}>{({ data }) => <Whole key={data.id} of={data} names={names} />}</Show>
    </Dialog>
  );
}
