import { useSignal } from '@preact/signals';
import type { GuardrailReplay, GuardrailTest, Operations, Workspace } from './api.gen.ts';
import { call } from './api.ts';
import { count } from './format.ts';
import { logsOf } from './links.tsx';
import { bind, Field, Table, useAction } from './ui.tsx';

type Body = Operations['testGuardrail']['body'];

const APIS = {
  chat: 'Chat completion',
  responses: 'Response',
  messages: 'Message',
  completions: 'Completion',
} as const;
type Api = keyof typeof APIS;

const EXAMPLE = JSON.stringify(
  { model: 'gateway/auto', messages: [{ role: 'user', content: 'Write to jane@example.com.' }] },
  undefined,
  2,
);

const VERDICTS = {
  passed: ['good', 'Passes: no filter matches.'],
  flagged: ['fair', 'Passes, and is flagged.'],
  redacted: ['fair', 'Passes with redacted text.'],
  blocked: ['bad', 'Is refused.'],
} as const;

function Findings({ of }: { of: GuardrailTest }) {
  if (of.findings.length === 0) return null;
  return (
    <Table class="cards" caption="Findings" head={['Filter', 'Action', 'Field', 'Text']}>
      {of.findings.map(({ filter, label, action, field, start, end, excerpt }) => (
        <tr key={`${field} ${start} ${end} ${filter} ${label}`}>
          <th scope="row">
            <bdi>{filter === 'custom' ? label : filter}</bdi>
          </th>
          <td data-label="Action">{action}</td>
          <td data-label="Field">
            <code>{field}</code> <span class="dim">{`${start}–${end}`}</span>
          </td>
          <td data-label="Text">
            <bdi>{excerpt}</bdi>
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Replayed({ of }: { of: GuardrailReplay }) {
  return (
    <>
      <dl class="figures">
        {(
          [
            ['Requests checked', of.requests],
            ['Blocked', of.blocked],
            ['Redacted', of.redacted],
            ['Flagged', of.flagged],
          ] as const
        ).map(([title, value]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd class="number">{count(value)}</dd>
          </div>
        ))}
      </dl>
      {!of.is_complete && <p class="dim">It took too long: older requests were not checked. Choose fewer.</p>}
      {of.filters.length > 0 && (
        <Table class="cards" caption="Matches by filter" head={['Filter', 'Action', '>Requests', '>Matches']}>
          {of.filters.map(({ filter, label, action, requests, findings }) => (
            <tr key={`${filter} ${label}`}>
              <th scope="row">
                <bdi>{filter === 'custom' ? label : filter}</bdi>
              </th>
              <td data-label="Action">{action}</td>
              <td data-label="Requests" class="right number">
                {count(requests)}
              </td>
              <td data-label="Matches" class="right number">
                {count(findings)}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {of.examples.length > 0 && (
        <>
          <h3>Newest requests with a match</h3>
          <ul class="rows">
            {of.examples.map(({ generation_id, action, filters }) => (
              <li key={generation_id}>
                <a href={logsOf({ id: generation_id })} data-page>
                  <code>{generation_id}</code>
                </a>
                <span>
                  {action} by <bdi>{filters.join(', ')}</bdi>
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

function Result({ of }: { of: GuardrailTest }) {
  const [kind, sentence] = VERDICTS[of.verdict];
  if (of.replay !== undefined) return <Replayed of={of.replay} />;
  return (
    <>
      <p>
        <span class={`tag ${kind}`}>{of.verdict}</span> {sentence}
      </p>
      {of.verdict === 'passed' && of.routing === null && (
        <p class="dim">
          Rules for models, providers and retention concern requests: test one to see which endpoints are left.
        </p>
      )}
      {of.refusal !== null && (
        <p>
          The client receives {of.refusal.status}: <bdi>{of.refusal.message}</bdi>
        </p>
      )}
      <Findings of={of} />
      {of.changes.map(({ field, text }) => (
        <p key={field}>
          The model receives as <code>{field}</code>: <bdi>{text}</bdi>
        </p>
      ))}
      {of.routing !== null && (
        <>
          <h3>Endpoints</h3>
          {of.routing.error !== null && (
            <p class="failure">
              <bdi>{of.routing.error}</bdi>
            </p>
          )}
          <p>
            {count(of.routing.endpoints.length)} left of{' '}
            {count(of.routing.endpoints.length + of.routing.excluded.length)}
          </p>
          <ul class="rows">
            {of.routing.endpoints.map((id) => (
              <li key={id}>
                <code>{id}</code> <span class="tag good">left</span>
              </li>
            ))}
            {of.routing.excluded.map(({ endpoint_id, reason }) => (
              <li key={endpoint_id}>
                <code>{endpoint_id}</code>
                <span class="dim">
                  <bdi>{reason}</bdi>
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

/** Tries a stored guardrail, or a draft, on a text, a request, or requests that a workspace keeps. Nothing is sent. */
export function TestBench({
  of,
  workspaces,
}: {
  of: Pick<Body, 'guardrail_id' | 'guardrail'>;
  workspaces: Workspace[];
}) {
  const kind = useSignal<'text' | 'request' | 'replay'>('text');
  const text = useSignal('Write to jane@example.com or call +1 415 555 0132.');
  const request = useSignal(EXAMPLE);
  const api = useSignal<Api>('chat');
  const kept = workspaces.filter((one) => one.is_observability_io_logging_enabled);
  const workspace = useSignal(kept[0]?.id ?? '');
  const most = useSignal('100');
  const result = useSignal<GuardrailTest | undefined>(undefined);
  const { start, failure, isRunning } = useAction(async () => {
    result.value = undefined;
    const subjects = {
      text: () => ({ text: text.value }),
      request: () => {
        try {
          return { request: JSON.parse(request.value) as Record<string, never>, api: api.value };
        } catch (error) {
          throw new Error(`The request is not JSON: ${(error as Error).message}`);
        }
      },
      replay: () => ({ replay: { workspace_id: workspace.value, limit: Number(most.value) } }),
    };
    const { data } = await call('testGuardrail', { body: { ...of, ...subjects[kind.value]() } });
    result.value = data;
  });
  const choose = (next: typeof kind.value) => {
    kind.value = next;
    result.value = undefined;
  };
  return (
    <>
      <fieldset class="tabs">
        <legend class="hidden">What to test on</legend>
        {(
          [
            ['text', 'A text'],
            ['request', 'A request'],
            ['replay', 'Kept requests'],
          ] as const
        ).map(([value, title]) => (
          <button type="button" key={value} aria-pressed={kind.value === value} onClick={() => choose(value)}>
            {title}
          </button>
        ))}
      </fieldset>
      <form onSubmit={start}>
        {kind.value === 'text' && (
          <Field label="Text">
            <textarea rows={4} required {...(bind(text) as object)} />
          </Field>
        )}
        {kind.value === 'request' && (
          <>
            <Field label="Body of the request, JSON">
              <textarea rows={8} required spellcheck={false} class="mono" {...(bind(request) as object)} />
            </Field>
            <Field label="Operation">
              <select
                value={api.value}
                onChange={(event) => {
                  api.value = event.currentTarget.value as Api;
                }}
              >
                {Object.entries(APIS).map(([value, title]) => (
                  <option key={value} value={value}>
                    {title}
                  </option>
                ))}
              </select>
            </Field>
          </>
        )}
        {kind.value === 'replay' &&
          (kept.length === 0 ? (
            <p class="dim">
              No workspace keeps requests. Turn that on on the page of a workspace to test on real ones.
            </p>
          ) : (
            <div class="row">
              <Field label="Workspace that keeps requests">
                <select {...bind(workspace)}>
                  {kept.map(({ id, name }) => (
                    <option key={id} value={id}>
                      {name}
                    </option>
                  ))}
                </select>
              </Field>
              <Field label="Newest requests">
                <input type="number" min="1" step="1" required {...bind(most)} />
              </Field>
            </div>
          ))}
        {failure}
        {(kind.value !== 'replay' || kept.length > 0) && (
          <div class="actions">
            <span class="dim">Nothing is sent, charged, stored or logged.</span>
            <button type="submit" class="primary" disabled={isRunning}>
              Test
            </button>
          </div>
        )}
      </form>
      <div aria-live="polite">{result.value !== undefined && <Result of={result.value} />}</div>
    </>
  );
}
