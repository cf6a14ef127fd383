/** The parts of a call's record: attempts, routing, charges and findings. */
import type { Generation } from './api.gen.ts';
import { failureText } from './failures.ts';
import { count, counted, milliseconds, usd } from './format.ts';
import { Money, Table, WideTable } from './ui.tsx';

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
export const classText = (name: string): string => CLASSES[name] ?? name.replaceAll('_', ' ');

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

/** The attempts of a call, one below the other along its time. */
export function Attempts({ of }: { of: Generation }) {
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

/** Why endpoints were tried in this order, and why others were left out. */
export function Routing({ of }: { of: NonNullable<Generation['routing']> }) {
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

/** Each line of the charge with its arithmetic. */
export function Charges({ of }: { of: Generation }) {
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

/** What guardrails and plugins did. */
export function Findings({ of }: { of: NonNullable<Generation['routing']>['pipeline'] }) {
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
