import type { Quirks } from '../quirks.ts';

const FIRST: Quirks = { prefill: true, thinking: 'none', json_schema_shim: true };
const MANUAL: Quirks = { prefill: true, thinking: 'manual' };
const ADAPTIVE: Quirks = { thinking: 'adaptive', effort_max: 'max', no_prefill: true };
/** From Opus 4.7 on: no sampling, no budgets, and thinking text only on request. */
const FIXED: Quirks = { ...ADAPTIVE, no_sampling: true, thinking_hidden: true };
const FIFTH: Quirks = { ...FIXED, thinking_default: 'on', mid_system: true };
const ALWAYS: Quirks = { ...FIFTH, thinking_default: 'always' };

/**
 * The quirks of each generation of models. The first row whose pattern matches decides. Sources: the model pages, migration
 * guides and feature pages of https://platform.claude.com/docs (thinking, effort, structured outputs, mid-conversation
 * system messages, "Prefill not supported" among the API errors), as of November 2026, and recorded answers: effort
 * `xhigh` refused by Opus 4.6, system messages inside the conversation accepted by Opus 4.8 and Fable 5.
 */
const MODELS: readonly [name: RegExp, quirks: Quirks][] = [
  [/^claude-(?:instant|v?2|3-(?:opus|sonnet|haiku)|3-5)/, FIRST],
  [/^claude-3-7/, { ...MANUAL, json_schema_shim: true }],
  [/^claude-(?:opus|sonnet)-4(?:-0|-2\d{7}|$)/, { ...MANUAL, json_schema_shim: true }],
  // The feature page no longer lists 4.1 among the models with structured outputs.
  [/^claude-opus-4-1/, { ...MANUAL, one_sampling: true, json_schema_shim: true }],
  [/^claude-opus-4-5/, { ...MANUAL, one_sampling: true, effort_max: 'high' }],
  [/^claude-(?:sonnet|haiku)-4-5/, { ...MANUAL, one_sampling: true }],
  [/^claude-(?:opus|sonnet)-4-6/, { ...ADAPTIVE, one_sampling: true, no_xhigh: true }],
  [/^claude-opus-4-7/, FIXED],
  [/^claude-opus-4-8/, { ...FIXED, mid_system: true }],
  [/^claude-mythos-preview/, { ...ALWAYS, mid_system: false }],
  [/^claude-(?:fable|mythos)-5(?!-\d(?:\D|$))/, ALWAYS],
  [/^claude-(?:fable|mythos)-5-\d/, { ...ALWAYS, no_forced_tool: true }],
  [/^claude-(?:opus|sonnet)-5-5/, { ...ALWAYS, no_forced_tool: true }],
  [/^claude-haiku-5-5/, { ...FIFTH, no_forced_tool: true }],
  // Sources disagree whether Sonnet 5 accepts system messages inside the conversation; folding them always works.
  [/^claude-sonnet-5/, { ...FIFTH, mid_system: false }],
  [/^claude-(?:opus|haiku)-5/, FIFTH],
  // A Claude that is newer than this table is most like its newest one.
  [/^claude-/, { ...FIFTH, no_forced_tool: true }],
];

/** The quirks of a Claude model, by the provider's name of it; empty for other models, which follow the plain wire. */
export function anthropicModelQuirks(upstreamModel: string): Quirks {
  const name = upstreamModel
    .toLowerCase()
    .replaceAll('.', '-')
    .replace(/^.*?(?=claude-)/, '')
    .replace(/@/, '-');
  return MODELS.find(([pattern]) => pattern.test(name))?.[1] ?? {};
}
