import { home } from './address.ts';
import type { Key, KeyPolicy } from './api.gen.ts';
import { call } from './api.ts';
import { ago, time } from './format.ts';
import { DeleteKey, EditKey, turnKey } from './key-forms.tsx';
import { KeySecrets } from './key-secrets.tsx';
import { logsOf, Sum, spentOf, usageOf } from './links.tsx';
import { settings } from './snippets.ts';
import { LimitBar, WINDOWS } from './spending.tsx';
import { isAdmin, setQuery } from './state.ts';
import { ChangeAndDelete, Copy, Heading, Money, Show, Snippets, useLoaded } from './ui.tsx';

const SCOPES = { 'api-key': 'of the key', member: 'of its owner', workspace: 'of its workspace' } as const;
const AUTHORS = {
  anthropic: 'Anthropic',
  openai: 'OpenAI',
  google: 'Google',
  xai: 'xAI',
  other: 'all others',
} as const;

/** The object of a limit, with a link to the guardrail's page for those who may open it. */
function LimitName({ of }: { of: KeyPolicy['limits'][number] }) {
  const text = of.label.replace(/^the /, '');
  const name = text.slice(0, 1).toUpperCase() + text.slice(1);
  if (of.guardrail_id === null || !isAdmin.value) return <bdi>{name}</bdi>;
  return (
    <a href={`guardrails?${new URLSearchParams({ id: of.guardrail_id })}`} data-page>
      <bdi>{name}</bdi>
    </a>
  );
}

/** The usage that counts against a limit, if its assignee is known. */
function usageOfLimit(limit: KeyPolicy['limits'][number], { key_hash }: KeyPolicy): string | undefined {
  if (limit.scope === 'organization') return spentOf({}, limit);
  const isOwn = limit.scope === 'key' && limit.label.includes('this API key');
  return isOwn ? spentOf({ api_key_id: key_hash }, limit) : undefined;
}

/** Whether something blocks a key now, and each of its limits. */
export function Blocks({ of }: { of: KeyPolicy }) {
  const { refusal, limits } = of;
  const tightest = limits
    .flatMap(({ label, left }) => (left === null ? [] : [{ label, left }]))
    .sort((a, b) => a.left - b.left)[0];
  return (
    <>
      {refusal === null ? (
        <p>
          <span class="tag good">not blocked</span> The key is accepted.{' '}
          {tightest !== undefined && (
            <>
              A call may cost up to <Money usd={tightest.left} />, what is left of <bdi>{tightest.label}</bdi>; a
              request that may cost more gets a shorter answer, or a 402.
            </>
          )}
        </p>
      ) : (
        <p role="status">
          <span class="tag bad">blocked</span> The next call receives {refusal.code}: <bdi>{refusal.message}</bdi>
        </p>
      )}
      {limits.length === 0 ? (
        <p class="dim">No limit counts its calls.</p>
      ) : (
        <ul class="rows limits">
          {limits.map((limit) => (
            <li key={`${limit.scope} ${limit.label} ${limit.reset_interval}`}>
              <span>
                <LimitName of={limit} /> {limit.refuses && <span class="tag bad">refuses</span>}
              </span>
              {limit.limit === null || limit.spent === null || limit.held === null || limit.left === null ? (
                <small>
                  {limit.reset_interval === null ? 'In all' : WINDOWS[limit.reset_interval]}; administrators see the
                  amounts
                </small>
              ) : (
                <LimitBar
                  of={{ ...limit, limit: limit.limit, spent: limit.spent, held: limit.held, left: limit.left }}
                  href={usageOfLimit(limit, of)}
                />
              )}
            </li>
          ))}
        </ul>
      )}
      <p class="dim">
        Held is reserved for running requests, and what other nodes keep ready for their next ones. Rate limits are not
        shown here.
      </p>
    </>
  );
}

function Names({ of, all }: { of: readonly string[] | null; all: string }) {
  if (of === null) return <>{all}</>;
  if (of.length === 0) return <strong>none</strong>;
  return <bdi>{of.join(', ')}</bdi>;
}

/** The guardrails of a key, and their combined rules. */
function Policy({ of }: { of: KeyPolicy }) {
  const { guardrails, effective } = of;
  const authors = (Object.keys(AUTHORS) as (keyof typeof AUTHORS)[]).filter((author) => effective.zdr[author]);
  return (
    <>
      {guardrails.length === 0 ? (
        <p>
          No guardrail applies: all models and providers are allowed, and nothing is filtered.{' '}
          {isAdmin.value && (
            <a href="guardrails" data-page>
              Guardrails
            </a>
          )}
        </p>
      ) : (
        <>
          <ul class="rows">
            {guardrails.map(({ id, name, scopes }) => (
              <li key={id}>
                {isAdmin.value ? (
                  <a href={`guardrails?${new URLSearchParams({ id })}`} data-page>
                    <bdi>{name}</bdi>
                  </a>
                ) : (
                  <bdi>{name}</bdi>
                )}
                <span class="dim">{scopes.map((scope) => SCOPES[scope]).join(', ')}</span>
              </li>
            ))}
          </ul>
          <h3>Together</h3>
          <dl>
            <div>
              <dt>Allowed models</dt>
              <dd>
                <Names of={effective.allowed_models} all={effective.ignored_models.length > 0 ? 'all others' : 'all'} />
              </dd>
            </div>
            {effective.ignored_models.length > 0 && (
              <div>
                <dt>Forbidden models</dt>
                <dd>
                  <Names of={effective.ignored_models} all="" />
                </dd>
              </div>
            )}
            <div>
              <dt>Allowed providers</dt>
              <dd>
                <Names
                  of={effective.allowed_providers}
                  all={effective.ignored_providers.length > 0 ? 'all others' : 'all'}
                />
              </dd>
            </div>
            {effective.ignored_providers.length > 0 && (
              <div>
                <dt>Forbidden providers</dt>
                <dd>
                  <Names of={effective.ignored_providers} all="" />
                </dd>
              </div>
            )}
            <div>
              <dt>Zero data retention</dt>
              <dd>{authors.length === 0 ? 'not required' : authors.map((author) => AUTHORS[author]).join(', ')}</dd>
            </div>
            <div>
              <dt>Content filters</dt>
              <dd>
                {effective.filters.length === 0
                  ? 'none'
                  : effective.filters.map(({ filter, action, label, guardrail_id, filters_answers, is_reversible }) => (
                      <span class="line" key={`${guardrail_id} ${filter} ${label} ${action}`}>
                        {action} <bdi>{filter === 'custom' ? (label ?? 'a pattern') : filter}</bdi>
                        {filters_answers && ', in answers too'}
                        {is_reversible && ', reversibly'}
                      </span>
                    ))}
              </dd>
            </div>
          </dl>
        </>
      )}
    </>
  );
}

function Facts({ of, onChange }: { of: Key; onChange(): void }) {
  const rows = [
    ['Today', of.usage_daily, 'daily'],
    ['This week', of.usage_weekly, 'weekly'],
    ['This month', of.usage_monthly, 'monthly'],
    ['In all', of.usage, null],
  ] as const;
  return (
    <>
      <p>
        <code>{of.label}</code>{' '}
        {of.disabled ? <span class="tag bad">disabled</span> : <span class="tag good">in use</span>}{' '}
        <span class="dim">
          {of.expires_at !== null && `expires ${time(of.expires_at)}; `}
          {of.last_used_at === null ? 'never used' : `last used ${ago(of.last_used_at)} (${time(of.last_used_at)})`}
        </span>{' '}
        <Copy text={of.hash} label="Copy hash" />
      </p>
      <KeySecrets of={of} onChange={onChange} />
      <dl class="figures">
        {rows.map(([title, amount, reset_interval]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>
              <Sum usd={amount} href={spentOf({ api_key_id: of.hash }, { reset_interval })} />
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}

/** The buttons that change a key, and their dialogs. */
function Actions({ of, onChange }: { of: Key; onChange(): void }) {
  return (
    <ChangeAndDelete
      change={(close) => (
        <EditKey
          of={of}
          onClose={close}
          onDone={() => {
            close();
            onChange();
          }}
        />
      )}
      remove={(close) => (
        <DeleteKey of={of} onClose={close} onDone={() => setQuery({ id: undefined, workspace: of.workspace_id })} />
      )}
    >
      <button type="button" onClick={() => void turnKey(of).then(onChange)}>
        {of.disabled ? 'Enable' : 'Disable'}
      </button>
    </ChangeAndDelete>
  );
}

/** One key: what it spent, what blocks it now, what applies to it, and settings for programs. */
export function KeyPage({ hash }: { hash: string }) {
  const path = { hash };
  const key = useLoaded((signal) => call('getKey', { path }, signal), hash);
  const policy = useLoaded((signal) => call('getKeyPolicy', { path }, signal), hash);
  const workspace = key.value?.data.workspace_id;
  const reload = () => {
    key.reload();
    policy.reload();
  };
  return (
    <>
      <Heading title={key.value?.data.name ?? 'Key'}>
        <a class="button" href="keys" data-page>
          All keys
        </a>
        <a class="button" href={logsOf({ key: hash })} data-page>
          Its calls
        </a>
        <a class="button" href={usageOf({ api_key_id: hash })} data-page>
          Its usage
        </a>
        <a
          class="button"
          href={`routing?${new URLSearchParams({ key: hash, ...(workspace && { of: workspace }) })}`}
          data-page
        >
          Explain a request
        </a>
        {key.value !== undefined && <Actions of={key.value.data} onChange={reload} />}
      </Heading>
      <Show of={key}>{({ data }) => <Facts of={data} onChange={reload} />}</Show>
      <div class="pair">
        <section class="card">
          <header class="heading">
            <h2>What blocks this key now?</h2>
            <button type="button" class="small" onClick={policy.reload}>
              Check again
            </button>
          </header>
          <Show of={policy}>{({ data }) => <Blocks of={data} />}</Show>
        </section>
        <section class="card">
          <h2>What applies to it</h2>
          <Show of={policy}>{({ data }) => <Policy of={data} />}</Show>
        </section>
      </div>
      <section class="card">
        <h2>Ready settings</h2>
        <p class="dim">
          With the secret in <code>GATEWAY_KEY</code>: it is shown only when a key is made or rotated.
        </p>
        <Snippets of={settings(home, undefined)} label="Settings" />
      </section>
    </>
  );
}
