import { GatewayError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { resolveEntries } from '../../schemas/entries.ts';
import type {
  BoundGuardrail,
  BuiltinFilter,
  CustomFilter,
  Guardrail,
  UpdateGuardrailBody,
} from '../../schemas/guardrail.ts';
import { toNano, toUsd } from '../../schemas/money.ts';
import { checkStorable, isStorable, UNSTORABLE } from '../../schemas/text.ts';
import { patternFault, translatedPattern } from '../patterns/pattern.ts';
import { compileSteps } from '../patterns/pattern-cost.ts';

/** A guardrail as it is stored. */
export interface StoredGuardrail {
  id: string;
  seq: number;
  version: number;
  organization_id: string;
  workspace_id: string;
  name: string;
  description: string | null;
  allowed_models: string[] | null;
  ignored_models: string[] | null;
  allowed_providers: string[] | null;
  ignored_providers: string[] | null;
  limit_nano: number | null;
  reset_interval: 'daily' | 'weekly' | 'monthly' | null;
  enforce_zdr: boolean | null;
  enforce_zdr_anthropic: boolean | null;
  enforce_zdr_openai: boolean | null;
  enforce_zdr_google: boolean | null;
  enforce_zdr_other: boolean | null;
  enforce_zdr_xai: boolean | null;
  /** Whether usage of own provider keys counts toward its limit. It always does if the workspace counts it. */
  include_byok_in_budgets: boolean;
  content_filter_builtins: BuiltinFilter[] | null;
  content_filters: CustomFilter[] | null;
  content_filter_output: boolean | null;
  content_filter_reversible: boolean | null;
  created_at: string;
  updated_at: string | null;
}

/** The settings of a body in their stored form. Fields that the body leaves out are not set. */
export type GuardrailSettings = Partial<
  Omit<StoredGuardrail, 'id' | 'seq' | 'version' | 'organization_id' | 'workspace_id' | 'created_at' | 'updated_at'>
>;

/** A guardrail without any restriction. */
export const UNRESTRICTED: Readonly<Omit<BoundGuardrail, 'id' | 'scope'>> = {
  allowed_models: null,
  ignored_models: null,
  allowed_providers: null,
  ignored_providers: null,
  enforce_zdr: null,
  enforce_zdr_anthropic: null,
  enforce_zdr_openai: null,
  enforce_zdr_google: null,
  enforce_zdr_other: null,
  enforce_zdr_xai: null,
  content_filter_builtins: null,
  content_filters: null,
  content_filter_output: null,
  content_filter_reversible: null,
};

/** Resolves names in a body to their stored form. Undefined if nothing has the name. */
export interface Names {
  /** The canonical slug of a model, by id or canonical slug. */
  model(name: string): string | undefined;
  /** The slug of a provider, by slug or display name. */
  provider(name: string): string | undefined;
}

/** The vendors with a field of their own, and its two names in the public API. */
const vendors = [
  ['enforce_zdr_vendor_a', 'enforce_zdr_anthropic'],
  ['enforce_zdr_vendor_b', 'enforce_zdr_openai'],
  ['enforce_zdr_vendor_c', 'enforce_zdr_google'],
] as const;

/** Checks what a schema cannot express and needs no look-up of names. `pause` is awaited between patterns, whose checks may take some time. */
export async function checkGuardrail(body: UpdateGuardrailBody, pause: () => Promise<void>): Promise<void> {
  checkStorable({ name: body.name, description: body.description });
  checkBuiltins(body.content_filter_builtins ?? []);
  await checkFilters(body.content_filters ?? [], pause);
}

/**
 * Converts a checked body to its stored form: models as canonical slugs, providers as slugs, `enforce_zdr` copied to
 * every vendor's field that the body leaves out. `before` is the guardrail to change. Throws a 400 for unknown names.
 */
export function guardrailSettings(
  body: UpdateGuardrailBody,
  names: Names,
  before?: Pick<StoredGuardrail, ListField> & Partial<Pick<StoredGuardrail, OutputField>>,
): GuardrailSettings {
  checkOutput({ ...before, ...body });
  const { name, description, reset_interval, limit_usd, content_filter_builtins, content_filters } = body;
  const { content_filter_output, content_filter_reversible, include_byok_in_budgets } = body;
  const resolved = (field: ListField, resolve: (name: string) => string | undefined, what: string) => {
    const entries = body[field];
    if (entries === undefined) return {};
    return { [field]: entries && resolveEntries({ field, entries, stored: before?.[field], resolve, what }) };
  };
  return {
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description }),
    ...(reset_interval === undefined ? {} : { reset_interval }),
    ...(limit_usd === undefined ? {} : { limit_nano: limit_usd === null ? null : toNano(limit_usd) }),
    ...resolved('allowed_models', names.model, 'a model of this gateway'),
    ...resolved('ignored_models', names.model, 'a model of this gateway'),
    ...resolved('allowed_providers', names.provider, 'a provider of this gateway'),
    ...resolved('ignored_providers', names.provider, 'a provider of this gateway'),
    ...zdrOf(body),
    ...(include_byok_in_budgets === undefined ? {} : { include_byok_in_budgets }),
    ...(content_filter_builtins === undefined ? {} : { content_filter_builtins }),
    ...(content_filters === undefined ? {} : { content_filters }),
    ...(content_filter_output === undefined ? {} : { content_filter_output }),
    ...(content_filter_reversible === undefined ? {} : { content_filter_reversible }),
  };
}

type OutputField = 'content_filter_output' | 'content_filter_builtins';

/** Refuses filters of names and addresses for answers: they need whole texts, so a streamed answer would leak them. */
function checkOutput({ content_filter_output, content_filter_builtins }: Pick<UpdateGuardrailBody, OutputField>): void {
  if (content_filter_output !== true) return;
  const index = (content_filter_builtins ?? []).findIndex(({ slug }) => slug === 'person-name' || slug === 'address');
  if (index === -1) return;
  throw new GatewayError(
    400,
    `content_filter_output cannot be true together with content_filter_builtins[${index}]: ${content_filter_builtins![index]!.slug} applies to requests only. Put it into a separate guardrail, of the member or of the workspace`,
  );
}

type ListField = 'allowed_models' | 'ignored_models' | 'allowed_providers' | 'ignored_providers';

function zdrOf(body: UpdateGuardrailBody): GuardrailSettings {
  const { enforce_zdr, enforce_zdr_other, enforce_zdr_xai } = body;
  const zdr: GuardrailSettings = {};
  if (enforce_zdr !== undefined) zdr.enforce_zdr = enforce_zdr;
  for (const [neutral, named] of vendors) {
    const [one, other] = [body[neutral], body[named]];
    if (one !== undefined && other !== undefined && one !== other) {
      throw new GatewayError(400, `${neutral} and ${named} are the same setting and must not differ`);
    }
    const value = one ?? other;
    const isSet = one !== undefined || other !== undefined;
    if (isSet) zdr[named] = value ?? null;
    else if (enforce_zdr !== undefined) zdr[named] = enforce_zdr;
  }
  const rest = enforce_zdr_other === undefined ? enforce_zdr : enforce_zdr_other;
  if (rest !== undefined) zdr.enforce_zdr_other = rest;
  const xai = enforce_zdr_xai === undefined ? enforce_zdr : enforce_zdr_xai;
  if (xai !== undefined) zdr.enforce_zdr_xai = xai;
  return zdr;
}

function checkBuiltins(filters: readonly BuiltinFilter[]): void {
  const seen = new Set<string>();
  for (const [index, { slug, action, label }] of filters.entries()) {
    const field = `content_filter_builtins[${index}]`;
    if (seen.has(slug)) throw new GatewayError(400, `${field}.slug contains ${slug} twice`);
    seen.add(slug);
    if (action === 'flag' && slug !== 'regex-prompt-injection') {
      throw new GatewayError(
        400,
        `${field}.action flag is supported only for regex-prompt-injection; use redact or block`,
      );
    }
    checkStorable({ [`${field}.label`]: label });
  }
}

async function checkFilters(filters: readonly CustomFilter[], pause: () => Promise<void>): Promise<void> {
  const chars = filters.reduce((sum, { pattern }) => sum + pattern.length, 0);
  if (chars > limits.guardrail_pattern_chars_max) {
    throw new GatewayError(
      400,
      `content_filters must have at most ${limits.guardrail_pattern_chars_max} characters of patterns in all`,
    );
  }
  const steps = filters.reduce((sum, { pattern }) => sum + compileSteps(translatedPattern(pattern)), 0);
  const isOne = filters.length === 1;
  if (!isOne && steps > limits.guardrail_compile_steps_max) {
    throw new GatewayError(
      400,
      `content_filters are too large together: compiling them may take ${steps} steps, ${limits.guardrail_compile_steps_max} are allowed`,
      { metadata: { reason: 'invalid_regex_pattern' } },
    );
  }
  for (const [index, { pattern, label }] of filters.entries()) {
    const field = `content_filters[${index}]`;
    checkStorable({ [`${field}.label`]: label });
    if (index > 0) await pause();
    const fault = isStorable(pattern) ? patternFault(pattern) : UNSTORABLE;
    if (fault !== undefined) {
      throw new GatewayError(400, `${field}.pattern ${fault}`, { metadata: { reason: 'invalid_regex_pattern' } });
    }
  }
}

/** The public record, with vendors' fields under both names. */
export function describeGuardrail(stored: StoredGuardrail): Guardrail {
  return {
    id: stored.id,
    name: stored.name,
    workspace_id: stored.workspace_id,
    created_at: stored.created_at,
    updated_at: stored.updated_at,
    description: stored.description,
    allowed_models: stored.allowed_models,
    ignored_models: stored.ignored_models,
    allowed_providers: stored.allowed_providers,
    ignored_providers: stored.ignored_providers,
    limit_usd: stored.limit_nano === null ? null : toUsd(stored.limit_nano),
    ...(stored.reset_interval === null ? {} : { reset_interval: stored.reset_interval }),
    enforce_zdr: stored.enforce_zdr,
    enforce_zdr_vendor_a: stored.enforce_zdr_anthropic,
    enforce_zdr_vendor_b: stored.enforce_zdr_openai,
    enforce_zdr_vendor_c: stored.enforce_zdr_google,
    enforce_zdr_anthropic: stored.enforce_zdr_anthropic,
    enforce_zdr_openai: stored.enforce_zdr_openai,
    enforce_zdr_google: stored.enforce_zdr_google,
    enforce_zdr_other: stored.enforce_zdr_other,
    enforce_zdr_xai: stored.enforce_zdr_xai,
    include_byok_in_budgets: stored.include_byok_in_budgets,
    content_filter_builtins: stored.content_filter_builtins,
    content_filters: stored.content_filters,
    content_filter_output: stored.content_filter_output,
    content_filter_reversible: stored.content_filter_reversible,
  };
}
