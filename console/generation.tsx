import { useSignal } from '@preact/signals';
import { home } from './address.ts';
import type { Generation, GenerationContent } from './api.gen.ts';
import { call } from './api.ts';
import { failureText } from './failures.ts';
import { count, milliseconds, time, usd } from './format.ts';
import { logsOf } from './links.tsx';
import { keepDraft } from './replay.ts';
import { requests } from './snippets.ts';
import { go } from './state.ts';
import { Code, Dialog, Money, Show, Snippets, Table, useAction, useLoaded, WideTable } from './ui.tsx';

/** The colour of an outcome. */
export const outcomeTag = (outcome: string) =>
  outcome === 'completed' ? 'tag good' : outcome === 'failed' || outcome === 'unknown' ? 'tag bad' : 'tag';

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

function Routing({ of }: { of: NonNullable<Generation['routing']> }) {
  const { planned, excluded, total } = of.endpoints;
  const steps = Object.entries(Object.groupBy(excluded, ({ step }) => step));
  return (
    <>
      <p class="dim">
        Strategy {of.strategy}
        {of.sort === null ? ', in an order drawn by price' : `, sorted by ${of.sort}`}; {count(total)} endpoint
        {total === 1 ? '' : 's'} considered
        {of.hold !== null && (
          <>
            ; <Money usd={of.hold.amount} /> held in {of.hold.budgets.join(', ') || 'no budget'}
          </>
        )}
        .
      </p>
      <WideTable label="Endpoints">
        <Table
          caption="Endpoints in the order in which they are tried"
          head={['Endpoint', 'Why there', '>Expected cost']}
        >
          {planned.map((endpoint, index) => (
            <tr key={index}>
              <td>
                {index + 1}. <bdi>{endpointText(endpoint.endpoint_id)}</bdi>{' '}
                {endpoint.selected && <span class="tag good">answered</span>}
              </td>
              <td>
                {endpoint.because.map(reasonText).join('; ') || '–'}
                {endpoint.weight !== null && ` (chance ${Math.round(endpoint.weight * 100)} %)`}
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
              <bdi>{line.class.replaceAll('_', ' ')}</bdi>
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

const textOf = (content: unknown): string => {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return content === null || content === undefined ? '' : JSON.stringify(content, null, 2);
  return content
    .map((part: { text?: unknown }) => (typeof part.text === 'string' ? part.text : JSON.stringify(part)))
    .join('\n');
};

type Message = { role: string; content?: unknown; tool_calls?: unknown };

/** The messages of a kept request. */
const messagesOf = ({ input }: GenerationContent): Message[] =>
  (input.messages as Message[] | undefined) ?? [{ role: 'user', content: input.prompt ?? '' }];

function Part({ title, text }: { title: string; text: string }) {
  return (
    <div class="message">
      <h4>{title}</h4>
      <Code text={text} label={title} />
    </div>
  );
}

function Content({ of }: { of: GenerationContent }) {
  const { output, error } = of;
  if (of.not_kept !== undefined) return <p>The content could not be kept: {of.not_kept.reason}</p>;
  return (
    <>
      {of.truncated && <p class="dim">Some of it was too long to be kept.</p>}
      {messagesOf(of).map((message, index) => (
        <Part
          key={index}
          title={message.role}
          text={[
            textOf(message.content),
            message.tool_calls === undefined ? '' : JSON.stringify(message.tool_calls, null, 2),
          ]
            .filter((text) => text !== '')
            .join('\n')}
        />
      ))}
      {output.reasoning !== null && <Part title="reasoning" text={output.reasoning} />}
      {output.completion !== null && <Part title="answer" text={output.completion} />}
      {output.refusal !== undefined && <Part title="refusal" text={output.refusal} />}
      {output.tool_calls?.map((tool, index) => (
        <Part key={index} title={`tool call: ${tool.function.name}`} text={tool.function.arguments} />
      ))}
      {error !== null && (
        <>
          <p class="failure">{error.message}</p>
          {error.previous_errors.length > 0 && (
            <Part title="earlier errors" text={JSON.stringify(error.previous_errors, null, 2)} />
          )}
        </>
      )}
    </>
  );
}

function Facts({ of, keyName }: { of: Generation; keyName: string | undefined }) {
  const requested = of.requested_model;
  const classes = Object.entries(of.token_classes ?? {}).filter(([, tokens]) => Number(tokens) > 0);
  return (
    <dl class="facts-list">
      <div>
        <dt>Model</dt>
        <dd>
          {requested !== null && requested !== of.model && (
            <>
              <bdi>{requested}</bdi> →{' '}
            </>
          )}
          <a href={logsOf({ model: of.model })} data-page>
            <bdi>{of.model}</bdi>
          </a>
        </dd>
      </div>
      {of.api_key_hash !== undefined && (
        <div>
          <dt>Key</dt>
          <dd>
            <a href={logsOf({ key: of.api_key_hash })} data-page>
              <bdi>{keyName ?? `${of.api_key_hash.slice(0, 12)}…`}</bdi>
            </a>
          </dd>
        </div>
      )}
      {of.session_id !== null && (
        <div>
          <dt>Session</dt>
          <dd>
            <a href={`sessions?${new URLSearchParams({ id: of.session_id })}`} data-page>
              <bdi>{of.session_id}</bdi>
            </a>
          </dd>
        </div>
      )}
      <div>
        <dt>Tokens</dt>
        <dd>
          {classes.length === 0
            ? '–'
            : classes.map(([name, tokens]) => `${name.replaceAll('_', ' ')} ${count(Number(tokens))}`).join(', ')}
        </dd>
      </div>
      <div>
        <dt>Times</dt>
        <dd>
          {of.latency === null && of.generation_time === null
            ? '–'
            : `${of.streamed ? 'first token after' : 'answer after'} ${milliseconds(of.latency)}, in all ${milliseconds(of.generation_time)}`}
        </dd>
      </div>
      <div>
        <dt>End</dt>
        <dd>
          {of.finish_reason ?? '–'}
          {of.native_finish_reason !== null && of.native_finish_reason !== of.finish_reason && (
            <>
              {' '}
              (<bdi>{of.native_finish_reason}</bdi>)
            </>
          )}
        </dd>
      </div>
      {(of.external_user || of.title || of.http_referer || of.user_agent) && (
        <div>
          <dt>Client</dt>
          <dd>
            <bdi>{[of.external_user, of.title, of.http_referer, of.user_agent].filter(Boolean).join(', ')}</bdi>
          </dd>
        </div>
      )}
      <div>
        <dt>Request</dt>
        <dd>
          <code>{of.request_id ?? '–'}</code>
        </dd>
      </div>
    </dl>
  );
}

function Whole({ of, keyName }: { of: Generation; keyName: string | undefined }) {
  const content = useSignal<GenerationContent | undefined>(undefined);
  const load = useAction(async () => {
    const { data } = await call('getGenerationContent', { query: { id: of.id } });
    content.value = data;
  });
  const model = of.requested_model ?? of.model;
  const kept = content.value;
  const messages = kept === undefined ? [{ role: 'user', content: '…' }] : messagesOf(kept);
  const replay = () => {
    const text = (role: string) => textOf(messages.findLast((message) => message.role === role)?.content);
    if (kept !== undefined) keepDraft({ system: text('system'), prompt: text('user') });
    go(`playground?${new URLSearchParams({ models: model })}`);
  };
  return (
    <>
      <p>
        <span class={outcomeTag(of.outcome)}>{of.outcome}</span> {time(of.created_at)} ·{' '}
        {of.total_cost === null ? 'price not known' : <Money usd={of.total_cost} />}
        <br />
        <code>{of.id}</code>
      </p>
      <Facts of={of} keyName={keyName} />
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
            They are kept if the workspace of the key keeps requests and answers, which is set on its page.
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
        <button type="button" onClick={replay}>
          Replay in the playground
        </button>{' '}
        {kept === undefined && <small>Show the prompt first to replay it; without it the model alone is chosen.</small>}
        {kept !== undefined && messages.length > 2 && (
          <small>The playground takes the system prompt and the last message; the code has all messages.</small>
        )}
      </p>
      <Snippets of={requests(home, { model, messages, ...(of.streamed ? { stream: true } : {}) })} label="Request" />
    </>
  );
}

/** All that is recorded of one call, in a dialog. */
export function GenerationPanel({
  id,
  keyName,
  onClose,
}: {
  id: string;
  keyName(hash: string): string | undefined;
  onClose(): void;
}) {
  const generation = useLoaded((abort) => call('getGeneration', { query: { id } }, abort), id);
  return (
    <Dialog title="Call" isWide onClose={onClose}>
      <Show of={generation}>
        {({ data }) => <Whole key={data.id} of={data} keyName={data.api_key_hash && keyName(data.api_key_hash)} />}
      </Show>
    </Dialog>
  );
}
