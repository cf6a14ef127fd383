/** The columns of the logs. */
import { type ComponentChildren, Fragment } from 'preact';
import type { GenerationRow } from './api.gen.ts';
import { failureText } from './failures.ts';
import { count, milliseconds, perSecond } from './format.ts';
import { outcomeTag } from './generation.tsx';
import { route } from './state.ts';
import { Money } from './ui.tsx';

/** A column of the logs. */
export interface Column {
  name: string;
  title: string;
  /** The fields of the API that it shows. */
  fields: (keyof GenerationRow)[];
  right?: true;
  show(row: GenerationRow, names: (kind: 'key' | 'user', id: string) => string): ComponentChildren;
}

const tokens = (value: number | null | undefined) => (value === null || value === undefined ? '–' : count(value));

/** A model's name, which breaks after its author. Only long parts break elsewhere. */
function ModelName({ of }: { of: string }) {
  const at = of.indexOf('/') + 1;
  const parts = [of.slice(0, at), of.slice(at)].filter((part) => part !== '');
  return (
    <bdi>
      {parts.map((part, index) => (
        <Fragment key={index}>
          {index > 0 && <wbr />}
          <span class={part.length > 32 ? undefined : 'line-part'}>{part}</span>
        </Fragment>
      ))}
    </bdi>
  );
}

/** All columns, in the order in which they are shown. */
export const COLUMNS: Column[] = [
  {
    name: 'key',
    title: 'Key',
    fields: ['api_key_hash'],
    show: (row, names) => <bdi>{names('key', row.api_key_hash ?? '')}</bdi>,
  },
  {
    name: 'user',
    title: 'User',
    fields: ['user_id'],
    show: (row, names) => <bdi>{row.user_id ? names('user', row.user_id) : '–'}</bdi>,
  },
  {
    name: 'session',
    title: 'Session',
    fields: ['session_id'],
    show: ({ session_id: id }) =>
      id ? (
        <a href={`sessions?${new URLSearchParams({ id })}`} data-page>
          <bdi>{id.slice(0, 40)}</bdi>
        </a>
      ) : (
        '–'
      ),
  },
  { name: 'tags', title: 'Tags', fields: ['tags'], show: (row) => <bdi>{row.tags?.join(', ') || '–'}</bdi> },
  { name: 'app', title: 'App', fields: ['app'], show: (row) => <bdi>{row.app ?? '–'}</bdi> },
  {
    name: 'model',
    title: 'Model',
    fields: ['requested_model', 'model'],
    show: ({ requested_model: requested, model }) => (
      <>
        {requested && requested !== model && (
          <>
            <bdi class="dim">{requested}</bdi> →{' '}
          </>
        )}
        <ModelName of={model ?? ''} />
      </>
    ),
  },
  {
    name: 'provider',
    title: 'Provider',
    fields: ['provider_name'],
    show: (row) => <bdi>{row.provider_name ?? '–'}</bdi>,
  },
  {
    name: 'status',
    title: 'Status',
    fields: ['outcome', 'status', 'failures'],
    show: ({ outcome = '', status, failures = [] }) => (
      <>
        <span class={outcomeTag(outcome)}>{outcome === 'completed' ? 'ok' : outcome}</span>{' '}
        {outcome !== 'completed' && status !== null && <span class="number">{status} </span>}
        {failures.length > 0 && (
          <small title={failures.map(failureText).join('; ')}>
            {outcome === 'completed' ? 'after ' : ''}
            <bdi>{failures.join(', ').replaceAll('_', ' ')}</bdi>
          </small>
        )}
      </>
    ),
  },
  {
    name: 'tokens',
    title: 'Tokens',
    fields: ['tokens_prompt', 'tokens_completion'],
    right: true,
    show: (row) => (
      <span class="number">
        {row.tokens_prompt == null && row.tokens_completion == null
          ? '–'
          : `${tokens(row.tokens_prompt)} → ${tokens(row.tokens_completion)}`}
      </span>
    ),
  },
  {
    name: 'cached',
    title: 'Cached',
    fields: ['tokens_cached'],
    right: true,
    show: (row) => <span class="number">{tokens(row.tokens_cached)}</span>,
  },
  {
    name: 'written',
    title: 'Cache written',
    fields: ['tokens_cache_write'],
    right: true,
    show: (row) => <span class="number">{tokens(row.tokens_cache_write)}</span>,
  },
  {
    name: 'reasoning',
    title: 'Reasoning',
    fields: ['tokens_reasoning'],
    right: true,
    show: (row) => <span class="number">{tokens(row.tokens_reasoning)}</span>,
  },
  {
    name: 'cost',
    title: 'Cost',
    fields: ['total_cost'],
    right: true,
    show: ({ total_cost: cost }) => (cost === null || cost === undefined ? 'not known' : <Money usd={cost} />),
  },
  {
    name: 'own',
    title: 'Own account',
    fields: ['upstream_inference_cost'],
    right: true,
    show: ({ upstream_inference_cost: cost }) => (cost === null || cost === undefined ? '–' : <Money usd={cost} />),
  },
  {
    name: 'first',
    title: 'First token',
    fields: ['latency'],
    right: true,
    show: (row) => <span class="number">{milliseconds(row.latency)}</span>,
  },
  {
    name: 'speed',
    title: 'Tokens/s',
    fields: ['tokens_per_second'],
    right: true,
    show: (row) => <span class="number">{perSecond(row.tokens_per_second)}</span>,
  },
  {
    name: 'guardrail',
    title: 'Guardrail',
    fields: ['guardrails'],
    show: (row) => <bdi>{row.guardrails?.join(', ') || '–'}</bdi>,
  },
  { name: 'finish', title: 'Finish', fields: ['finish_reason'], show: (row) => row.finish_reason ?? '–' },
];
const DEFAULT = 'key,model,provider,status,tokens,cost,first,speed';

/** The columns that the address names. */
export const chosenColumns = (): Column[] => {
  const names = (route.value.query.get('columns') ?? DEFAULT).split(',');
  return COLUMNS.filter(({ name }) => names.includes(name));
};
