import { type Signal, useSignal } from '@preact/signals';
import type { Guardrail, Operations } from './api.gen.ts';
import { call } from './api.ts';
import { NameList, type Names, namesOf, suggestModels, suggestProviders, useNames } from './pickers.tsx';
import { say } from './state.ts';
import { bind, bindCheck, Check, Dialog, Field, useAction } from './ui.tsx';

type Body = Operations['createGuardrail']['body'];
type Action = 'redact' | 'block' | 'flag';

/** The builtin filters and what each looks for. */
export const BUILTINS = {
  email: 'Email addresses',
  phone: 'Telephone numbers',
  ssn: 'US social security numbers',
  'credit-card': 'Credit card numbers',
  'ip-address': 'IP addresses',
  'person-name': 'Names of people (requests only)',
  address: 'Postal addresses (requests only)',
  'regex-prompt-injection': 'Prompt injection (requests only)',
} as const;
type Slug = keyof typeof BUILTINS;
const SLUGS = Object.keys(BUILTINS) as Slug[];

const ACTIONS: Record<Action, string> = { redact: 'Redact', block: 'Block', flag: 'Flag only' };

const ZDR = [
  ['enforce_zdr_anthropic', 'Anthropic'],
  ['enforce_zdr_openai', 'OpenAI'],
  ['enforce_zdr_google', 'Google'],
  ['enforce_zdr_xai', 'xAI'],
  ['enforce_zdr_other', 'All other authors'],
] as const;
type ZdrField = (typeof ZDR)[number][0];

interface Pattern {
  pattern: string;
  action: 'redact' | 'block';
  label: string;
}

interface Builtin {
  action: '' | Action;
  label: string;
}

/** The fields of a guardrail while a person edits them. */
export interface Draft {
  name: Signal<string>;
  description: Signal<string>;
  limit: Signal<string>;
  reset: Signal<string>;
  countsOwn: Signal<boolean>;
  allowedModels: Names;
  ignoredModels: Names;
  allowedProviders: Names;
  ignoredProviders: Names;
  zdr: Signal<Record<ZdrField, boolean>>;
  builtins: Signal<Record<Slug, Builtin>>;
  patterns: Signal<Pattern[]>;
  filtersAnswers: Signal<boolean>;
  isReversible: Signal<boolean>;
}

/** A draft that begins as a stored guardrail, or empty. */
function useDraft(of: Guardrail | undefined): Draft {
  const storedOf = (slug: Slug) => of?.content_filter_builtins?.find((one) => one.slug === slug);
  return {
    name: useSignal(of?.name ?? ''),
    description: useSignal(of?.description ?? ''),
    limit: useSignal(of?.limit_usd == null ? '' : String(of.limit_usd)),
    reset: useSignal<string>(of?.reset_interval ?? ''),
    countsOwn: useSignal(of?.include_byok_in_budgets ?? false),
    allowedModels: useNames(of?.allowed_models ?? []),
    ignoredModels: useNames(of?.ignored_models ?? []),
    allowedProviders: useNames(of?.allowed_providers ?? []),
    ignoredProviders: useNames(of?.ignored_providers ?? []),
    zdr: useSignal(
      Object.fromEntries(
        ZDR.map(([field]) => {
          const stored = of?.[field] ?? (field === 'enforce_zdr_xai' ? of?.enforce_zdr_other : null);
          return [field, stored ?? of?.enforce_zdr ?? false];
        }),
      ) as Record<ZdrField, boolean>,
    ),
    builtins: useSignal(
      Object.fromEntries(
        SLUGS.map((slug) => [slug, { action: storedOf(slug)?.action ?? '', label: storedOf(slug)?.label ?? '' }]),
      ) as Record<Slug, Builtin>,
    ),
    patterns: useSignal(
      (of?.content_filters ?? []).map(({ pattern, action, label }) => ({ pattern, action, label: label ?? '' })),
    ),
    filtersAnswers: useSignal(of?.content_filter_output ?? false),
    isReversible: useSignal(of?.content_filter_reversible ?? false),
  };
}

const listOf = (names: Names) => {
  const all = namesOf(names);
  return all.length === 0 ? null : all;
};

/** The body that stores a draft, or tests it. Every field is written, so that an emptied one is removed. */
function bodyOf(draft: Draft): Body {
  const builtins = SLUGS.flatMap((slug) => {
    const { action, label } = draft.builtins.value[slug];
    return action === '' ? [] : [{ slug, action, ...(label === '' ? {} : { label }) }];
  });
  const patterns = draft.patterns.value.map(({ pattern, action, label }) => ({
    pattern,
    action,
    label: label === '' ? null : label,
  }));
  return {
    name: draft.name.value,
    description: draft.description.value === '' ? null : draft.description.value,
    limit_usd: draft.limit.value.trim() === '' ? null : Number(draft.limit.value),
    reset_interval:
      draft.reset.value === '' || draft.limit.value.trim() === ''
        ? null
        : (draft.reset.value as 'daily' | 'weekly' | 'monthly'),
    include_byok_in_budgets: draft.countsOwn.value,
    allowed_models: listOf(draft.allowedModels),
    ignored_models: listOf(draft.ignoredModels),
    allowed_providers: listOf(draft.allowedProviders),
    ignored_providers: listOf(draft.ignoredProviders),
    enforce_zdr: null,
    ...draft.zdr.value,
    content_filter_builtins: builtins.length === 0 ? null : builtins,
    content_filters: patterns.length === 0 ? null : patterns,
    content_filter_output: draft.filtersAnswers.value,
    content_filter_reversible: draft.isReversible.value,
  };
}

function BuiltinFields({ of }: { of: Draft['builtins'] }) {
  const set = (slug: Slug, change: Partial<Builtin>) => {
    of.value = { ...of.value, [slug]: { ...of.value[slug], ...change } };
  };
  return (
    <ul class="rows">
      {SLUGS.map((slug) => {
        const { action, label } = of.value[slug];
        return (
          <li key={slug}>
            <span>{BUILTINS[slug]}</span>
            <span class="pair-inputs">
              {action !== '' && (
                <input
                  aria-label={`Label of ${BUILTINS[slug]}`}
                  placeholder={`[${slug.toUpperCase()}]`}
                  maxLength={100}
                  value={label}
                  onInput={(event) => set(slug, { label: event.currentTarget.value })}
                />
              )}
              <select
                aria-label={`Action for ${BUILTINS[slug]}`}
                value={action}
                onChange={(event) => set(slug, { action: event.currentTarget.value as Builtin['action'] })}
              >
                <option value="">Off</option>
                <option value="redact">{ACTIONS.redact}</option>
                <option value="block">{ACTIONS.block}</option>
                {slug === 'regex-prompt-injection' && <option value="flag">{ACTIONS.flag}</option>}
              </select>
            </span>
          </li>
        );
      })}
    </ul>
  );
}

function PatternFields({ of }: { of: Draft['patterns'] }) {
  const set = (at: number, change: Partial<Pattern>) => {
    of.value = of.value.map((one, index) => (index === at ? { ...one, ...change } : one));
  };
  return (
    <>
      {of.value.map(({ pattern, action, label }, index) => (
        <fieldset class="pattern" key={index}>
          <legend class="hidden">Pattern {index + 1}</legend>
          <input
            aria-label={`Pattern ${index + 1}`}
            placeholder="project-[0-9]+"
            required
            spellcheck={false}
            value={pattern}
            onInput={(event) => set(index, { pattern: event.currentTarget.value })}
          />
          <input
            aria-label={`Label of pattern ${index + 1}`}
            placeholder="Label"
            maxLength={100}
            value={label}
            onInput={(event) => set(index, { label: event.currentTarget.value })}
          />
          <select
            aria-label={`Action of pattern ${index + 1}`}
            value={action}
            onChange={(event) => set(index, { action: event.currentTarget.value as Pattern['action'] })}
          >
            <option value="redact">{ACTIONS.redact}</option>
            <option value="block">{ACTIONS.block}</option>
          </select>
          <button
            type="button"
            class="small"
            aria-label={`Remove pattern ${index + 1}`}
            onClick={() => {
              of.value = of.value.filter((_, at) => at !== index);
            }}
          >
            Remove
          </button>
        </fieldset>
      ))}
      <button
        type="button"
        class="small"
        onClick={() => {
          of.value = [...of.value, { pattern: '', action: 'redact', label: '' }];
        }}
      >
        Add a pattern
      </button>
    </>
  );
}

function ZdrFields({ of }: { of: Draft['zdr'] }) {
  return (
    <div class="checks">
      {ZDR.map(([field, title]) => (
        <label key={field}>
          <input
            type="checkbox"
            checked={of.value[field]}
            onChange={(event) => {
              of.value = { ...of.value, [field]: event.currentTarget.checked };
            }}
          />{' '}
          {title}
        </label>
      ))}
    </div>
  );
}

/** Makes or changes a guardrail. Each group of fields states its rule. */
export function EditGuardrail({
  of,
  workspace,
  onClose,
  onSaved,
  onTest,
}: {
  of?: Guardrail | undefined;
  workspace: string;
  onClose(): void;
  onSaved(id: string): void;
  onTest(draft: Body): void;
}) {
  const draft = useDraft(of);
  const { start, failure, isRunning } = useAction(async () => {
    const body = bodyOf(draft);
    const { data } =
      of === undefined
        ? await call('createGuardrail', { body: { ...body, ...(workspace === '' ? {} : { workspace_id: workspace }) } })
        : await call('updateGuardrail', { path: { id: of.id }, body });
    say(of === undefined ? 'Created.' : 'Saved.');
    onSaved(data.id);
  });
  return (
    <Dialog title={of === undefined ? 'Create a guardrail' : 'Change the guardrail'} onClose={onClose} isWide>
      <form onSubmit={start} class="editor">
        <Field label="Name">
          <input type="text" required maxLength={200} autofocus autocomplete="off" {...bind(draft.name)} />
        </Field>
        <Field label="Description">
          <input type="text" maxLength={1000} autocomplete="off" {...bind(draft.description)} />
        </Field>
        <details open>
          <summary>Models and providers</summary>
          <p class="dim">
            With several guardrails only what all of them allow is left; what one forbids is forbidden. Endpoints that a
            guardrail excludes are skipped; a request without any other is refused with 403.
          </p>
          <NameList label="Forbidden models" hint="Empty: none" names={draft.ignoredModels} suggest={suggestModels} />
          <NameList
            label="Allowed models"
            hint="Empty: all. With one or more, all others are forbidden"
            names={draft.allowedModels}
            suggest={suggestModels}
          />
          <NameList
            label="Forbidden providers"
            hint="Empty: none"
            names={draft.ignoredProviders}
            suggest={suggestProviders}
          />
          <NameList
            label="Allowed providers"
            hint="Empty: all. With one or more, all others are forbidden"
            names={draft.allowedProviders}
            suggest={suggestProviders}
          />
        </details>
        <details open={draft.limit.peek() !== ''}>
          <summary>Spending limit</summary>
          <p class="dim">
            A limit of its own for each key that it is assigned to, for each member over all keys of the member, and for
            each workspace as a whole.
          </p>
          <div class="row">
            <Field label="Limit in USD" hint="Empty: none">
              <input type="number" min="0" step="any" inputMode="decimal" {...bind(draft.limit)} />
            </Field>
            <Field label="Reset" hint="At midnight UTC, weeks on Monday">
              <select
                value={draft.reset.value}
                onChange={(event) => {
                  draft.reset.value = event.currentTarget.value;
                }}
              >
                <option value="">never</option>
                <option value="daily">daily</option>
                <option value="weekly">weekly</option>
                <option value="monthly">monthly</option>
              </select>
            </Field>
          </div>
          <Check {...bindCheck(draft.countsOwn)} hint="It always counts if the workspace counts it toward its budgets.">
            Count usage of own provider accounts
          </Check>
        </details>
        <details open={Object.values(draft.zdr.peek()).includes(true)}>
          <summary>Zero data retention</summary>
          <p class="dim">
            Only endpoints of providers that are known to keep no data, for models of these authors. A request can add
            to it, and cannot remove it. The gateway then keeps no content of these requests either.
          </p>
          <ZdrFields of={draft.zdr} />
        </details>
        <details
          open={
            draft.patterns.peek().length > 0 || Object.values(draft.builtins.peek()).some(({ action }) => action !== '')
          }
        >
          <summary>Content filters</summary>
          <p class="dim">
            Redact replaces a match by its label, block refuses the request with 403, flag only notes it. If two filters
            look for the same, block wins over redact, and redact over flag.
          </p>
          <BuiltinFields of={draft.builtins} />
          <h3>Your own patterns</h3>
          <p class="dim">
            In RE2 syntax: no look-around and no back-references. The label stands in placeholders and errors.
          </p>
          <PatternFields of={draft.patterns} />
          <Check
            {...bindCheck(draft.filtersAnswers)}
            hint="Not possible together with names of people or postal addresses: they need whole texts. Put those into another guardrail."
          >
            Filter answers too
          </Check>
          <Check
            {...bindCheck(draft.isReversible)}
            hint="Placeholders are numbered; only the model does not see the values."
          >
            Restore redacted text in the answer to the client
          </Check>
        </details>
        {failure}
        <div class="actions">
          <button type="button" onClick={() => onTest(bodyOf(draft))}>
            Test this draft
          </button>
          <button type="submit" class="primary" disabled={isRunning}>
            {of === undefined ? 'Create guardrail' : 'Save'}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
