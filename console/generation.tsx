import { useSignal } from '@preact/signals';
import { type ComponentChildren, Fragment } from 'preact';
import { home } from './address.ts';
import type { Generation, GenerationContent } from './api.gen.ts';
import { call } from './api.ts';
import { count, milliseconds, time } from './format.ts';
import { Content, fieldsOf, messagesOf } from './generation-content.tsx';
import { Attempts, Charges, classText, Findings, Routing } from './generation-parts.tsx';
import { logsOf } from './links.tsx';
import type { useNames } from './names.ts';
import { keepDraft } from './replay.ts';
import { requests } from './snippets.ts';
import { go, say } from './state.ts';
import { Copy, Dialog, Money, messageOf, Show, Snippets, useAction, useLoaded } from './ui.tsx';

type Names = ReturnType<typeof useNames>;

/** The colour of an outcome. */
export const outcomeTag = (outcome: string) =>
  outcome === 'completed' ? 'tag good' : outcome === 'failed' || outcome === 'unknown' ? 'tag bad' : 'tag';

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
